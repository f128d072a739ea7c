/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All fills together: starting the workers, cancelling the fills of an origin, stopping. A fill is
 * cancelled by failing it; its origin is released by the last thread that uses it.
 */
#include <errno.h>
#include <gio/gio.h>
#include "cache/store/fill/internal.h"
#include "common/io_error.h"

static StoreFill *find_live_locked(Fills *fills, const Origin *origin)
{
    StoreFill *fill;
    LIST_FOREACH (fill, &fills->live, live_link)
        if (!origin || fill->origin == origin)
            break;
    return fill;
}

static void cancel_locked(Fills *fills, Origin *origin)
{
    for (;;) {
        StoreFill *fill, *idle = NULL;
        LIST_FOREACH (fill, &fills->live, live_link) {
            if (origin && fill->origin != origin)
                continue;
            fill_fail_locked(fills, fill, -ECANCELED);
            if (fill->busy == 0 && !fill->releasing)
                idle = fill;
        }
        if (idle)
            fill_release_if_idle_locked(fills, idle);
        else if (find_live_locked(fills, origin))
            fills_wait(fills, &fills->released);
        else
            return;
    }
}

void store_cancel_fills(Store *store, Origin *origin)
{
    pthread_mutex_lock(&store->fills->lock);
    cancel_locked(store->fills, origin);
    fills_unlock(store->fills);
}

void store_spoil_fills(Store *store, const Origin *origin, uint64_t ino)
{
    Fills *fills = store->fills;
    StoreFill *fill;
    pthread_mutex_lock(&fills->lock);
    LIST_FOREACH (fill, &fills->live, live_link) {
        if (fill->origin != origin || fill->key.ino != ino)
            continue;
        fill->spoiled = TRUE;
        if (g_hash_table_lookup(fills->by_id, &fill->id) == fill)
            g_hash_table_remove(fills->by_id, &fill->id);
    }
    fills_unlock(fills);
}

void fills_init(Store *store)
{
    Fills *fills = store->fills = g_new0(Fills, 1);
    pthread_mutex_init(&fills->lock, NULL);
    cond_init_monotonic(&fills->work);
    pthread_cond_init(&fills->released, NULL);
    fills->by_id = g_hash_table_new(object_id_hash, object_id_equal);
    LIST_INIT(&fills->live);
    TAILQ_INIT(&fills->parked);
    fills->sources = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    TAILQ_INIT(&fills->turns);
    TAILQ_INIT(&fills->picks);
}

gboolean fills_start(Store *store, GError **error)
{
    Fills *fills = store->fills;
    fills->run_worker = fill_worker;
    int rc = fill_workers_init(fills, store);
    if (rc != 0)
        return io_fail(error, g_io_error_from_errno(rc), "cache: %u fill buffers of %zu bytes: %s",
                       store->config.fill_threads, store->config.chunk_bytes, g_strerror(rc));
    pthread_mutex_lock(&fills->lock);
    rc = fill_start_worker_locked(fills);
    fills_unlock(fills);
    if (rc != 0)
        return io_fail(error, g_io_error_from_errno(rc), "cache: starting a fill thread: %s",
                       g_strerror(rc));
    return TRUE;
}

void fills_stop(Store *store)
{
    Fills *fills = store->fills;
    pthread_mutex_lock(&fills->lock);
    fills->stop = TRUE;
    cancel_locked(fills, NULL);
    pthread_cond_broadcast(&fills->work);
    fills_unlock(fills);
    fill_workers_join(fills);
}

void fills_destroy(Store *store)
{
    Fills *fills = store->fills;
    g_hash_table_destroy(fills->by_id);
    g_hash_table_destroy(fills->sources);
    if (fills->workers)
        fill_workers_clear(fills);
    pthread_cond_destroy(&fills->work);
    pthread_cond_destroy(&fills->released);
    pthread_mutex_destroy(&fills->lock);
    g_free(fills);
}
