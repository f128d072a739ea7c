/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a node: two lines for the cache, then what is wrong, then a row for each volume and
 * the running jobs. With details also the counters that only an administrator asks for.
 */
#include "cmd/hearthctl/view/view.h"
#include "cmd/hearthctl/client/client.h"
#include "cmd/hearthctl/client/mounts.h"
#include "cmd/hearthctl/client/text.h"
#include "cmd/hearthctl/report/lines.h"
#include "cmd/hearthctl/report/words.h"
#include "cmd/hearthctl/view/counters.h"
#include "cmd/hearthctl/view/node.h"
#include "driver/node/mount/publications.h"
#include "common/size.h"
#include "proto/wire_keys.h"
#include <string.h>

#define BAR_WIDTH 20u
#define NARROW_BAR_WIDTH 10u
#define NARROW 76u

enum { NAME, KIND, CACHED, WARM, HIT, PODS, OPENS, INODES, STATE, ID };

static const TableColumn columns[] = {
    [NAME] = {"CLAIM / DATASET", FALSE, 0, 0, 16},
    [KIND] = {"KIND", FALSE, 0, 5, 0},
    [CACHED] = {"CACHED", TRUE, 0, 6, 0},
    [WARM] = {"WARM", TRUE, 0, 0, 0},
    [HIT] = {"HIT%", TRUE, 0, 4, 0},
    [PODS] = {"PODS", TRUE, 0, 3, 0},
    [OPENS] = {"OPENS", TRUE, 0, 1, 0},
    [INODES] = {"INODES", TRUE, 0, 1, 0},
    [STATE] = {"STATE", FALSE, 0, 2, 0},
    [ID] = {"ID", FALSE, 0, 0, 0},
};

static gboolean is_set(const json_t *v, const char *name)
{
    return json_is_true(json_object_get(v, name));
}

static char *state_of(const json_t *v)
{
    GString *state = g_string_new(is_set(v, "attached") ? "attached" : "unmounted");
    if (is_set(v, "readOnly"))
        g_string_append(state, ",ro");
    if (is_set(v, "pinned"))
        g_string_append(state, ",pinned");
    return g_string_free(state, FALSE);
}

static const char *kind_of(const json_t *v)
{
    if (ctl_string(v, "dataset")[0])
        return "dataset";
    return strcmp(ctl_string(v, "type"), "rbd") == 0 ? "image" : "live";
}

static char *cached_of(const json_t *v)
{
    const json_int_t total = json_integer_value(json_object_get(v, "bytesTotal"));
    const uint64_t cached = ctl_number(v, "bytesCached");
    if (!is_set(v, "cache") || ctl_string(v, "uncached")[0])
        return g_strdup("off");
    return total >= 0 ? words_part(cached, (uint64_t)total) : size_format(cached);
}

static char *warm_of(const json_t *v)
{
    const json_int_t total = json_integer_value(json_object_get(v, "bytesTotal"));
    if (total < 0 || !is_set(v, "cache") || ctl_string(v, "uncached")[0])
        return NULL;
    return words_percent(ctl_number(v, "bytesCached"), (uint64_t)total);
}

/* NULL: not known. */
static char *pods_of(const GPtrArray *pods, const char *volume)
{
    if (!pods)
        return NULL;
    g_autoptr(GHashTable) uids = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < pods->len; i++) {
        const Publication *p = pods->pdata[i];
        if (mounts_same_volume(p->volume, volume))
            g_hash_table_add(uids, p->pod);
    }
    return g_strdup_printf("%u", g_hash_table_size(uids));
}

static void add_row(Table *table, const json_t *v, const GPtrArray *pods, gboolean details)
{
    const uint64_t hits = ctl_number(v, "hits"), misses = ctl_number(v, "misses");
    const gboolean native = ctl_string(v, "dataset")[0] && is_set(v, "attached");
    table_row(table);
    table_set(table, NAME, ctl_name(v, "volume"));
    table_set(table, KIND, kind_of(v));
    table_take(table, CACHED, cached_of(v));
    table_take(table, WARM, warm_of(v));
    table_take(table, HIT, native ? g_strdup("native") : words_percent(hits, hits + misses));
    table_take(table, PODS, pods_of(pods, ctl_string(v, "volume")));
    table_take(table, OPENS, g_strdup_printf("%" G_GUINT64_FORMAT, ctl_number(v, "opens")));
    table_take(table, INODES, g_strdup_printf("%" G_GUINT64_FORMAT, ctl_number(v, "nodes")));
    table_take(table, STATE, state_of(v));
    if (details)
        table_set(table, ID, ctl_string(v, "volume"));
}

