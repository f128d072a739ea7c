/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hearthctl top: rates of the volumes and datasets of this node, from two samples of hearthd's
 * counters (cmd/hearthctl/report/rates.h). On a terminal the screen is redrawn until a key ends it;
 * elsewhere tables are printed.
 */
#include "cmd/hearthctl/client/commands.h"
#include "cmd/hearthctl/screen.h"
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include "common/size.h"
#include "cmd/hearthctl/report/rates.h"
#include "cmd/hearthctl/report/table.h"

#define MIN_INTERVAL_SEC 0.1
#define MAX_INTERVAL_SEC 3600.0
#define CALL_TIMEOUT_MS 5000
#define NAME_WIDTH 40 /* that of a dataset */
#define HEAD_LINES 3

static const char about[] =
    "Shows the current reads and writes of this node's volumes and datasets.";
static const char notes[] =
    "CACHE/S is bytes per second read from the node's cache, FILL/S from files that are being\n"
    "fetched, CEPH/S past the cache. HITS and MISSES count since the volume was opened. Native\n"
    "reads of the kernel, which is all warm data of a dataset, are not counted. On a terminal q\n"
    "quits, and < and > choose the column to sort by. Elsewhere, and with --batch, it prints one\n"
    "table per interval, --count times.\n"
    "\n"
    "Columns: volume warm hits misses opens cache fill ceph written\n"
    "\n"
    "Examples:\n"
    "  hearthctl top --sort ceph\n"
    "  hearthctl top --batch --interval 10 --count 6\n";
static const CtlHelp help = {.about = about, .notes = notes};

typedef struct Top {
    Ctl *ctl;
    RatesSort by;
    gint64 interval_us;
    gboolean batch;
    int count; /* tables to print, in a batch */
    RatesLook before, now;
    unsigned name_width; /* 0: whatever they have */
    char *failure;       /* why the last look failed, or NULL */
} Top;

static const TableColumn columns[] = {
    {"VOLUME", FALSE, 0},   {"WARM%", TRUE, 0},   {"HITS", TRUE, 0},   {"MISSES", TRUE, 0},
    {"OPENS/S", TRUE, 0},   {"CACHE/S", TRUE, 0}, {"FILL/S", TRUE, 0}, {"CEPH/S", TRUE, 0},
    {"WRITTEN/S", TRUE, 0}, {"PLACE", FALSE, 0},
};

/* ---- looking ---- */

static gboolean take_look(Ctl *ctl, RatesLook *look, GError **error)
{
    rates_look_clear(look);
    look->status = ctl_call(ctl, json_pack("{s:s}", "op", "status"), error);
    look->at_us = g_get_monotonic_time();
    if (look->status)
        look->volumes = ctl_pages(ctl, "volumes", "volume", error);
    if (look->volumes)
        look->datasets = ctl_pages(ctl, "datasets", "dataset", error);
    return look->datasets != NULL;
}

/* FALSE with an error; the next sample connects again, in case hearthd was restarted. */
static gboolean look_again(Top *top, GError **error)
{
    rates_look_clear(&top->before);
    top->before = top->now;
    top->now = (RatesLook){0};
    g_clear_pointer(&top->failure, g_free);
    g_autoptr(GError) why = NULL;
    if (take_look(top->ctl, &top->now, &why))
        return TRUE;
    ctl_disconnect(top->ctl);
    rates_look_clear(&top->now);
    top->failure = g_strdup(why->message);
    g_propagate_error(error, g_steal_pointer(&why));
    return FALSE;
}

/* ---- the picture ---- */

static char *bytes_text(double bytes)
{
    if (bytes < 0)
        return NULL;
    return bytes < 1 ? g_strdup("0") : size_format((uint64_t)bytes);
}

static char *number_text(double number)
{
    if (number < 0)
        return NULL;
    return g_strdup_printf(number > 0 && number < 10 ? "%.1f" : "%.0f", number);
}

static const char *disk_text(const char *disk)
{
    if (strcmp(disk, "bypass") == 0)
        return "BYPASS, reads go to Ceph";
    if (strcmp(disk, "suspect") == 0)
        return "SUSPECT, an I/O error was seen";
    return disk[0] ? disk : "?";
}

