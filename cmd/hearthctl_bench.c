/*
 * hearthctl bench: how fast a path is read when it is cold, warm in the node's cache, and in
 * memory; one file after another, and by many threads in random order. It reads, and nothing else,
 * unless --evict is given.
 *
 * What was measured is checked, not believed: hearthd's counters tell how much came from Ceph
 * meanwhile.
 */
#include "cmd/hearthctl_bench.h"
#include <errno.h>
#include <gio/gio.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "cache/control/size.h"
#include "cache/report/table.h"

#define SEED 1 /* the same order each time, so that runs compare */
#define SETTLE_SEC 30
#define WARMING_PASSES 6 /* of time, to bring what is cold into the cache */
#define MAX_THREADS 256

static const char about[] =
    "Measures how fast what is beneath PATH is read: cold, warm from the node's "
    "cache, from memory.";
static const char notes[] =
    "PATH is on a mounted volume of Hearth, or any directory, to compare with. \"sequential\" is "
    "one\n"
    "reader after the order of names, \"random\" --threads of them in random order, as loaders "
    "do;\n"
    "p50 and p99 are of opening a file and its first read, of 1 MiB at most. FROM CEPH is what "
    "the\n"
    "node fetched meanwhile, for others too. Without --evict nothing is measured cold, and before\n"
    "\"warm\" all is read once; the path's own pages are dropped from memory. What is evicted has "
    "to\n"
    "be fetched from Ceph again by everybody: --evict is for nodes without other jobs.\n"
    "\n"
    "Examples:\n"
    "  hearthctl bench /mnt/imagenet --threads 16 --need 800M\n"
    "  hearthctl bench /mnt/imagenet/train --files 5000 --evict\n";

typedef struct Bench {
    Ctl *ctl;
    const char *path;
    int files_max, threads, seconds;
    gboolean evict, drop_caches, as_json;
    uint64_t need; /* bytes a second; 0: not asked */
    char *volume;  /* NULL: not on Hearth */
    BenchFiles files;
    GArray *passes; /* Pass */
} Bench;

typedef struct Pass {
    const char *state, *order;
    guint threads;
    gboolean complete; /* all files were begun and none was left by the time */
    gint64 ceph_bytes; /* -1: not known */
    Reading reading;
} Pass;

static void pass_clear(void *data)
{
    reading_clear(&((Pass *)data)->reading);
}

static void tell(const char *format, ...) G_GNUC_PRINTF(1, 2);
static void tell(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    fprintf(stderr, "bench: %s\n", text);
}

/* ---- hearthd ---- */

/* All that this node has fetched, and *active fills; -1: hearthd does not tell. */
static gint64 fetched(const Bench *b, uint64_t *active)
{
    json_t *status = b->volume ? ctl_call(b->ctl, json_pack("{s:s}", "op", "status"), NULL) : NULL;
    json_t *volumes = status ? ctl_pages(b->ctl, "volumes", "volume", NULL) : NULL;
    const json_t *cache = json_object_get(status, "cache");
    gint64 sum = volumes ? (gint64)ctl_number(cache, "originBytes") : -1;
    for (size_t i = 0; i < json_array_size(volumes); i++)
        sum += (gint64)ctl_number(json_array_get(volumes, i), "bytesOrigin");
    *active = ctl_number(cache, "fillsActive");
    json_decref(status);
    json_decref(volumes);
    return sum;
}

/* Files are in the cache when they are whole and synced, which is after their reader has them. */
static void settle(const Bench *b)
{
    const gint64 end = g_get_monotonic_time() + SETTLE_SEC * G_USEC_PER_SEC;
    uint64_t active;
    while (fetched(b, &active) >= 0 && active > 0 && g_get_monotonic_time() < end)
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
    settle(b);
    json_t *reply =
        ctl_call(b->ctl, json_pack("{s:s, s:s}", "op", "evict", "volume", b->volume), error);
    if (!reply)
        return FALSE;
    json_decref(reply);
    return drop_memory(b, error);
}

