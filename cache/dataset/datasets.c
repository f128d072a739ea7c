/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One lock guards the table and every dataset's state; it is held across no call to an origin and
 * no work on files. A dataset's `using` is the origin its thread works with: always that of a
 * member, which waits in dataset_leave() until the thread is done with it.
 */
#include "cache/dataset/datasets.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include "cache/dataset/files.h"
#include "cache/dataset/internal.h"
#include "proto/wire.h"
#include "common/monotonic.h"

static void begin_locked(Dataset *d)
{
    dataset_join_thread_locked(d);
    g_clear_error(&d->error);
    atomic_store(&d->progress.files, 0);
    atomic_store(&d->progress.directories, 0);
    atomic_store(&d->progress.bytes, 0);
    atomic_store(&d->progress.cancel, FALSE);
    d->using = d->members->pdata[0];
    d->reported = FALSE;
    d->state = DATASET_MAKING;
    int failed = pthread_create(&d->thread, NULL, dataset_run_make, d);
    d->has_thread = failed == 0;
    if (failed) {
        d->state = DATASET_FAILED;
        d->using = NULL;
        g_set_error(&d->error, G_IO_ERROR, G_IO_ERROR_FAILED, "cannot start a thread: %s",
                    g_strerror(failed));
    }
}

/* ---- joining and leaving */

static gboolean fail_precondition(GError **error, const char *why)
{
    return wire_fail(error, WIRE_ERROR_FAILED_PRECONDITION, "%s", why);
}

static gboolean can_serve(Datasets *all, GError **error)
{
    StoreStats stats = {0};
    store_stats(all->store, &stats);
    if (stats.disk == STORE_DISK_BYPASS)
        return fail_precondition(error,
                                 "the cache disk fails and is not used for now; see hearthd's log");
    g_autoptr(GError) cause = NULL;
    if (!all->any_filesystem && !manifests_layer_works(all->objects, &cause))
        return fail_precondition(error, cause->message);
    return TRUE;
}

Dataset *datasets_join(Datasets *all, Origin *origin, gboolean immutable, GError **error)
{
    OriginNode *node;
    OriginAttr root;
    char id[DATASET_ID];
    int r = origin->ops->root(origin, &node, &root);
    if (r < 0) {
        g_set_error(error, G_IO_ERROR, g_io_error_from_errno(-r), "the volume's root: %s",
                    g_strerror(-r));
        return NULL;
    }
    origin->ops->put(origin, node);
    if (!root.snapshot && !immutable) {
        fail_precondition(error, "the volume is no snapshot, its files may change");
        return NULL;
    }
    if (!can_serve(all, error))
        return NULL;
    dataset_make_id(origin, &root, id);
    pthread_mutex_lock(&all->lock);
    Dataset *d = g_hash_table_lookup(all->by_id, id);
    if (!d) {
        d = g_new0(Dataset, 1);
        d->all = all;
        d->root = root;
        d->members = g_ptr_array_new();
        memcpy(d->id, id, sizeof(d->id));
        g_hash_table_insert(all->by_id, d->id, d);
    }
    d->references++;
    g_ptr_array_add(d->members, origin);
    pthread_mutex_unlock(&all->lock);
    return d;
}

