/* SPDX-License-Identifier: Apache-2.0 */
/* hearthctl bench: prints the passes as a table or JSON, and a verdict for a job. */
#include "cmd/hearthctl/bench/bench.h"
#include <stdio.h>
#include <string.h>
#include "common/size.h"
#include "cmd/hearthctl/report/lines.h"

/* Share of a pass that must come from Ceph for the pass to count as cold. */
#define COLD_SHARE 0.9

static char *rate_text(double bytes)
{
    g_autofree char *text = size_format((uint64_t)bytes);
    return g_strconcat(text, "/s", NULL);
}

static char *latency_text(guint32 us)
{
    return us < 1000 ? g_strdup_printf("%u us", us) : g_strdup_printf("%.1f ms", us / 1e3);
}

enum { STATE, ORDER, THREADS, READ, RATE, FILES, FILES_RATE, P50, P99, CEPH };

static const TableColumn columns[] = {
    [STATE] = {"STATE", FALSE, 0, 0, 0},
    [ORDER] = {"ORDER", FALSE, 0, 0, 0},
    [THREADS] = {"THREADS", TRUE, 0, 2, 0},
    [READ] = {"READ", TRUE, 0, 3, 0},
    [RATE] = {"BYTES/S", TRUE, 0, 0, 0},
    [FILES] = {"FILES", TRUE, 0, 1, 0},
    [FILES_RATE] = {"FILES/S", TRUE, 0, 4, 0},
    [P50] = {"P50", TRUE, 0, 5, 0},
    [P99] = {"P99", TRUE, 0, 6, 0},
    [CEPH] = {"FROM CEPH", TRUE, 0, 7, 0},
};

static void add_table(Lines *lines, const Bench *b, const View *view)
{
    g_autoptr(Table) table = table_new(columns, G_N_ELEMENTS(columns));
    for (guint i = 0; i < b->passes->len; i++) {
        BenchPass *p = &g_array_index(b->passes, BenchPass, i);
        table_row(table);
        table_set(table, STATE, p->state);
        table_set(table, ORDER, p->order);
        table_take(table, THREADS, g_strdup_printf("%u", p->threads));
        table_take(table, READ, size_format(p->reading.bytes));
        table_take(table, RATE, rate_text(reading_bytes_per_s(&p->reading)));
        table_take(table, FILES, g_strdup_printf("%" G_GUINT64_FORMAT, p->reading.files));
        table_take(table, FILES_RATE, g_strdup_printf("%.0f", reading_files_per_s(&p->reading)));
        table_take(table, P50, latency_text(reading_percentile(&p->reading, 50)));
        table_take(table, P99, latency_text(reading_percentile(&p->reading, 99)));
        table_take(table, CEPH, p->ceph_bytes < 0 ? NULL : size_format((uint64_t)p->ceph_bytes));
    }
    lines_add_table(lines, view, table);
}

/* A sentence for the owner of a job, from the passes that read as jobs do. */
static char *verdict(const Bench *b)
{
    g_autoptr(GString) text = g_string_new(NULL);
    if (b->need)
        g_string_append_printf(
            text, "A job that reads %s/s with %d threads would be:", b->need_text, b->threads);
    else
        g_string_append_printf(
            text, "With %d threads, a job is storage-bound if it needs more than:", b->threads);
    const char *comma = "";
    for (guint i = 0; i < b->passes->len; i++) {
        const BenchPass *p = &g_array_index(b->passes, BenchPass, i);
        if (strcmp(p->order, "random") != 0)
            continue;
        const double rate = reading_bytes_per_s(&p->reading);
        g_autofree char *has = rate_text(rate);
        if (b->need)
            g_string_append_printf(text, "%s %s, %s (%s)", comma, p->state,
                                   reading_bound_text(reading_judge(rate, (double)b->need)), has);
        else
            g_string_append_printf(text, "%s %s, %s or %.0f files/s", comma, p->state, has,
                                   reading_files_per_s(&p->reading));
        comma = ";";
    }
    g_string_append_c(text, '.');
    return g_strdup(text->str);
}

static json_t *pass_json(BenchPass *p)
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
        json_array_append_new(passes, pass_json(&g_array_index(b->passes, BenchPass, i)));
    g_autofree char *path = g_utf8_make_valid(b->path, -1);
    json_auto_t *json = json_pack("{s:s, s:s, s:i, s:I, s:b, s:o, s:s}", "path", path, "volume",
                                  b->volume ? b->volume : "", "files", (int)b->files.paths->len,
                                  "bytes", (json_int_t)b->files.bytes, "moreFiles", b->files.more,
                                  "passes", passes, "verdict", text);
    lines_print_json(json);
}

/* Eviction drops the objects fetched for this volume; those of other volumes with the same files
 * stay. */
static void add_doubts(Lines *lines, const Bench *b, const View *view)
{
    for (guint i = 0; i < b->passes->len; i++) {
        const BenchPass *p = &g_array_index(b->passes, BenchPass, i);
        if (strcmp(p->state, "cold") != 0 || p->ceph_bytes < 0 ||
            (double)p->ceph_bytes >= COLD_SHARE * (double)p->reading.bytes)
            continue;
        g_autofree char *some = size_format((uint64_t)p->ceph_bytes);
        g_autofree char *all = size_format(p->reading.bytes);
        lines_add(
            lines, view,
            "It was not cold: only %s of %s came from Ceph, the rest is in the cache for another "
            "volume with the same files (hearthctl evict --all drops it).",
            some, all);
        return;
    }
}

char **bench_lines(const Bench *b, const View *view)
{
    Lines *lines = lines_new();
    g_autofree char *size = size_format(b->files.bytes);
    g_autofree char *text = verdict(b);
    g_autofree char *volume =
        b->volume ? g_strconcat("volume ", b->volume, NULL) : g_strdup("no volume of Hearth");
    lines_add(lines, view, "%s: %s%u files, %s, %s", b->path, b->files.more ? "the first " : "",
              b->files.paths->len, size, volume);
    lines_add(lines, view, "%s", "");
    add_table(lines, b, view);
    lines_add(lines, view, "%s", "");
    lines_add(lines, view, "%s", text);
    add_doubts(lines, b, view);
    if (b->volume && !b->drop_caches)
        lines_add(lines, view,
                  "Warm may be from memory in part, where hearthd serves the volume; "
                  "--drop-caches, as root, measures the disk.");
    return lines_end(lines);
}

int bench_report(const Bench *b)
{
    guint64 failed = 0;
    const View view = view_stdout(b->ctl, b->wide);
    if (b->as_json)
        print_json(b);
    else
        lines_print(bench_lines(b, &view));
    for (guint i = 0; i < b->passes->len; i++)
        failed += g_array_index(b->passes, BenchPass, i).reading.failed;
    if (failed > 0)
        fprintf(stderr, "hearthctl: %" G_GUINT64_FORMAT " reads of files failed\n", failed);
    return failed > 0 ? CTL_FAILED : CTL_OK;
}