static char *or_dash(char *text)
{
    return text ? text : g_strdup("-");
}

static void add_head(const Top *top, const Rates *rates, GPtrArray *lines)
{
    const json_t *daemon = json_object_get(top->now.status, "daemon");
    const json_t *cache = json_object_get(top->now.status, "cache");
    const uint64_t used = ctl_number(cache, "bytes"), max = ctl_number(cache, "maxBytes");
    g_autofree char *have = size_format(used);
    g_autofree char *bound = max ? size_format(max) : g_strdup("no bound");
    g_autofree char *share =
        max ? g_strdup_printf(" (%.0f%%)", 100.0 * (double)used / (double)max) : g_strdup("");
    g_autofree char *left = size_format(ctl_number(cache, "freeBytes"));
    g_autofree char *fetched = or_dash(bytes_text(rates->fetched));
    g_autofree char *evicted = or_dash(number_text(rates->evicted));
    g_autofree char *evicted_bytes = or_dash(bytes_text(rates->evicted_bytes));
    g_autofree char *filled = or_dash(number_text(rates->filled));
    g_ptr_array_add(
        lines, g_strdup_printf("hearthd %s, every %.4g s, by %s%s", ctl_string(daemon, "version"),
                               (double)top->interval_us / G_USEC_PER_SEC, rates_sort_name(top->by),
                               rates->restarted ? "; it was restarted" : ""));
    g_ptr_array_add(lines,
                    g_strdup_printf("cache %s of %s%s, %s free on its disk, disk %s", have, bound,
                                    share, left, disk_text(ctl_string(cache, "disk"))));
    g_ptr_array_add(lines, g_strdup_printf("from Ceph %s/s, fills %" G_GUINT64_FORMAT
                                           " active and %s/s done, evictions %s/s (%s/s)",
                                           fetched, ctl_number(cache, "fillsActive"), filled,
                                           evicted, evicted_bytes));
}

static void add_row(Table *table, const RatesRow *row)
{
    table_row(table);
    table_set(table, 0, row->name);
    table_take(table, 1, row->warm < 0 ? NULL : g_strdup_printf("%.0f%%", row->warm));
    table_take(table, 2, g_strdup_printf("%" G_GUINT64_FORMAT, row->hits));
    table_take(table, 3, g_strdup_printf("%" G_GUINT64_FORMAT, row->misses));
    table_take(table, 4, number_text(row->opens));
    table_take(table, 5, bytes_text(row->cache));
    table_take(table, 6, bytes_text(row->fill));
    table_take(table, 7, bytes_text(row->ceph));
    table_take(table, 8, bytes_text(row->written));
    table_set(table, 9, row->place);
}

/* The lines of the picture; the table's header is number HEAD_LINES + 1. */
static char **picture(const Top *top)
{
    GPtrArray *lines = g_ptr_array_new();
    if (top->failure) {
        g_ptr_array_add(lines, g_strdup_printf("waiting for hearthd: %s", top->failure));
    } else {
        g_autoptr(Rates) rates = rates_between(&top->before, &top->now);
        TableColumn fitted[G_N_ELEMENTS(columns)];
        memcpy(fitted, columns, sizeof(columns));
        fitted[0].max_width = top->name_width;
        g_autoptr(Table) table = table_new(fitted, G_N_ELEMENTS(fitted));
        rates_sort(rates, top->by);
        add_head(top, rates, lines);
        g_ptr_array_add(lines, g_strdup(""));
        for (guint i = 0; i < rates->rows->len; i++)
            add_row(table, rates->rows->pdata[i]);
        g_autofree char **rows = table_lines(table, 0);
        for (char **row = rows; *row; row++)
            g_ptr_array_add(lines, *row);
        if (rates->rows->len == 0)
            g_ptr_array_add(lines, g_strdup("No volumes are served on this node."));
    }
    g_ptr_array_add(lines, NULL);
    return (char **)g_ptr_array_free(lines, FALSE);
}

