/* SPDX-License-Identifier: Apache-2.0 */
/* hearthctl status: a line for the daemon, a few for the cache, and a table of the volumes. */
#include "cmd/hearthctl/client/commands.h"
#include "common/size.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

#define COLUMNS 9
#define COLUMN_GAP 3

static const char *const headers[COLUMNS] = {"VOLUME", "TYPE", "STATE", "CACHED", "TOTAL",
                                             "WARM%",  "HIT%", "OPENS", "NODES"};

typedef struct Row {
    char *cells[COLUMNS];
} Row;

static void free_row(gpointer data)
{
    Row *row = data;
    for (int i = 0; i < COLUMNS; i++)
        g_free(row->cells[i]);
    g_free(row);
}

static char *percent(uint64_t part, uint64_t whole)
{
    if (whole == 0)
        return g_strdup("-");
    return g_strdup_printf("%.0f%%", MIN(100.0, 100.0 * (double)part / (double)whole));
}

static char *volume_state(const json_t *v)
{
    const gboolean attached = json_is_true(json_object_get(v, "attached"));
    GString *state = g_string_new(attached ? "attached" : "unmounted");
    if (json_is_true(json_object_get(v, "readOnly")))
        g_string_append(state, ",ro");
    if (ctl_string(v, "dataset")[0])
        g_string_append(state, ",dataset");
    if (json_is_true(json_object_get(v, "pinned")))
        g_string_append(state, ",pinned");
    return g_string_free(state, FALSE);
}

static Row *make_row(const json_t *v)
{
    Row *row = g_new0(Row, 1);
    uint64_t cached = ctl_number(v, "bytesCached"), total = ctl_number(v, "bytesTotal");
    uint64_t hits = ctl_number(v, "hits"), misses = ctl_number(v, "misses");
    gboolean known = json_integer_value(json_object_get(v, "bytesTotal")) >= 0;
    gboolean cache = json_is_true(json_object_get(v, "cache")) && !ctl_string(v, "uncached")[0];
    row->cells[0] = g_strdup(ctl_name(v, "volume"));
    row->cells[1] = g_strdup(ctl_string(v, "type"));
    row->cells[2] = volume_state(v);
    row->cells[3] = cache ? size_format(cached) : g_strdup("off");
    row->cells[4] = known ? size_format(total) : g_strdup("-");
    row->cells[5] = known && cache ? percent(cached, total) : g_strdup("-");
    row->cells[6] = percent(hits, hits + misses);
    row->cells[7] = g_strdup_printf("%" G_GUINT64_FORMAT, ctl_number(v, "opens"));
    row->cells[8] = g_strdup_printf("%" G_GUINT64_FORMAT, ctl_number(v, "nodes"));
    return row;
}

static void print_cells(const char *const *cells, const int *widths)
{
    for (int i = 0; i < COLUMNS - 1; i++)
        printf("%-*s", widths[i] + COLUMN_GAP, cells[i]);
    printf("%s\n", cells[COLUMNS - 1]);
}

static void print_table(const json_t *volumes)
{
    g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func(free_row);
    int widths[COLUMNS];
    for (int i = 0; i < COLUMNS; i++)
        widths[i] = (int)strlen(headers[i]);
    for (size_t i = 0; i < json_array_size(volumes); i++) {
        Row *row = make_row(json_array_get(volumes, i));
        for (int c = 0; c < COLUMNS; c++)
            widths[c] = MAX(widths[c], (int)strlen(row->cells[c]));
        g_ptr_array_add(rows, row);
    }
    print_cells(headers, widths);
    for (guint i = 0; i < rows->len; i++)
        print_cells((const char *const *)((Row *)rows->pdata[i])->cells, widths);
}

static void print_uncached(const json_t *volumes)
{
    for (size_t i = 0; i < json_array_size(volumes); i++) {
        const json_t *v = json_array_get(volumes, i);
        if (ctl_string(v, "uncached")[0])
            printf("not cached: %s, %s: %s\n", ctl_name(v, "volume"), ctl_string(v, "rootPath"),
                   ctl_string(v, "uncached"));
    }
}

