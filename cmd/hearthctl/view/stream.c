/* SPDX-License-Identifier: Apache-2.0 */
/* A node's activity as one line for each sample: for tickets, and to look back. */
#include "cmd/hearthctl/view/view.h"
#include "cmd/hearthctl/client/client.h"
#include "cmd/hearthctl/report/lines.h"
#include "cmd/hearthctl/report/words.h"
#include "cmd/hearthctl/view/node.h"
#include "common/size.h"

enum { TIME, CEPH, FILL, CACHE, NATIVE, OPENS, FILLS, EVICTED, FULL, CPU, MEMORY, COLUMNS };

#define GAP 2

static const struct {
    const char *heading;
    int width; /* of the widest value that is to be expected */
} columns[COLUMNS] = {
    [TIME] = {"TIME", 8},      [CEPH] = {"CEPH/S", 10},       [FILL] = {"FILL/S", 10},
    [CACHE] = {"CACHE/S", 10}, [NATIVE] = {"NATIVE/S", 10},   [OPENS] = {"OPENS/S", 7},
    [FILLS] = {"FILLS", 5},    [EVICTED] = {"EVICTED/S", 10}, [FULL] = {"FULL", 4},
    [CPU] = {"CPU", 5},        [MEMORY] = {"MEMORY", 10},
};

static char *make_line(const char *const *cells, const View *view)
{
    GString *line = g_string_new(NULL);
    int used = 0;
    for (int i = 0; i < COLUMNS; i++) {
        const int width = columns[i].width + (i > 0 ? GAP : 0);
        used += width;
        if (view->columns && used > (int)view->columns)
            break;
        g_string_append_printf(line, "%*s", width, cells[i] ? cells[i] : "-");
    }
    return g_string_free(line, FALSE);
}

char *view_stream_heading(const View *view)
{
    const char *cells[COLUMNS];
    for (int i = 0; i < COLUMNS; i++)
        cells[i] = columns[i].heading;
    return make_line(cells, view);
}

typedef struct Sums {
    double fill, cache, opens;
} Sums;

static void add(double *sum, double rate)
{
    if (rate >= 0)
        *sum = MAX(*sum, 0) + rate;
}

static Sums sum_rows(const Rates *rates)
{
    Sums sums = {RATE_UNKNOWN, RATE_UNKNOWN, RATE_UNKNOWN};
    for (guint i = 0; i < rates->rows->len; i++) {
        const RatesRow *row = rates->rows->pdata[i];
        add(&sums.fill, row->fill);
        add(&sums.cache, row->cache);
        add(&sums.opens, row->opens);
    }
    return sums;
}

static char *number(double value, const char *unit)
{
    return value < 0 ? NULL : g_strdup_printf("%.0f%s", value, unit);
}

char *view_stream(const ViewTop *top, const char *time, const View *view)
{
    const json_t *daemon = json_object_get(top->now->status, "daemon");
    const json_t *cache = json_object_get(top->now->status, "cache");
    const Sums sums = sum_rows(top->rates);
    char *cells[COLUMNS] = {
        [TIME] = g_strdup(time),
        [CEPH] = node_bytes_text(top->rates->fetched),
        [FILL] = node_bytes_text(sums.fill),
        [CACHE] = node_bytes_text(sums.cache),
        [NATIVE] = node_bytes_text(top->rates->native),
        [OPENS] = number(sums.opens, ""),
        [FILLS] = g_strdup_printf("%" G_GUINT64_FORMAT, ctl_number(cache, "fillsActive")),
        [EVICTED] = node_bytes_text(top->rates->evicted_bytes),
        [FULL] = words_percent(ctl_number(cache, "bytes"), ctl_number(cache, "maxBytes")),
        [CPU] = number(top->rates->cpu, "%"),
        [MEMORY] = size_format(ctl_number(json_object_get(daemon, "memory"), "residentBytes")),
    };
    char *line = make_line((const char *const *)cells, view);
    for (int i = 0; i < COLUMNS; i++)
        g_free(cells[i]);
    return line;
}