static void measure(Bench *b, const char *state, gboolean random)
{
    const guint n = b->files.paths->len;
    Pass pass = {.state = state,
                 .order = random ? "random" : "sequential",
                 .threads = random ? (guint)b->threads : 1};
    g_autofree guint *order = random ? reading_shuffle(n, SEED) : g_new(guint, n);
    for (guint i = 0; !random && i < n; i++)
        order[i] = i;
    tell("%s, %s, %u thread%s, %d s at most ...", state, pass.order, pass.threads,
         pass.threads == 1 ? "" : "s", b->seconds);
    reading_init(&pass.reading);
    uint64_t active;
    const gint64 before = fetched(b, &active);
    bench_read(&b->files, order, pass.threads, b->seconds * G_USEC_PER_SEC, &pass.reading);
    const gint64 after = fetched(b, &active);
    pass.ceph_bytes = before >= 0 && after >= before ? after - before : -1;
    pass.complete = pass.reading.files + pass.reading.failed == n;
    g_array_append_val(b->passes, pass);
}

/* Reads all of it once, and forgets of the files what there was no time for. */
static void warm_up(Bench *b)
{
    Reading reading;
    const guint n = b->files.paths->len;
    g_autofree guint *order = g_new(guint, n);
    for (guint i = 0; i < n; i++)
        order[i] = i;
    tell("reading %u files once, so that they are in the cache ...", n);
    reading_init(&reading);
    const guint begun = bench_read(&b->files, order, (guint)b->threads,
                                   (gint64)b->seconds * WARMING_PASSES * G_USEC_PER_SEC, &reading);
    if (begun < n && begun > 0) {
        g_ptr_array_set_size(b->files.paths, (gint)begun);
        b->files.bytes = reading.bytes;
        tell("there was time for %u of them: these are measured", begun);
    }
    reading_clear(&reading);
    settle(b);
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

/* ---- what is told ---- */

static char *rate_text(double bytes)
{
    g_autofree char *text = size_format((uint64_t)bytes);
    return g_strconcat(text, "/s", NULL);
}

static void print_table(const Bench *b)
{
    static const TableColumn columns[] = {
        {"STATE", FALSE, 0},  {"ORDER", FALSE, 0},   {"THREADS", TRUE, 0}, {"READ", TRUE, 0},
        {"BYTES/S", TRUE, 0}, {"FILES", TRUE, 0},    {"FILES/S", TRUE, 0}, {"P50", TRUE, 0},
        {"P99", TRUE, 0},     {"FROM CEPH", TRUE, 0}};
    g_autoptr(Table) table = table_new(columns, G_N_ELEMENTS(columns));
    for (guint i = 0; i < b->passes->len; i++) {
        Pass *p = &g_array_index(b->passes, Pass, i);
        table_row(table);
        table_set(table, 0, p->state);
        table_set(table, 1, p->order);
        table_take(table, 2, g_strdup_printf("%u", p->threads));
        table_take(table, 3, size_format(p->reading.bytes));
        table_take(table, 4, rate_text(reading_bytes_per_s(&p->reading)));
        table_take(table, 5, g_strdup_printf("%" G_GUINT64_FORMAT, p->reading.files));
        table_take(table, 6, g_strdup_printf("%.0f", reading_files_per_s(&p->reading)));
        table_take(table, 7, g_strdup_printf("%.2f ms", reading_percentile(&p->reading, 50) / 1e3));
        table_take(table, 8, g_strdup_printf("%.2f ms", reading_percentile(&p->reading, 99) / 1e3));
        table_take(table, 9, p->ceph_bytes < 0 ? NULL : size_format((uint64_t)p->ceph_bytes));
    }
    g_auto(GStrv) lines = table_lines(table, 0);
    for (char **line = lines; *line; line++)
        printf("%s\n", *line);
}

/* The line for who has a job, of the passes that read as jobs do. */
static char *verdict(const Bench *b)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autofree char *need = rate_text((double)b->need);
    if (b->need)
        g_string_append_printf(text, "A job that reads %s with %d threads is", need, b->threads);
    else
        g_string_append_printf(text, "With %d threads a job is storage-bound that wants more than",
                               b->threads);
    const char *comma = "";
    for (guint i = 0; i < b->passes->len; i++) {
        const Pass *p = &g_array_index(b->passes, Pass, i);
        if (strcmp(p->order, "random") != 0)
            continue;
        const double rate = reading_bytes_per_s(&p->reading);
        g_autofree char *has = rate_text(rate);
        if (b->need)
            g_string_append_printf(text, "%s %s %s (%s)", comma, p->state,
                                   reading_bound_text(reading_judge(rate, (double)b->need)), has);
        else
            g_string_append_printf(text, "%s %s %s or %.0f files/s", comma, p->state, has,
                                   reading_files_per_s(&p->reading));
        comma = ",";
    }
    g_string_append_c(text, '.');
    return g_strdup(text->str);
}

