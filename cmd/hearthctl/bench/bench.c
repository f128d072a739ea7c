/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hearthctl bench: measures how fast a path is read when it is cold, warm in the node's cache, and
 * in memory; sequentially, and by many threads in random order. It only reads, unless --evict is
 * given.
 *
 * Results are verified: hearthd's counters show how much came from Ceph during each pass.
 */
#include "cmd/hearthctl/bench/bench.h"
#include "cmd/hearthctl/client/commands.h"
#include <errno.h>
#include <gio/gio.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "common/size.h"

#define SEED 1 /* the same order each time, so that runs compare */
#define SETTLE_SEC 30
#define HEARTHD_IDLE_MS 2500 /* it closes what was not read for a second */
#define WARMING_PASSES 6     /* of time, to bring what is cold into the cache */
#define MAX_THREADS 256

static const char about[] =
    "Measures how fast the files below PATH are read: cold, warm from the node's cache, from "
    "memory.";
static const char notes[] =
    "PATH is on a mounted volume of Hearth, or any other directory to compare with. "
    "\"sequential\"\n"
    "is one reader in the order of names; \"random\" is --threads readers in random order, as "
    "data\n"
    "loaders read. p50 and p99 are the latency of opening a file and its first read (1 MiB at\n"
    "most). FROM CEPH is the data fetched by the node meanwhile, for other jobs too. Without\n"
    "--evict nothing is measured cold, and all files are read once before \"warm\"; the pages of\n"
    "PATH are dropped from memory. Evicted data must be fetched from Ceph again by all jobs of "
    "the\n"
    "node: use --evict only on nodes without other jobs.\n"
    "\n"
    "Examples:\n"
    "  hearthctl bench /mnt/imagenet --threads 16 --need 800M\n"
    "  hearthctl bench /mnt/imagenet/train --files 5000 --evict\n";
static const CtlHelp help = {.usage = "PATH", .about = about, .notes = notes};

static void pass_clear(void *data)
{
    reading_clear(&((BenchPass *)data)->reading);
}

static void print_progress(const char *format, ...) G_GNUC_PRINTF(1, 2);
static void print_progress(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    fprintf(stderr, "bench: %s\n", text);
}

/* ---- hearthd ---- */

/* Bytes fetched by this node, and the number of active fills; -1 when hearthd does not answer. */
static gint64 bytes_fetched(const Bench *b, uint64_t *active)
{
    json_auto_t *status =
        b->volume ? ctl_call(b->ctl, json_pack("{s:s}", "op", "status"), NULL) : NULL;
    json_auto_t *volumes = status ? ctl_pages(b->ctl, "volumes", "volume", NULL) : NULL;
    const json_t *cache = json_object_get(status, "cache");
    gint64 sum = volumes ? (gint64)ctl_number(cache, "originBytes") : -1;
    for (size_t i = 0; i < json_array_size(volumes); i++)
        sum += (gint64)ctl_number(json_array_get(volumes, i), "bytesOrigin");
    *active = ctl_number(cache, "fillsActive");
    return sum;
}

/* A file is in the cache once it is complete and synced, which is after its reader has got it. */
static void wait_for_fills(const Bench *b)
{
    const gint64 end = g_get_monotonic_time() + SETTLE_SEC * G_USEC_PER_SEC;
    uint64_t active;
    while (bytes_fetched(b, &active) >= 0 && active > 0 && g_get_monotonic_time() < end)
        poll(NULL, 0, 50);
}

/* ---- passes ---- */

static gboolean drop_memory(const Bench *b, GError **error)
{
    bench_drop_pages(&b->files);
    if (!b->drop_caches || bench_drop_caches())
        return TRUE;
    g_set_error(error, G_IO_ERROR, g_io_error_from_errno(errno),
                "dropping the machine's page cache: %s; run it as root, on the node itself",
                g_strerror(errno));
    return FALSE;
}

static gboolean make_cold(const Bench *b, GError **error)
{
    wait_for_fills(b);
    /* Objects that hearthd still has open are read even after their eviction: let it close them. */
    poll(NULL, 0, HEARTHD_IDLE_MS);
    json_auto_t *reply =
        ctl_call_long(b->ctl, json_pack("{s:s, s:s}", "op", "evict", "volume", b->volume), error);
    if (!reply)
        return FALSE;
    return drop_memory(b, error);
}

static void measure(Bench *b, const char *state, gboolean random)
{
    const guint n = b->files.paths->len;
    BenchPass pass = {.state = state, .order = "sequential", .threads = 1};
    if (random) {
        pass.order = "random";
        pass.threads = (guint)b->threads;
    }
    g_autofree guint *order = random ? reading_shuffle(n, SEED) : g_new(guint, n);
    for (guint i = 0; !random && i < n; i++)
        order[i] = i;
    print_progress("%s, %s, %u thread%s, %d s at most ...", state, pass.order, pass.threads,
                   pass.threads == 1 ? "" : "s", b->seconds);
    reading_init(&pass.reading);
    uint64_t active;
    const gint64 before = bytes_fetched(b, &active);
    bench_read(&b->files, order, pass.threads, b->seconds * G_USEC_PER_SEC, &pass.reading);
    const gint64 after = bytes_fetched(b, &active);
    pass.ceph_bytes = before >= 0 && after >= before ? after - before : -1;
    pass.complete = pass.reading.files + pass.reading.failed == n;
    g_array_append_val(b->passes, pass);
}

