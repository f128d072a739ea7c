/* SPDX-License-Identifier: Apache-2.0 */
/*
 * References of a fill, and its end: completion or failure, and the release of its origin. These
 * steps are used by readers (fill.c), by workers (fetch.c) and by cancellation (fills.c).
 */
#include <unistd.h>
#include "cache/store/fill/internal.h"

/* --- references --- */

StoreFill *store_fill_ref(StoreFill *fill)
{
    atomic_fetch_add(&fill->refs, 1);
    return fill;
}

void fill_free(StoreFill *fill)
{
    fill_recent_forget(fill);
    if (fill->partial.fd >= 0)
        close(fill->partial.fd);
    if (fill->direct >= 0)
        close(fill->direct);
    pthread_cond_destroy(&fill->changed);
    store_pace_unref(fill->pace);
    g_free(fill->path);
    g_free(fill->parts);
    g_free(fill->chunks);
    g_free(fill->hashes);
    g_free(fill);
}

/* --- ends of a fill --- */

void fill_unpark_locked(Fills *fills, StoreFill *fill)
{
    if (!fill->is_parked)
        return;
    TAILQ_REMOVE(&fills->parked, fill, parked_link);
    fill->is_parked = FALSE;
    fills->n_parked--;
}

void fill_fail_locked(Fills *fills, StoreFill *fill, int error)
{
    if (fill_state(fill) != FILL_ACTIVE)
        return;
    fill->error = fill->result = error;
    atomic_store_explicit(&fill->state, FILL_FAILED, memory_order_release);
    fill_leave_queues_locked(fill);
    fill_unpark_locked(fills, fill);
    if (g_hash_table_lookup(fills->by_id, &fill->id) == fill)
        g_hash_table_remove(fills->by_id, &fill->id);
    if (fill->ready && error != -ECANCELED)
        atomic_fetch_add(&fills->failed, 1);
    fill_changed_locked(fill);
}

void fill_complete_locked(Fills *fills, StoreFill *fill, int result)
{
    if (fill_state(fill) != FILL_ACTIVE)
        return;
    fill->result = result;
    atomic_store_explicit(&fill->state, FILL_COMPLETE, memory_order_release);
    fill_unpark_locked(fills, fill);
    if (g_hash_table_lookup(fills->by_id, &fill->id) == fill)
        g_hash_table_remove(fills->by_id, &fill->id);
    if (fill->ready)
        atomic_fetch_add(result == 0 ? &fills->completed : &fills->failed, 1);
    if (fill->ready && result == 0)
        histogram_add(&fill->store->times.fills, g_get_monotonic_time() - fill->began_us);
    fill_changed_locked(fill);
}

/* Gives back what a terminal fill has of its origin. Drops the lock meanwhile, and its reference.
 */
void fill_release_if_idle_locked(Fills *fills, StoreFill *fill)
{
    Store *store = fill->store;
    if (fill_state(fill) == FILL_ACTIVE || fill->busy > 0 || fill->releasing)
        return;
    fill->releasing = TRUE;
    Origin *origin = fill->origin;
    OriginNode *node = fill->node;
    OriginFile *file = fill->file;
    const IndexTotals reserved = {fill->reserved, 1};
    const int64_t written = (int64_t)fill->written;
    fill->reserved = fill->written = 0;
    fills_unlock(fills);
    if (file)
        origin->ops->close(origin, file);
    if (node)
        origin->ops->put(origin, node);
    layout_partial_forget(&store->layout, &fill->partial);
    if (reserved.bytes)
        ledger_unreserve(&store->ledger, &reserved);
    ledger_written(&store->ledger, -written);
    pthread_mutex_lock(&fills->lock);
    fill->origin = NULL;
    fill->node = NULL;
    fill->file = NULL;
    LIST_REMOVE(fill, live_link);
    fills->n_live--;
    fill_source_leave_locked(fills, fill);
    pthread_cond_broadcast(&fills->released);
    if (atomic_fetch_sub(&fill->refs, 1) != 1)
        return;
    fills_unlock(fills);
    fill_free(fill);
    pthread_mutex_lock(&fills->lock);
}