static void add_volumes(Lines *lines, const json_t *volumes, const GPtrArray *pods,
                        const View *view)
{
    g_autoptr(Table) table = table_new(columns, G_N_ELEMENTS(columns) - !view->details);
    for (size_t i = 0; i < json_array_size(volumes); i++)
        add_row(table, json_array_get(volumes, i), pods, view->details);
    if (json_array_size(volumes))
        lines_add_table(lines, view, table);
    else
        lines_add(lines, view, "No volumes are served on this node.");
}

static void add_uncached(Lines *lines, const json_t *volumes, const View *view)
{
    g_autofree char *word = style_text("not cached:", STYLE_WARN, view->colour);
    for (size_t i = 0; i < json_array_size(volumes); i++) {
        const json_t *v = json_array_get(volumes, i);
        g_autofree char *name = text_printable(ctl_name(v, "volume"));
        g_autofree char *path = text_printable(ctl_string(v, "rootPath"));
        if (ctl_string(v, "uncached")[0])
            lines_add(lines, view, "%s %s, %s: %s", word, name, path, ctl_string(v, "uncached"));
    }
}

static gboolean is_listed(const json_t *volumes, const char *volume)
{
    for (size_t i = 0; i < json_array_size(volumes); i++)
        if (strcmp(ctl_string(json_array_get(volumes, i), "volume"), volume) == 0)
            return TRUE;
    return FALSE;
}

/* Pins of volumes that are not in the table. */
static void add_pins(Lines *lines, const json_t *pins, const json_t *volumes, const View *view)
{
    for (size_t i = 0; i < json_array_size(pins); i++) {
        const json_t *pin = json_array_get(pins, i);
        g_autofree char *bytes = size_format(ctl_number(pin, "bytes"));
        g_autofree char *name = text_printable(ctl_name(pin, "volume"));
        if (!is_listed(volumes, ctl_string(pin, "volume")))
            lines_add(lines, view, "pinned, not open: %s, %s", name, bytes);
    }
}

static char *full_bar(uint64_t used, uint64_t max, unsigned width)
{
    char *bar = g_strnfill(width, '-');
    memset(bar, '#', (size_t)(width * MIN(1.0, (double)used / (double)max)));
    return bar;
}

/* "cache [####----] 63% of 500.0 GiB" */
static char *cache_text(const json_t *cache, const View *view)
{
    const uint64_t used = ctl_number(cache, "bytes"), max = ctl_number(cache, "maxBytes");
    const gboolean narrow = view->columns && view->columns < NARROW;
    g_autofree char *have = size_format(used);
    if (strcmp(ctl_string(cache, "disk"), WIRE_DISK_OFF) == 0)
        return g_strdup("cache off: every read goes to Ceph");
    if (!max)
        return g_strdup_printf("cache %s, no bound", have);
    g_autofree char *bound = size_format(max), *share = words_percent(used, max);
    g_autofree char *bar = full_bar(used, max, narrow ? NARROW_BAR_WIDTH : BAR_WIDTH);
    return g_strdup_printf("cache [%s] %s of %s", bar, share, bound);
}

static void add_head(Lines *lines, const RatesLook *now, const View *view)
{
    const json_t *daemon = json_object_get(now->status, "daemon");
    const json_t *cache = json_object_get(now->status, "cache");
    const char *disk = ctl_string(cache, "disk"), *dir = ctl_string(cache, "dir");
    g_autofree char *up = words_duration(ctl_number(daemon, "uptimeSec"));
    g_autofree char *full = cache_text(cache, view);
    g_autofree char *state = node_disk_text(disk, view->colour);
    if (strcmp(disk, WIRE_DISK_OFF) != 0)
        lines_add(lines, view, "hearthd %s  up %s   %s   disk %s", ctl_string(daemon, "version"),
                  up, full, state);
    else
        lines_add(lines, view, "hearthd %s  up %s   %s", ctl_string(daemon, "version"), up, full);
    if (strcmp(disk, WIRE_DISK_OFF) == 0 && dir[0])
        lines_add(lines, view, "the directory %s could not be used; see hearthd's log", dir);
    if (strcmp(disk, WIRE_DISK_BYPASS) == 0)
        lines_add(lines, view,
                  "the cache's disk fails and is not used at the moment; see "
                  "hearthd's log");
}

