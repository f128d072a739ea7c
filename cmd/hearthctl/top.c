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
#include "cmd/hearthctl/report/lines.h"
#include "cmd/hearthctl/view/view.h"

#define MIN_INTERVAL_SEC 0.1
#define MAX_INTERVAL_SEC 3600.0
#define CALL_TIMEOUT_MS 5000
#define DEFAULT_INTERVAL_SEC 2
#define STREAM_INTERVAL_SEC 1
#define STREAM_HEADING_EVERY 20

static const char about[] =
    "Shows the current reads and writes of this node's volumes and datasets.";
static const char notes[] =
    "CACHE/S is bytes per second read from the node's cache, FILL/S from files that are being\n"
    "fetched, CEPH/S past the cache. HITS and MISSES count since the volume was opened. "
    "OPEN MS and READ MS are how long one takes on average. "
    "\"native\"\n"
    "is a dataset that the kernel reads by itself, so that hearthd cannot count it; the head says\n"
    "how much that is at most for all datasets, by the counters of the cache's disk. On a "
    "terminal\n"
    "q quits, and < and > choose the column to sort by; columns that do not fit are left out.\n"
    "Elsewhere, and with --batch, it prints one table per interval, --count times. With --stream\n"
    "it prints a line per second with the sums of the node, for tickets.\n"
    "\n"
    "Columns: volume warm hits misses opens cache fill ceph written\n"
    "\n"
    "Examples:\n"
    "  hearthctl top --sort ceph\n"
    "  hearthctl top --batch --interval 10 --count 6\n"
    "  hearthctl top --stream\n";
static const CtlHelp help = {.about = about, .notes = notes};

typedef struct Top {
    Ctl *ctl;
    RatesSort by;
    gint64 interval_us;
    gboolean batch;
    int count; /* samples to print, in a batch; 0: without end */
    RatesLook before, now;
    gboolean wide, stream, as_json;
    int since_heading;
    char *failure; /* why the last look failed, or NULL */
} Top;

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

/* Its lines; where there is a table, its header is number VIEW_TOP_HEAD_LINES + 1. */
static char **picture(const Top *top, const View *view, gboolean mark)
{
    if (top->failure) {
        Lines *lines = lines_new();
        lines_add(lines, view, "waiting for hearthd: %s", top->failure);
        return lines_end(lines);
    }
    g_autoptr(Rates) rates = rates_between(&top->before, &top->now);
    rates_sort(rates, top->by);
    const ViewTop shown = {.now = &top->now,
                           .rates = rates,
                           .by = top->by,
                           .interval_us = top->interval_us,
                           .mark = mark};
    return view_top(&shown, view);
}

/* ---- the ways to show it ---- */

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
        View view = view_stdout(top->ctl, FALSE);
        unsigned rows;
        screen_size(screen, &view.columns, &rows);
        g_auto(GStrv) lines = picture(top, &view, TRUE);
        screen_draw(screen, lines, top->failure ? -1 : VIEW_TOP_HEAD_LINES + 1);
        char key = 0;
        const ScreenEvent event = screen_wait(screen, next, &key);
        if (event == SCREEN_END || (event == SCREEN_KEY && (key == 'q' || key == 'Q')))
            return;
        if (event == SCREEN_KEY && (key == '<' || key == '>'))
            change_sort(top, key == '<' ? -1 : 1);
    }
}

/* FALSE: nobody reads any more. */
static gboolean print_table(Top *top, gboolean first)
{
    const View view = view_stdout(top->ctl, top->wide);
    if (!first)
        printf("\n");
    return lines_print(picture(top, &view, FALSE));
}

static gboolean print_json(Top *top, gboolean first)
{
    (void)first;
    g_autoptr(Rates) rates = rates_between(&top->before, &top->now);
    json_auto_t *json = rates_json(rates);
    json_dumpf(json, stdout, JSON_COMPACT);
    printf("\n");
    return fflush(stdout) == 0;
}