/* ---- the two ways to show it ---- */

static void change_sort(Top *top, int by)
{
    top->by = (RatesSort)(((int)top->by + by + RATES_SORTS) % RATES_SORTS);
}

static void run_screen(Top *top, Screen *screen)
{
    gint64 next = g_get_monotonic_time();
    for (;;) {
        if (g_get_monotonic_time() >= next) {
            look_again(top, NULL);
            next = g_get_monotonic_time() + top->interval_us;
        }
        g_auto(GStrv) lines = picture(top);
        screen_draw(screen, lines, top->failure ? -1 : HEAD_LINES + 1);
        char key = 0;
        const ScreenEvent event = screen_wait(screen, next, &key);
        if (event == SCREEN_END || (event == SCREEN_KEY && (key == 'q' || key == 'Q')))
            return;
        if (event == SCREEN_KEY && (key == '<' || key == '>'))
            change_sort(top, key == '<' ? -1 : 1);
    }
}

static gboolean run_batch(Top *top, GError **error)
{
    if (!look_again(top, error))
        return FALSE;
    for (int i = 0; i < top->count; i++) {
        /* Ctrl-C ends the program: there is nothing to clean up. */
        poll(NULL, 0, (int)(top->interval_us / 1000));
        if (!look_again(top, error))
            return FALSE;
        g_auto(GStrv) lines = picture(top);
        if (i > 0)
            printf("\n");
        for (char **line = lines; *line; line++)
            printf("%s\n", *line);
        if (fflush(stdout) != 0)
            return TRUE; /* the reader of our output has gone */
    }
    return TRUE;
}

static gboolean parse(Top *top, int argc, char **argv, GError **error)
{
    double interval = 2;
    g_autofree char *sort = NULL;
    const GOptionEntry entries[] = {
        {"interval", 'i', 0, G_OPTION_ARG_DOUBLE, &interval, "Seconds between samples (default: 2)",
         "SECONDS"},
        {"sort", 'o', 0, G_OPTION_ARG_STRING, &sort, "Column to sort by (default: volume)",
         "COLUMN"},
        {"batch", 'b', 0, G_OPTION_ARG_NONE, &top->batch, "Print, also on a terminal", NULL},
        {"count", 'n', 0, G_OPTION_ARG_INT, &top->count,
         "Tables to print, with --batch (default: 1)", "N"},
        G_OPTION_ENTRY_NULL};
    if (!ctl_parse(top->ctl, &argc, &argv, entries, &help, error))
        return FALSE;
    if (argc > 1)
        ctl_usage_error(error, "top: unexpected argument '%s'", argv[1]);
    else if (!(interval >= MIN_INTERVAL_SEC && interval <= MAX_INTERVAL_SEC))
        ctl_usage_error(error, "--interval: must be %.4g to %.4g seconds", MIN_INTERVAL_SEC,
                        MAX_INTERVAL_SEC);
    else if (top->count < 1)
        ctl_usage_error(error, "--count: must be 1 or more");
    else if (sort && !rates_sort_parse(sort, &top->by))
        ctl_usage_error(error, "--sort: no column '%s'; see hearthctl top --help", sort);
    else {
        top->interval_us = (gint64)(interval * G_USEC_PER_SEC);
        return TRUE;
    }
    return FALSE;
}

int ctl_top(Ctl *ctl, int argc, char **argv)
{
    Top top = {.ctl = ctl, .count = 1};
    ctl->timeout_ms = CALL_TIMEOUT_MS; /* so that a key quits also when hearthd hangs */
    g_autoptr(GError) error = NULL;
    if (parse(&top, argc, argv, &error)) {
        g_autoptr(Screen) screen = top.batch ? NULL : screen_open();
        top.name_width = screen ? NAME_WIDTH : 0;
        if (screen)
            run_screen(&top, screen);
        else
            run_batch(&top, &error);
    }
    rates_look_clear(&top.before);
    rates_look_clear(&top.now);
    g_free(top.failure);
    return error ? ctl_fail(error) : CTL_OK;
}