static void add_activity(Lines *lines, const RatesLook *before, const RatesLook *now,
                         const json_t *jobs, const View *view)
{
    g_autoptr(Rates) rates = rates_between(before, now);
    const json_t *cache = json_object_get(now->status, "cache");
    const guint running = view_jobs_running(jobs);
    g_autofree char *rate = node_bytes_text(rates->fetched);
    g_autofree char *evicted = size_format(ctl_number(cache, "evictedBytes"));
    g_autoptr(GString) text = g_string_new(NULL);
    if (rate)
        g_string_append_printf(text, "now: %s/s from Ceph, ", rate);
    if (jobs)
        g_string_append_printf(text, "%u job%s (hearthctl jobs)   ", running,
                               words_plural(running));
    g_string_append_printf(text, "evicted: %s", evicted);
    lines_add(lines, view, "%s", text->str);
}

/* Of jobs, those that run; the caller's. */
static json_t *running_of(const json_t *jobs)
{
    json_t *running = json_array();
    for (size_t i = 0; i < json_array_size(jobs); i++)
        if (strcmp(ctl_string(json_array_get(jobs, i), "state"), "running") == 0)
            json_array_append(running, json_array_get(jobs, i));
    return running;
}

static void add_jobs(Lines *lines, const RatesLook *now, const json_t *jobs, gint64 now_ms,
                     const View *view)
{
    json_auto_t *running = running_of(jobs);
    if (json_array_size(running) == 0)
        return;
    lines_add(lines, view, "%s", "");
    g_autofree char **rows = view_jobs(running, now->volumes, now_ms, view);
    for (char **row = rows; *row; row++)
        lines_add_taken(lines, *row);
}

static void add_lost_mount(Lines *lines, const LostMount *one, const char *heal, const View *view)
{
    g_autofree char *where = g_strdup_printf("%s (%s)", one->point, one->volume);
    g_autofree char *clean = text_printable(where), *command = heal ? text_printable(heal) : NULL;
    g_autofree char *arrow = g_strconcat("-> ", command, NULL);
    lines_add_text(lines, view, 2, 4, clean);
    if (heal)
        lines_add_text(lines, view, 2, 5, arrow);
}

/* The worst that can happen to a pod: each access to such a mount fails. */
static void add_lost(Lines *lines, const ViewStatus *s, const View *view)
{
    const GPtrArray *lost = s->lost;
    gboolean unnamed = FALSE;
    if (!lost || lost->len == 0)
        return;
    for (guint i = 0; i < lost->len; i++)
        unnamed |= !mounts_heal_of(s->heals, lost->pdata[i]);
    g_autofree char *text = g_strdup_printf(
        "! %u mount%s not served any more, because hearthd was restarted: delete the pods "
        "that use %s%s",
        lost->len, lost->len == 1 ? " is" : "s are", lost->len == 1 ? "it" : "them",
        unnamed ? " (`kubectl hearth status NODE` prints the commands)" : "");
    g_autofree char *red = style_text(text, STYLE_BAD, view->colour);
    lines_add(lines, view, "%s", red);
    for (guint i = 0; i < lost->len; i++)
        add_lost_mount(lines, lost->pdata[i], mounts_heal_of(s->heals, lost->pdata[i]), view);
    lines_add(lines, view, "%s", "");
}

char **view_status(const ViewStatus *s, const View *view)
{
    Lines *lines = lines_new();
    const RatesLook *now = s->now;
    const json_t *cache = json_object_get(now->status, "cache");
    add_lost(lines, s, view);
    add_head(lines, now, view);
    add_activity(lines, s->before, now, s->jobs, view);
    if (view->details)
        counters_add(lines, now->status, s->now_ms, view);
    else
        counters_add_faults(lines, cache, view);
    add_pins(lines, json_object_get(cache, "pins"), now->volumes, view);
    lines_add(lines, view, "%s", "");
    add_volumes(lines, now->volumes, s->pods, view);
    add_uncached(lines, now->volumes, view);
    add_jobs(lines, now, s->jobs, s->now_ms, view);
    return lines_end(lines);
}