static char *duration(uint64_t seconds)
{
    if (seconds >= 86400)
        return g_strdup_printf("%ud%uh", (unsigned)(seconds / 86400),
                               (unsigned)(seconds % 86400 / 3600));
    if (seconds >= 3600)
        return g_strdup_printf("%uh%um", (unsigned)(seconds / 3600),
                               (unsigned)(seconds % 3600 / 60));
    if (seconds >= 60)
        return g_strdup_printf("%um%us", (unsigned)(seconds / 60), (unsigned)(seconds % 60));
    return g_strdup_printf("%us", (unsigned)seconds);
}

static const char *disk_note(const char *disk)
{
    if (strcmp(disk, "bypass") == 0)
        return " (failing and not used at the moment: reads go to Ceph; see hearthd's log)";
    if (strcmp(disk, "suspect") == 0)
        return " (an I/O error was seen)";
    return "";
}

static void print_cache(const json_t *cache)
{
    const char *disk = ctl_string(cache, "disk");
    const char *dir = ctl_string(cache, "dir");
    if (strcmp(disk, "off") == 0) {
        if (dir[0])
            printf("cache off, %s: every read goes to Ceph; the directory could not be used, see "
                   "hearthd's log\n",
                   dir);
        else
            printf("cache off: every read goes to Ceph\n");
        return;
    }
    uint64_t bytes = ctl_number(cache, "bytes"), max = ctl_number(cache, "maxBytes");
    g_autofree char *used = size_format(bytes);
    g_autofree char *bound = size_format(max);
    g_autofree char *full = percent(bytes, max);
    g_autofree char *left = size_format(ctl_number(cache, "freeBytes"));
    g_autofree char *evicted = size_format(ctl_number(cache, "evictedBytes"));
    g_autofree char *fetched = size_format(ctl_number(cache, "originBytes"));
    printf("cache %s: disk %s%s, %s of %s (%s) in %" G_GUINT64_FORMAT " objects, %s free\n", dir,
           disk, disk_note(disk), used, max ? bound : "no bound", full,
           ctl_number(cache, "objects"), left);
    printf("since start: %s fetched, %" G_GUINT64_FORMAT " fills done, %" G_GUINT64_FORMAT
           " under way, %" G_GUINT64_FORMAT " failed; %s evicted; %" G_GUINT64_FORMAT
           " disk errors\n",
           fetched, ctl_number(cache, "fillsCompleted"), ctl_number(cache, "fillsActive"),
           ctl_number(cache, "fillsFailed"), evicted, ctl_number(cache, "diskErrors"));
}

static void print_scrub(const json_t *cache)
{
    const json_t *scrub = json_object_get(cache, "scrub");
    uint64_t ended = ctl_number(scrub, "endedMs") / 1000, now = (uint64_t)time(NULL);
    g_autofree char *ago = duration(now > ended ? now - ended : 0);
    g_autofree char *read = size_format(ctl_number(scrub, "bytes"));
    uint64_t bad = ctl_number(cache, "badObjects");
    if (strcmp(ctl_string(cache, "verity"), "off") != 0)
        printf("fs-verity: %s; ", ctl_string(cache, "verity"));
    if (!ctl_number(scrub, "bytesPerSec"))
        printf("scrub: off; ");
    else if (ended)
        printf("scrub: %s verified, ended %s ago; ", read, ago);
    else
        printf("scrub: %s verified so far; ", read);
    printf("%" G_GUINT64_FORMAT " bad object%s found since start\n", bad, bad == 1 ? "" : "s");
}

static gboolean is_listed(const json_t *volumes, const char *volume)
{
    for (size_t i = 0; i < json_array_size(volumes); i++)
        if (strcmp(ctl_string(json_array_get(volumes, i), "volume"), volume) == 0)
            return TRUE;
    return FALSE;
}

/* Pins of volumes that are not in the table. */
static void print_pins(const json_t *pins, const json_t *volumes)
{
    for (size_t i = 0; i < json_array_size(pins); i++) {
        const json_t *pin = json_array_get(pins, i);
        g_autofree char *bytes = size_format(ctl_number(pin, "bytes"));
        if (!is_listed(volumes, ctl_string(pin, "volume")))
            printf("pinned, not open: %s, %s\n", ctl_string(pin, "volume"), bytes);
    }
}