/* Reads all files once, and drops from the list the files that there was no time for. */
static void warm_up(Bench *b)
{
    Reading reading;
    const guint n = b->files.paths->len;
    g_autofree guint *order = g_new(guint, n);
    for (guint i = 0; i < n; i++)
        order[i] = i;
    print_progress("reading %u files once, so that they are in the cache ...", n);
    reading_init(&reading);
    const guint begun = bench_read(&b->files, order, (guint)b->threads,
                                   (gint64)b->seconds * WARMING_PASSES * G_USEC_PER_SEC, &reading);
    if (begun < n && begun > 0) {
        g_ptr_array_set_size(b->files.paths, (gint)begun);
        b->files.bytes = reading.bytes;
        print_progress("there was time for only %u of them, which are measured", begun);
    }
    reading_clear(&reading);
    wait_for_fills(b);
}

/* Cold ones first: what they bring is what the others read. */
static gboolean run(Bench *b, GError **error)
{
    for (int random = 0; b->evict && random < 2; random++) {
        if (!make_cold(b, error))
            return FALSE;
        measure(b, "cold", random);
    }
    warm_up(b);
    for (int random = 0; random < 2; random++) {
        if (!drop_memory(b, error))
            return FALSE;
        measure(b, "warm", random);
    }
    warm_up(b);
    for (int random = 0; random < 2; random++)
        measure(b, "memory", random);
    return TRUE;
}

/* ---- the command ---- */

static gboolean find_volume(Bench *b, GError **error)
{
    g_autofree char *inside = NULL;
    g_autoptr(GError) why = NULL;
    /* A name without a slash would be taken for a volume's. */
    g_autofree char *path = g_canonicalize_filename(b->path, NULL);
    if (ctl_find_volume(b->ctl, path, &b->volume, &inside, &why))
        return TRUE;
    if (!b->evict && g_error_matches(why, G_IO_ERROR, G_IO_ERROR_NOT_FOUND))
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&why));
    return FALSE;
}

static gboolean prepare(Bench *b, GError **error)
{
    if (!find_volume(b, error) || !bench_find(b->path, (guint)b->files_max, &b->files, error))
        return FALSE;
    if (b->drop_caches && geteuid() != 0) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED,
                    "%s drops the machine's page cache: run it as root",
                    b->evict ? "--evict" : "--drop-caches");
        return FALSE;
    }
    if (b->evict)
        print_progress(
            "evicting all of volume %s from this node's cache, twice, and dropping the machine's "
            "page "
            "cache: other jobs here read from Ceph and disk again",
            b->volume);
    else if (b->drop_caches)
        print_progress("dropping the machine's page cache: other jobs here read from disk again");
    return TRUE;
}

static gboolean parse(Bench *b, int argc, char **argv, GError **error)
{
    g_autofree char *need = NULL;
    const GOptionEntry entries[] = {
        {"files", 'f', 0, G_OPTION_ARG_INT, &b->files_max, "Files at most (default: 10000)", "N"},
        {"seconds", 't', 0, G_OPTION_ARG_INT, &b->seconds, "Of each pass at most (default: 10)",
         "N"},
        {"threads", 'j', 0, G_OPTION_ARG_INT, &b->threads, "Readers in random order (default: 8)",
         "N"},
        {"need", 0, 0, G_OPTION_ARG_STRING, &need, "What the job reads a second: is it bound?",
         "SIZE"},
        {"evict", 0, 0, G_OPTION_ARG_NONE, &b->evict,
         "Measure it cold too; evicts the volume, and hurts others", NULL},
        {"drop-caches", 0, 0, G_OPTION_ARG_NONE, &b->drop_caches,
         "Drop the page cache of the machine, not of the path alone; hurts others", NULL},
        {"json", 0, 0, G_OPTION_ARG_NONE, &b->as_json, "Print one JSON object", NULL},
        {"wide", 'w', 0, G_OPTION_ARG_NONE, &b->wide, CTL_WIDE_HELP, NULL},
        G_OPTION_ENTRY_NULL};
    if (!ctl_parse(b->ctl, &argc, &argv, entries, &help, error))
        return FALSE;
    g_autoptr(GError) bad = NULL;
    if (argc != 2)
        ctl_usage_error(error, "bench: name one path; see hearthctl bench --help");
    else if (b->files_max < 1 || b->seconds < 1 || b->threads < 1 || b->threads > MAX_THREADS)
        ctl_usage_error(error, "bench: --files and --seconds are 1 or more, --threads 1 to %d",
                        MAX_THREADS);
    else if (need && !size_parse("--need", need, &b->need, &bad))
        ctl_usage_error(error, "%s", bad->message);
    else {
        b->path = argv[1];
        b->need_text = g_steal_pointer(&need);
        b->drop_caches |= b->evict;
        return TRUE;
    }
    return FALSE;
}

static int bench(Bench *b, int argc, char **argv, GError **error)
{
    if (!parse(b, argc, argv, error))
        return CTL_FAILED;
    if (!prepare(b, error))
        return CTL_FAILED;
    return run(b, error) ? bench_report(b) : CTL_FAILED;
}

int ctl_bench(Ctl *ctl, int argc, char **argv)
{
    Bench b = {.ctl = ctl, .files_max = 10000, .threads = 8, .seconds = 10};
    g_autoptr(GError) error = NULL;
    b.passes = g_array_new(FALSE, FALSE, sizeof(BenchPass));
    g_array_set_clear_func(b.passes, pass_clear);
    const int code = bench(&b, argc, argv, &error);
    g_array_unref(b.passes);
    bench_files_clear(&b.files);
    g_free(b.volume);
    g_free(b.need_text);
    return error ? ctl_fail(ctl, error) : code;
}
