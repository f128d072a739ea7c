/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hearthctl bench: finds files and reads them as a data loader does: each thread takes the next
 * file, reads it completely, and keeps nothing.
 */
#include "cmd/hearthctl/bench/bench.h"
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <gio/gio.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/autofd.h"

#define BLOCK_BYTES (1u << 20)

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

void bench_files_clear(BenchFiles *files)
{
    g_clear_pointer(&files->paths, g_ptr_array_unref);
    *files = (BenchFiles){0};
}

gboolean bench_find(const char *path, guint max, BenchFiles *files, GError **error)
{
    g_autofree char *copy = g_strdup(path);
    char *const roots[] = {copy, NULL};
    *files = (BenchFiles){.paths = g_ptr_array_new_with_free_func(g_free)};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR | FTS_XDEV, by_name);
    int failure = tree ? 0 : errno;
    for (FTSENT *entry; tree && (entry = fts_read(tree));) {
        if (entry->fts_info == FTS_ERR || entry->fts_info == FTS_NS || entry->fts_info == FTS_DNR)
            failure = entry->fts_errno;
        if (entry->fts_info != FTS_F)
            continue;
        if (files->paths->len == max) {
            files->more = TRUE;
            break;
        }
        g_ptr_array_add(files->paths, g_strdup(entry->fts_path));
        files->bytes += (uint64_t)entry->fts_statp->st_size;
    }
    if (tree)
        fts_close(tree);
    if (files->paths->len > 0)
        return TRUE;
    if (failure)
        g_set_error(error, G_IO_ERROR, g_io_error_from_errno(failure), "%s: %s", path,
                    g_strerror(failure));
    else
        g_set_error(error, G_IO_ERROR, g_io_error_from_errno(ENOENT),
                    "%s: there is no file beneath it", path);
    bench_files_clear(files);
    return FALSE;
}

/* ---- reading ---- */

typedef struct Pass {
    const BenchFiles *files;
    const guint *order;
    gint64 end_us;
    atomic_uint next;
} Pass;

typedef struct Reader {
    Pass *pass;
    Reading reading;
    void *buffer;
    GThread *thread;
} Reader;

static int open_file(const char *path)
{
    const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    const int fd = open(path, flags | O_NOATIME);
    return fd < 0 && errno == EPERM ? open(path, flags) : fd; /* another's file */
}

/* FALSE: it could not be read. */
static gboolean read_file(Reader *reader, const char *path)
{
    const gint64 began = g_get_monotonic_time();
    hearth_autofd int fd = open_file(path);
    if (fd < 0)
        return FALSE;
    for (gboolean first = TRUE;; first = FALSE) {
        const ssize_t n = read(fd, reader->buffer, BLOCK_BYTES);
        if (n < 0)
            return FALSE;
        if (first) {
            const guint32 took = (guint32)MIN(g_get_monotonic_time() - began, G_MAXUINT32);
            g_array_append_val(reader->reading.latencies_us, took);
        }
        reader->reading.bytes += (uint64_t)n;
        if (n == 0)
            break;
        if (g_get_monotonic_time() >= reader->pass->end_us)
            return TRUE; /* a part of a large file counts as bytes alone */
    }
    reader->reading.files++;
    return TRUE;
}

static gpointer run_reader(gpointer data)
{
    Reader *reader = data;
    Pass *pass = reader->pass;
    while (g_get_monotonic_time() < pass->end_us) {
        const guint i = atomic_fetch_add(&pass->next, 1);
        if (i >= pass->files->paths->len)
            break;
        if (!read_file(reader, pass->files->paths->pdata[pass->order[i]]))
            reader->reading.failed++;
    }
    return NULL;
}

guint bench_read(const BenchFiles *files, const guint *order, guint threads, gint64 limit_us,
                 Reading *reading)
{
    g_autofree Reader *readers = g_new0(Reader, threads);
    const gint64 began = g_get_monotonic_time();
    Pass pass = {.files = files, .order = order, .end_us = began + limit_us};
    for (guint i = 0; i < threads; i++) {
        readers[i].pass = &pass;
        readers[i].buffer = g_malloc(BLOCK_BYTES);
        reading_init(&readers[i].reading);
        readers[i].thread = g_thread_new("reader", run_reader, &readers[i]);
    }
    for (guint i = 0; i < threads; i++)
        g_thread_join(readers[i].thread);
    reading->took_us = g_get_monotonic_time() - began;
    for (guint i = 0; i < threads; i++) {
        reading_add(reading, &readers[i].reading);
        reading_clear(&readers[i].reading);
        g_free(readers[i].buffer);
    }
    return MIN(atomic_load(&pass.next), files->paths->len);
}

/* ---- caches ---- */

void bench_drop_pages(const BenchFiles *files)
{
    for (guint i = 0; i < files->paths->len; i++) {
        hearth_autofd int fd = open_file(files->paths->pdata[i]);
        if (fd >= 0)
            posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    }
}

gboolean bench_drop_caches(void)
{
    hearth_autofd int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
    sync();
    /* Several times: inodes of overlayfs hold the inodes of the layers below them. */
    for (int i = 0; i < 3; i++)
        if (fd < 0 || pwrite(fd, "3", 1, 0) != 1)
            return FALSE;
    return TRUE;
}