static json_t *pass_json(Pass *p)
{
    json_t *json = json_pack(
        "{s:s, s:s, s:i, s:I, s:I, s:I, s:f, s:f, s:f, s:i, s:i, s:b}", "state", p->state, "order",
        p->order, "threads", (int)p->threads, "files", (json_int_t)p->reading.files, "bytes",
        (json_int_t)p->reading.bytes, "failed", (json_int_t)p->reading.failed, "seconds",
        (double)p->reading.took_us / G_USEC_PER_SEC, "bytesPerSec",
        reading_bytes_per_s(&p->reading), "filesPerSec", reading_files_per_s(&p->reading), "p50Us",
        (int)reading_percentile(&p->reading, 50), "p99Us", (int)reading_percentile(&p->reading, 99),
        "complete", p->complete);
    json_object_set_new(json, "cephBytes",
                        p->ceph_bytes < 0 ? json_null() : json_integer(p->ceph_bytes));
    return json;
}

static void print_json(const Bench *b)
{
    json_t *passes = json_array();
    g_autofree char *text = verdict(b);
    for (guint i = 0; i < b->passes->len; i++)
        json_array_append_new(passes, pass_json(&g_array_index(b->passes, Pass, i)));
    g_autofree char *path = g_utf8_make_valid(b->path, -1);
    json_t *json = json_pack("{s:s, s:s, s:i, s:I, s:b, s:o, s:s}", "path", path, "volume",
                             b->volume ? b->volume : "", "files", (int)b->files.paths->len, "bytes",
                             (json_int_t)b->files.bytes, "moreFiles", b->files.more, "passes",
                             passes, "verdict", text);
    json_dumpf(json, stdout, JSON_INDENT(2));
    printf("\n");
    json_decref(json);
}

static void print_plain(const Bench *b)
{
    g_autofree char *size = size_format(b->files.bytes);
    g_autofree char *text = verdict(b);
    printf("%s: %s%u files, %s%s%s\n\n", b->path, b->files.more ? "the first " : "",
           b->files.paths->len, size, b->volume ? ", volume " : ", no volume of Hearth",
           b->volume ? b->volume : "");
    print_table(b);
    printf("\n%s\n", text);
    if (b->volume && !b->drop_caches)
        printf("Warm may be from memory in part, where hearthd serves the volume; --drop-caches, "
               "as root, "
               "measures the disk.\n");
}

/* ---- the command ---- */

static gboolean find_volume(Bench *b, GError **error)
{
    g_autofree char *inside = NULL;
    g_autoptr(GError) why = NULL;
    /* A name without a slash would be taken for a volume's. */
    g_autofree char *path = g_canonicalize_filename(b->path, NULL);
    if (ctl_find_volume(path, &b->volume, &inside, &why))
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
        tell("evicting all of volume %s from this node's cache, twice, and dropping the machine's "
             "page "
             "cache: other jobs here read from Ceph and disk again",
             b->volume);
    else if (b->drop_caches)
        tell("dropping the machine's page cache: other jobs here read from disk again");
    return TRUE;
}

static int report(const Bench *b)
{
    guint64 failed = 0;
    if (b->as_json)
        print_json(b);
    else
        print_plain(b);
    for (guint i = 0; i < b->passes->len; i++)
        failed += g_array_index(b->passes, Pass, i).reading.failed;
    if (failed > 0)
        fprintf(stderr, "hearthctl: %" G_GUINT64_FORMAT " reads of files failed\n", failed);
    return failed > 0 ? CTL_FAILED : CTL_OK;
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
        G_OPTION_ENTRY_NULL};
    if (!ctl_parse(b->ctl, &argc, &argv, entries, "PATH", about, notes, error))
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
        b->drop_caches |= b->evict;
        return TRUE;
    }
    return FALSE;
}

int ctl_bench(Ctl *ctl, int argc, char **argv)
{
    Bench b = {.ctl = ctl, .files_max = 10000, .threads = 8, .seconds = 10};
    g_autoptr(GError) error = NULL;
    b.passes = g_array_new(FALSE, FALSE, sizeof(Pass));
    g_array_set_clear_func(b.passes, pass_clear);
    int code = CTL_FAILED;
    if (parse(&b, argc, argv, &error) && prepare(&b, &error) && run(&b, &error))
        code = report(&b);
    g_array_unref(b.passes);
    bench_files_clear(&b.files);
    g_free(b.volume);
    return error ? ctl_fail(error) : code;
}
