/* SPDX-License-Identifier: Apache-2.0 */
/* The warm jobs of a node: those that run first, then those that ended, the last one first. */
#include "cmd/hearthctl/view/view.h"
#include "cmd/hearthctl/client/client.h"
#include "cmd/hearthctl/report/lines.h"
#include "cmd/hearthctl/report/progress.h"
#include "cmd/hearthctl/report/words.h"
#include "common/size.h"
#include <string.h>

enum { ID, VOLUME, PATH, STATE, PERCENT, FILES, RATE, ETA, STARTED };

static const TableColumn columns[] = {
    [ID] = {"ID", TRUE, 0, 0, 0},           [VOLUME] = {"VOLUME", FALSE, 0, 0, 12},
    [PATH] = {"PATH", FALSE, 0, 2, 8},      [STATE] = {"STATE", FALSE, 0, 6, 0},
    [PERCENT] = {"%", TRUE, 0, 0, 0},       [FILES] = {"FILES", TRUE, 0, 1, 0},
    [RATE] = {"RATE", TRUE, 0, 5, 0},       [ETA] = {"ETA", TRUE, 0, 7, 0},
    [STARTED] = {"STARTED", TRUE, 0, 3, 0},
};

static gboolean is_running(const json_t *job)
{
    return strcmp(ctl_string(job, "state"), "running") == 0;
}

/* An earlier hearthd does not name the volumes of jobs. */
static const char *name_of(const json_t *volumes, const json_t *job)
{
    const char *volume = ctl_string(job, "volume");
    for (size_t i = 0; i < json_array_size(volumes); i++) {
        const json_t *one = json_array_get(volumes, i);
        if (strcmp(ctl_string(one, "volume"), volume) == 0)
            return ctl_name(one, "volume");
    }
    return ctl_name(job, "volume");
}

static Style style_of(const char *state)
{
    if (strcmp(state, "failed") == 0)
        return STYLE_BAD;
    if (strcmp(state, "running") == 0)
        return STYLE_GOOD;
    return strcmp(state, "cancelled") == 0 ? STYLE_WARN : STYLE_PLAIN;
}

static char *state_text(const json_t *job)
{
    const char *state = ctl_string(job, "state");
    const gboolean check = json_is_true(json_object_get(job, "check"));
    if (is_running(job) && json_is_true(json_object_get(job, "scanning")))
        return g_strdup("scanning");
    return g_strconcat(state, check ? ",check" : "", NULL);
}

static void add_row(Table *table, const json_t *job, const json_t *volumes, gint64 now_ms)
{
    const uint64_t rate = progress_rate(job), left = progress_left_sec(job);
    const uint64_t started = ctl_number(job, "startedMs"), now = (uint64_t)now_ms;
    g_autofree char *bytes = size_format(rate);
    g_autofree char *ago = words_duration(now > started ? (now - started) / 1000 : 0);
    const char *path = ctl_string(job, "path");
    table_row(table);
    table_take(table, ID, g_strdup_printf("%" G_GUINT64_FORMAT, ctl_number(job, "job")));
    table_set(table, VOLUME, name_of(volumes, job));
    table_set(table, PATH, path[0] ? path : "/");
    table_take(table, STATE, state_text(job));
    table_style(table, STATE, style_of(ctl_string(job, "state")));
    table_take(table, PERCENT,
               words_percent(ctl_number(job, "bytesDone"), ctl_number(job, "bytesTotal")));
    table_take(table, FILES,
               g_strdup_printf("%" G_GUINT64_FORMAT "/%" G_GUINT64_FORMAT,
                               ctl_number(job, "filesDone"), ctl_number(job, "filesTotal")));
    table_take(table, RATE, rate ? g_strconcat(bytes, "/s", NULL) : NULL);
    table_take(table, ETA, is_running(job) && left ? words_duration(left) : NULL);
    table_take(table, STARTED, started ? g_strconcat(ago, " ago", NULL) : NULL);
}

guint view_jobs_running(const json_t *jobs)
{
    guint n = 0;
    for (size_t i = 0; i < json_array_size(jobs); i++)
        n += is_running(json_array_get(jobs, i)) ? 1 : 0;
    return n;
}

char **view_jobs(const json_t *jobs, const json_t *volumes, gint64 now_ms, const View *view)
{
    Lines *lines = lines_new();
    g_autoptr(Table) table = table_new(columns, G_N_ELEMENTS(columns));
    const size_t n = json_array_size(jobs);
    for (size_t i = 0; i < n; i++)
        if (is_running(json_array_get(jobs, i)))
            add_row(table, json_array_get(jobs, i), volumes, now_ms);
    for (size_t i = n; i-- > 0;)
        if (!is_running(json_array_get(jobs, i)))
            add_row(table, json_array_get(jobs, i), volumes, now_ms);
    if (n)
        lines_add_table(lines, view, table);
    else
        lines_add(lines, view, "No warm jobs are known on this node.");
    return lines_end(lines);
}