/* The earlier hearthd, beside which an upgrade may run this hearthctl, does not tell them. */
static void print_uses(const json_t *daemon)
{
    const json_t *memory = json_object_get(daemon, "memory");
    const json_t *kinds = json_object_get(memory, "kinds");
    if (!memory)
        return;
    uint64_t used = 0, most = 0;
    for (size_t i = 0; i < json_array_size(kinds); i++) {
        used += ctl_number(json_array_get(kinds, i), "bytes");
        most += ctl_number(json_array_get(kinds, i), "maxBytes");
    }
    g_autofree char *resident = size_format(ctl_number(memory, "residentBytes"));
    g_autofree char *of_budget = size_format(used);
    g_autofree char *budget = size_format(most);
    printf("memory: %s resident; %s of %s granted to volumes; %" G_GUINT64_FORMAT " threads",
           resident, of_budget, budget, ctl_number(daemon, "threads"));
    const uint64_t threads = ctl_number(daemon, "maxThreads");
    if (threads)
        printf(" of %" G_GUINT64_FORMAT, threads);
    printf(", %" G_GUINT64_FORMAT " connections to CephFS\n",
           ctl_number(daemon, "cephfsConnections"));
}

static void print_status(const json_t *status, const json_t *volumes)
{
    const json_t *daemon = json_object_get(status, "daemon");
    g_autofree char *up = duration(ctl_number(daemon, "uptimeSec"));
    printf("hearthd %s, pid %" G_GUINT64_FORMAT ", up %s\n", ctl_string(daemon, "version"),
           ctl_number(daemon, "pid"), up);
    const json_t *cache = json_object_get(status, "cache");
    print_cache(cache);
    if (strcmp(ctl_string(cache, "disk"), "off") != 0)
        print_scrub(cache);
    print_uses(daemon);
    print_pins(json_object_get(cache, "pins"), volumes);
    printf("\n");
    if (json_array_size(volumes))
        print_table(volumes);
    else
        printf("No volumes are served on this node.\n");
    print_uncached(volumes);
}

static void print_json(const json_t *status, json_t *volumes)
{
    json_auto_t *both = json_pack("{s:O, s:O, s:O}", "daemon", json_object_get(status, "daemon"),
                                  "cache", json_object_get(status, "cache"), "volumes", volumes);
    json_dumpf(both, stdout, JSON_INDENT(2));
    printf("\n");
}

static const CtlHelp help = {
    .usage = "",
    .about = "Shows the cache of this node and the volumes hearthd serves on it.",
    .notes = "CACHED is the cached part of a volume and TOTAL its size (- if it is not known).\n"
             "HIT% is the share of opens for reading that the cache could serve. NODES is the\n"
             "number of its inodes that the kernel holds. A dataset (a snapshot with a manifest)\n"
             "is read by the kernel itself, so its opens are not counted.\n"
             "\n"
             "Examples:\n"
             "  hearthctl status\n"
             "  hearthctl status --json | jq '.volumes[] | {volume, bytesCached}'\n",
};

int ctl_status(Ctl *ctl, int argc, char **argv)
{
    gboolean as_json = FALSE;
    g_autoptr(GError) error = NULL;
    const GOptionEntry entries[] = {
        {"json", 'j', 0, G_OPTION_ARG_NONE, &as_json, "Print one JSON object", NULL},
        G_OPTION_ENTRY_NULL};
    if (!ctl_parse(ctl, &argc, &argv, entries, &help, &error))
        return ctl_fail(error);
    if (argc > 1) {
        ctl_usage_error(&error, "status: unexpected argument '%s'", argv[1]);
        return ctl_fail(error);
    }
    json_auto_t *status = ctl_call(ctl, json_pack("{s:s}", "op", "status"), &error);
    json_auto_t *volumes = status ? ctl_pages(ctl, "volumes", "volume", &error) : NULL;
    if (volumes && as_json)
        print_json(status, volumes);
    else if (volumes)
        print_status(status, volumes);
    return error ? ctl_fail(error) : CTL_OK;
}
