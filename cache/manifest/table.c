/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer sorts records in memory and spills full runs to unnamed files; at the end it merges
 * the runs. build.c uses it.
 */
#include "cache/manifest/table.h"
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "cache/manifest/file_io.h"

/* 8 MiB a run; the merge reads each through a buffer of BUFFER records. */
#define RUN (1u << 19)
#define BUFFER 1024u

typedef struct Run {
    int fd; /* -1: in memory */
    uint64_t left;
    TableRecord *buffer; /* of the writer's for the one in memory */
    size_t at, held;
} Run;

struct TableWriter {
    char *dir;
    TableRecord *records;
    size_t n;
    GArray *runs;
};

static int compare(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(TableRecord));
}

TableWriter *table_writer_new(const char *dir)
{
    TableWriter *w = g_new0(TableWriter, 1);
    w->dir = g_strdup(dir);
    w->records = g_new(TableRecord, RUN);
    w->runs = g_array_new(FALSE, TRUE, sizeof(Run));
    return w;
}

void table_writer_free(TableWriter *w)
{
    if (!w)
        return;
    for (guint i = 0; i < w->runs->len; i++) {
        Run *run = &g_array_index(w->runs, Run, i);
        if (run->fd >= 0) {
            close(run->fd);
            g_free(run->buffer);
        }
    }
    g_array_unref(w->runs);
    g_free(w->records);
    g_free(w->dir);
    g_free(w);
}

static gboolean spill(TableWriter *w, GError **error)
{
    Run run = {.left = w->n};
    qsort(w->records, w->n, sizeof(TableRecord), compare);
    run.fd = open(w->dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (run.fd < 0)
        return file_io_fail(error, w->dir);
    g_array_append_val(w->runs, run);
    size_t n = w->n;
    w->n = 0;
    return file_io_write(run.fd, w->records, n * sizeof(TableRecord),
                         "writing the manifest's table", error);
}

gboolean table_add(TableWriter *w, const ObjectId *id, uint64_t at, GError **error)
{
    if (w->n == RUN && !spill(w, error))
        return FALSE;
    TableRecord *record = &w->records[w->n++];
    record->at = htole64(at);
    memcpy(record->id, id->bytes, sizeof(record->id));
    return TRUE;
}

uint64_t table_bytes(const TableWriter *w)
{
    return (w->runs->len * (uint64_t)RUN + w->n) * sizeof(TableRecord);
}

/* Makes sure that the run's next record is at buffer[at]; FALSE at the end or on an error. */
static gboolean refill(Run *run, uint64_t *position, GError **error)
{
    if (run->at < run->held)
        return TRUE;
    if (run->left == 0 || run->fd < 0)
        return FALSE;
    size_t want = MIN(run->left, BUFFER) * sizeof(TableRecord), got = 0;
    while (got < want) {
        ssize_t n = pread(run->fd, (char *)run->buffer + got, want - got, (off_t)(*position + got));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return file_io_fail(error, "reading the manifest's table");
        got += (size_t)n;
    }
    *position += want;
    run->held = want / sizeof(TableRecord);
    run->left -= run->held;
    run->at = 0;
    return TRUE;
}

/* The run with the least next record, or NULL at the end of all. */
static Run *least(GArray *runs, uint64_t *positions, GError **error)
{
    Run *best = NULL;
    for (guint i = 0; i < runs->len; i++) {
        Run *run = &g_array_index(runs, Run, i);
        g_autoptr(GError) cause = NULL;
        if (!refill(run, &positions[i], &cause)) {
            if (cause) {
                g_propagate_error(error, g_steal_pointer(&cause));
                return NULL;
            }
            continue;
        }
        if (!best || compare(&run->buffer[run->at], &best->buffer[best->at]) < 0)
            best = run;
    }
    return best;
}

gboolean table_finish(TableWriter *w, int fd, uint64_t *records, GError **error)
{
    qsort(w->records, w->n, sizeof(TableRecord), compare);
    for (guint i = 0; i < w->runs->len; i++)
        g_array_index(w->runs, Run, i).buffer = g_new(TableRecord, BUFFER);
    Run last = {.fd = -1, .buffer = w->records, .held = w->n};
    g_array_append_val(w->runs, last);
    g_autofree uint64_t *positions = g_new0(uint64_t, w->runs->len);
    g_autofree TableRecord *out = g_new(TableRecord, BUFFER);
    size_t held = 0;
    g_autoptr(GError) cause = NULL;
    *records = 0;
    for (Run *run; (run = least(w->runs, positions, &cause));) {
        const TableRecord *record = &run->buffer[run->at++];
        out[held++] = *record;
        (*records)++;
        if (held == BUFFER) {
            if (!file_io_write(fd, out, held * sizeof(*out), "writing the manifest's table", error))
                return FALSE;
            held = 0;
        }
    }
    if (cause) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    return file_io_write(fd, out, held * sizeof(*out), "writing the manifest's table", error);
}

gboolean table_may_be(const TableRecord *record, const ObjectId *id)
{
    return memcmp(record->id, id->bytes, sizeof(record->id)) == 0;
}

uint64_t table_first(const TableRecord *records, uint64_t n, const ObjectId *id)
{
    uint64_t low = 0, high = n;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (memcmp(records[middle].id, id->bytes, sizeof(records[middle].id)) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && table_may_be(&records[low], id) ? low : n;
}