gboolean dataset_leave(Dataset *d, Origin *origin, gint64 timeout_ms)
{
    if (!d)
        return TRUE;
    Datasets *all = d->all;
    const struct timespec deadline = deadline_after_ms((uint64_t)MAX(timeout_ms, 0));
    pthread_mutex_lock(&all->lock);
    while (d->using == origin) {
        atomic_store(&d->progress.cancel, TRUE);
        if (pthread_cond_timedwait(&all->changed, &all->lock, &deadline) == ETIMEDOUT &&
            d->using == origin) {
            pthread_mutex_unlock(&all->lock);
            return FALSE;
        }
    }
    g_ptr_array_remove(d->members, origin);
    gboolean last = d->members->len == 0;
    if (last) {
        g_hash_table_remove(all->by_id, d->id);
        if (d->manifest && atomic_load(&d->manifest->unreadable))
            g_warning("dataset %s: its manifest could not be read from the cache disk; it is "
                      "built again when the dataset is next staged",
                      d->id);
    }
    if (!last && d->state == DATASET_FAILED &&
        g_error_matches(d->error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
        begin_locked(d); /* for the volumes that stay */
    pthread_cond_broadcast(&all->changed);
    dataset_unref_locked(d);
    pthread_mutex_unlock(&all->lock);
    if (last)
        datasets_prune(all);
    return TRUE;
}

/* ---- reports */

static void report_locked(Dataset *d, DatasetReport *report)
{
    *report = (DatasetReport){.ready = d->state == DATASET_READY};
    memcpy(report->id, d->id, sizeof(report->id));
    if (!report->ready) {
        report->files = atomic_load(&d->progress.files);
        report->directories = atomic_load(&d->progress.directories);
        report->bytes = atomic_load(&d->progress.bytes);
        return;
    }
    const ManifestFooter *f = &d->manifest->footer;
    report->readable = (f->flags & MANIFEST_READABLE) != 0;
    report->files = f->files;
    report->directories = f->directories;
    report->bytes = f->bytes;
    report->cached_files = d->files_held;
    report->cached_bytes = d->bytes_held;
}

/* The counted number, plus objects filled and minus objects evicted since the count. */
static uint64_t adjust_count(uint64_t counted, uint64_t tag_then, uint64_t tag_now, uint64_t most)
{
    int64_t sum = (int64_t)counted + (int64_t)tag_now - (int64_t)tag_then;
    return sum < 0 ? 0 : MIN((uint64_t)sum, most);
}

void dataset_report(Dataset *d, DatasetReport *report)
{
    uint64_t bytes = 0, objects = 0;
    store_tag_usage(d->all->store, d->id, &bytes, &objects);
    pthread_mutex_lock(&d->all->lock);
    report_locked(d, report);
    if (report->ready) {
        report->cached_files = adjust_count(d->files_held, d->tag_objects, objects, report->files);
        report->cached_bytes = adjust_count(d->bytes_held, d->tag_bytes, bytes, report->bytes);
    }
    pthread_mutex_unlock(&d->all->lock);
}

/* UNAVAILABLE when Ceph did not answer: the caller may try again. Otherwise a session can serve the
 * volume. */
static void set_failure(const Dataset *d, const GError *cause, GError **error)
{
    gboolean again = g_error_matches(cause, G_IO_ERROR, G_IO_ERROR_CANCELLED) ||
                     g_error_matches(cause, G_IO_ERROR, G_IO_ERROR_TIMED_OUT) ||
                     g_error_matches(cause, G_IO_ERROR, G_IO_ERROR_NOT_CONNECTED);
    wire_fail(error, again ? WIRE_ERROR_UNAVAILABLE : WIRE_ERROR_FAILED_PRECONDITION,
              "the manifest of dataset %s cannot be made: %s", d->id, cause->message);
}

gboolean datasets_report(Datasets *all, const char *id, DatasetReport *report)
{
    pthread_mutex_lock(&all->lock);
    Dataset *d = g_hash_table_lookup(all->by_id, id);
    d = d && d->state == DATASET_READY && d->counted ? d : NULL;
    if (d)
        d->references++;
    pthread_mutex_unlock(&all->lock);
    if (!d)
        return FALSE;
    dataset_report(d, report);
    dataset_unref(d);
    return TRUE;
}

gboolean dataset_wait(Dataset *d, gint64 wait_ms, DatasetReport *report, GError **error)
{
    Datasets *all = d->all;
    gboolean good = TRUE;
    const struct timespec deadline = deadline_after_ms((uint64_t)MAX(wait_ms, 0));
    pthread_mutex_lock(&all->lock);
    if ((d->state == DATASET_IDLE || (d->state == DATASET_FAILED && d->reported)) &&
        d->members->len)
        begin_locked(d);
    while (d->state == DATASET_MAKING && d->members->len &&
           pthread_cond_timedwait(&all->changed, &all->lock, &deadline) != ETIMEDOUT)
        ;
    report_locked(d, report);
    if (!d->members->len) {
        wire_fail(error, WIRE_ERROR_UNAVAILABLE, "the volume was closed meanwhile");
        good = FALSE;
    } else if (d->state == DATASET_FAILED) {
        set_failure(d, d->error, error);
        d->reported = TRUE;
        good = FALSE;
    }
    pthread_mutex_unlock(&all->lock);
    return good;
}

/* ---- life */

Datasets *datasets_new(Store *store, const char *cache_dir, gboolean any_filesystem)
{
    Datasets *all = g_new0(Datasets, 1);
    all->store = store;
    all->cache_dir = g_strdup(cache_dir);
    all->objects = g_build_filename(cache_dir, "objects", NULL);
    all->any_filesystem = any_filesystem;
    all->started_us = g_get_monotonic_time();
    pthread_mutex_init(&all->lock, NULL);
    cond_init_monotonic(&all->changed);
    all->by_id = g_hash_table_new(g_str_hash, g_str_equal);
    datasets_prune(all);
    int failed = pthread_create(&all->counter, NULL, datasets_run_counter, all);
    if (failed)
        g_error("cannot start a thread: %s", g_strerror(failed));
    return all;
}

void datasets_free(Datasets *all)
{
    if (!all)
        return;
    pthread_mutex_lock(&all->lock);
    all->stopping = TRUE;
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->lock);
    pthread_join(all->counter, NULL);
    /* A dataset that could not be left ends with the process. */
    if (g_hash_table_size(all->by_id))
        return;
    g_hash_table_unref(all->by_id);
    pthread_cond_destroy(&all->changed);
    pthread_mutex_destroy(&all->lock);
    g_free(all->cache_dir);
    g_free(all->objects);
    g_free(all);
}
