/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The picture of top: a head for the node, and a row for each volume and dataset. Of a dataset that
 * the kernel reads natively hearthd counts nothing, so its cells say so instead of 0.
 */
#include "cmd/hearthctl/view/view.h"
#include "cmd/hearthctl/client/client.h"
#include "cmd/hearthctl/report/lines.h"
#include "cmd/hearthctl/view/node.h"
#include "common/size.h"
#include <string.h>

#define NATIVE "native"
#define HEADING_BYTES 32

enum { OPEN_MS = RATES_SORTS, READ_MS, PLACE, COLUMNS };

/* In the order of RatesSort, and those that rows are not sorted by. */
static const TableColumn columns[COLUMNS] = {
    [RATES_BY_NAME] = {"VOLUME", FALSE, 0, 0, 16},
    [RATES_BY_WARM] = {"WARM%", TRUE, 0, 9, 0},
    [RATES_BY_HITS] = {"HITS", TRUE, 0, 3, 0},
    [RATES_BY_MISSES] = {"MISSES", TRUE, 0, 2, 0},
    [RATES_BY_OPENS] = {"OPENS/S", TRUE, 0, 5, 0},
    [RATES_BY_CACHE] = {"CACHE/S", TRUE, 0, 6, 0},
    [RATES_BY_FILL] = {"FILL/S", TRUE, 0, 7, 0},
    [RATES_BY_CEPH] = {"CEPH/S", TRUE, 0, 8, 0},
    [RATES_BY_WRITTEN] = {"WRITTEN/S", TRUE, 0, 4, 0},
    [OPEN_MS] = {"OPEN MS", TRUE, 0, 2, 0},
    [READ_MS] = {"READ MS", TRUE, 0, 2, 0},
    [PLACE] = {"PLACE", FALSE, 0, 1, 16},
};

static char *number_text(double number)
{
    if (number < 0)
        return NULL;
    return g_strdup_printf(number > 0 && number < 10 ? "%.1f" : "%.0f", number);
}

static char *or_dash(char *text)
{
    return text ? text : g_strdup("-");
}

static void add_cache(Lines *lines, const json_t *cache, const View *view)
{
    const uint64_t used = ctl_number(cache, "bytes"), max = ctl_number(cache, "maxBytes");
    g_autofree char *have = size_format(used);
    g_autofree char *bound = max ? size_format(max) : g_strdup("no bound");
    g_autofree char *share =
        max ? g_strdup_printf(" (%.0f%%)", 100.0 * (double)used / (double)max) : g_strdup("");
    g_autofree char *left = size_format(ctl_number(cache, "freeBytes"));
    g_autofree char *disk = node_disk_text(ctl_string(cache, "disk"), view->colour);
    lines_add_cut(lines, view, "cache %s of %s%s, %s free, disk %s", have, bound, share, left,
                  disk);
}

/* Native reads of datasets, which no row has. */
static void add_native(Lines *lines, const ViewTop *top, const View *view)
{
    g_autofree char *most = or_dash(node_bytes_text(top->rates->native));
    g_autofree char *cpu = or_dash(number_text(top->rates->cpu));
    const json_t *memory = json_object_get(json_object_get(top->now->status, "daemon"), "memory");
    g_autofree char *resident = size_format(ctl_number(memory, "residentBytes"));
    lines_add_cut(lines, view, "native reads: at most %s/s; hearthd: CPU %s%%, memory %s", most,
                  cpu, resident);
}

static void add_head(Lines *lines, const ViewTop *top, const View *view)
{
    const Rates *rates = top->rates;
    const json_t *daemon = json_object_get(top->now->status, "daemon");
    const json_t *cache = json_object_get(top->now->status, "cache");
    g_autofree char *fetched = or_dash(node_bytes_text(rates->fetched));
    g_autofree char *ceph_ms = or_dash(number_text(rates->ceph_ms));
    g_autofree char *evicted = or_dash(number_text(rates->evicted));
    g_autofree char *evicted_bytes = or_dash(node_bytes_text(rates->evicted_bytes));
    g_autofree char *filled = or_dash(number_text(rates->filled));
    lines_add_cut(lines, view, "hearthd %s, every %.4g s, by %s%s", ctl_string(daemon, "version"),
                  (double)top->interval_us / G_USEC_PER_SEC, rates_sort_name(top->by),
                  rates->restarted ? "; it was restarted" : "");
    add_cache(lines, cache, view);
    lines_add_cut(lines, view,
                  "from Ceph %s/s, %s ms a read, fills %" G_GUINT64_FORMAT
                  " active and %s/s done, evictions %s/s (%s/s)",
                  fetched, ceph_ms, ctl_number(cache, "fillsActive"), filled, evicted,
                  evicted_bytes);
    add_native(lines, top, view);
}

/* Rounded down, so that 100% is all of it. */
static char *warm_text(double percent)
{
    return percent < 0 ? NULL : g_strdup_printf("%d%%", (int)percent);
}

static void add_row(Table *table, const RatesRow *row)
{
    const gboolean native = row->native && row->cache == 0;
    table_row(table);
    table_set(table, RATES_BY_NAME, row->name);
    table_take(table, RATES_BY_WARM, warm_text(row->warm));
    if (row->native && row->hits == 0)
        table_set(table, RATES_BY_HITS, NATIVE);
    else
        table_take(table, RATES_BY_HITS, g_strdup_printf("%" G_GUINT64_FORMAT, row->hits));
    table_take(table, RATES_BY_MISSES, g_strdup_printf("%" G_GUINT64_FORMAT, row->misses));
    table_take(table, RATES_BY_OPENS, number_text(row->opens));
    table_take(table, RATES_BY_CACHE, native ? g_strdup(NATIVE) : node_bytes_text(row->cache));
    table_take(table, RATES_BY_FILL, node_bytes_text(row->fill));
    table_take(table, RATES_BY_CEPH, node_bytes_text(row->ceph));
    table_take(table, RATES_BY_WRITTEN, node_bytes_text(row->written));
    table_take(table, OPEN_MS, number_text(row->open_ms));
    table_take(table, READ_MS, number_text(row->read_ms));
    table_set(table, PLACE, row->place);
}

char **view_top(const ViewTop *top, const View *view)
{
    Lines *lines = lines_new();
    TableColumn marked[COLUMNS];
    char heading[HEADING_BYTES];
    memcpy(marked, columns, sizeof(columns));
    g_snprintf(heading, sizeof(heading), "%s%s", columns[top->by].header,
               top->by == RATES_BY_NAME ? "▲" : "▼");
    if (top->mark)
        marked[top->by].header = heading;
    g_autoptr(Table) table = table_new(marked, COLUMNS);
    table_keep(table, top->by);
    add_head(lines, top, view);
    lines_add(lines, view, "%s", "");
    for (guint i = 0; i < top->rates->rows->len; i++)
        add_row(table, top->rates->rows->pdata[i]);
    lines_add_table(lines, view, table);
    if (top->rates->rows->len == 0)
        lines_add(lines, view, "No volumes are served on this node.");
    return lines_end(lines);
}