static gboolean print_sample(Top *top, gboolean first)
{
    const View view = view_stdout(top->ctl, top->wide);
    g_autoptr(Rates) rates = rates_between(&top->before, &top->now);
    g_autoptr(GDateTime) clock = g_date_time_new_now_local();
    g_autofree char *time = g_date_time_format(clock, "%H:%M:%S");
    const ViewTop shown = {.now = &top->now, .rates = rates};
    g_autofree char *heading = view_stream_heading(&view);
    g_autofree char *line = view_stream(&shown, time, &view);
    if (first || ++top->since_heading == STREAM_HEADING_EVERY) {
        printf("%s\n", heading);
        top->since_heading = 0;
    }
    printf("%s\n", line);
    return fflush(stdout) == 0;
}

static gboolean run_batch(Top *top, GError **error)
{
    gboolean (*print)(Top * top, gboolean first) = top->stream ? print_sample : print_table;
    if (top->as_json)
        print = print_json;
    if (!look_again(top, error))
        return FALSE;
    for (int i = 0; top->count == 0 || i < top->count; i++) {
        /* Ctrl-C ends the program: there is nothing to clean up. */
        poll(NULL, 0, (int)(top->interval_us / 1000));
        if (!look_again(top, error))
            return FALSE;
        if (!print(top, i == 0))
            return TRUE; /* the reader of our output has gone */
    }
    return TRUE;
}

static gboolean parse(Top *top, int argc, char **argv, GError **error)
{
    double interval = 0;
    int count = -1;
    g_autofree char *sort = NULL;
    const GOptionEntry entries[] = {
        {"interval", 'i', 0, G_OPTION_ARG_DOUBLE, &interval,
         "Seconds between samples (default: 2, with --stream 1)", "SECONDS"},
        {"sort", 'o', 0, G_OPTION_ARG_STRING, &sort, "Column to sort by (default: volume)",
         "COLUMN"},
        {"batch", 'b', 0, G_OPTION_ARG_NONE, &top->batch, "Print, also on a terminal", NULL},
        {"stream", 0, 0, G_OPTION_ARG_NONE, &top->stream,
         "Print one line for the node at each sample, until Ctrl-C", NULL},
        {"count", 'n', 0, G_OPTION_ARG_INT, &count,
         "Samples to print (default: 1 table; --stream: no end)", "N"},
        {"json", 0, 0, G_OPTION_ARG_NONE, &top->as_json, "Print one JSON object at each sample",
         NULL},
        {"wide", 'w', 0, G_OPTION_ARG_NONE, &top->wide, CTL_WIDE_HELP, NULL},
        G_OPTION_ENTRY_NULL};
    if (!ctl_parse(top->ctl, &argc, &argv, entries, &help, error))
        return FALSE;
    if (argc > 1)
        ctl_usage_error(error, "top: unexpected argument '%s'; see hearthctl top --help", argv[1]);
    else if (interval != 0 && !(interval >= MIN_INTERVAL_SEC && interval <= MAX_INTERVAL_SEC))
        ctl_usage_error(error, "--interval: must be %.4g to %.4g seconds", MIN_INTERVAL_SEC,
                        MAX_INTERVAL_SEC);
    else if (count != -1 && count < 1)
        ctl_usage_error(error, "--count: must be 1 or more");
    else if (sort && !rates_sort_parse(sort, &top->by))
        ctl_usage_error(error, "--sort: no column '%s'; see hearthctl top --help", sort);
    else {
        if (interval == 0)
            interval = top->stream ? STREAM_INTERVAL_SEC : DEFAULT_INTERVAL_SEC;
        if (count == -1)
            count = top->stream ? 0 : 1;
        top->interval_us = (gint64)(interval * G_USEC_PER_SEC);
        top->count = count;
        top->batch |= top->stream || top->as_json;
        return TRUE;
    }
    return FALSE;
}

int ctl_top(Ctl *ctl, int argc, char **argv)
{
    Top top = {.ctl = ctl};
    ctl->timeout_ms = CALL_TIMEOUT_MS; /* so that a key quits also when hearthd hangs */
    g_autoptr(GError) error = NULL;
    if (parse(&top, argc, argv, &error)) {
        g_autoptr(Screen) screen = top.batch ? NULL : screen_open();
        if (screen)
            run_screen(&top, screen);
        else
            run_batch(&top, &error);
    }
    rates_look_clear(&top.before);
    rates_look_clear(&top.now);
    g_free(top.failure);
    return error ? ctl_fail(ctl, error) : CTL_OK;
}
