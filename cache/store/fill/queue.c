/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which chunk is fetched next. Fills take turns within each queue: `wanted` have readers waiting,
 * `running` have chunks missing, `deferred` are small and left to their reader for a moment,
 * because a reader that fetches the only chunk on its own thread saves two thread switches per
 * file. Fills in `ahead` have no reader yet: they come last, and never use all workers while there
 * are readers.
 */
#include "cache/store/fill/internal.h"
#include <string.h>

#define READERS_AROUND_MS 1000

void fill_want_locked(Fills *fills, StoreFill *fill)
{
    if (!fill->ready || fill->in_wanted)
        return;
    TAILQ_INSERT_TAIL(&fills->wanted, fill, wanted_link);
    fill->in_wanted = TRUE;
    pthread_cond_signal(&fills->work);
}

static struct FillQueue *run_queue(Fills *fills, const StoreFill *fill)
{
    return fill->ahead ? &fills->ahead : &fills->running;
}

void fill_leave_queues_locked(Fills *fills, StoreFill *fill)
{
    if (fill->in_wanted)
        TAILQ_REMOVE(&fills->wanted, fill, wanted_link);
    if (fill->in_running)
        TAILQ_REMOVE(run_queue(fills, fill), fill, run_link);
    if (fill->in_deferred)
        TAILQ_REMOVE(&fills->deferred, fill, run_link);
    fill->in_wanted = fill->in_running = fill->in_deferred = FALSE;
}

static void run_locked(Fills *fills, StoreFill *fill)
{
    if (fill->in_deferred)
        TAILQ_REMOVE(&fills->deferred, fill, run_link);
    fill->in_deferred = FALSE;
    TAILQ_INSERT_TAIL(&fills->running, fill, run_link);
    fill->in_running = TRUE;
}

void fill_need_locked(Fills *fills, StoreFill *fill)
{
    if (!fill->ahead)
        return;
    if (fill->in_running)
        TAILQ_REMOVE(&fills->ahead, fill, run_link);
    fill->ahead = FALSE;
    if (fill->in_running)
        TAILQ_INSERT_TAIL(&fills->running, fill, run_link);
    pthread_cond_signal(&fills->work);
}

void fill_promote_locked(Fills *fills, StoreFill *fill)
{
    if (!fill->in_deferred)
        return;
    run_locked(fills, fill);
    pthread_cond_signal(&fills->work);
}

void fill_claim_locked(Fills *fills, StoreFill *fill, uint64_t chunk)
{
    fill->chunks[chunk] = CHUNK_BUSY;
    fill->busy++;
    fill->next = chunk + 1;
    if (--fill->missing == 0)
        fill_leave_queues_locked(fills, fill);
}

static uint64_t next_missing(const StoreFill *fill)
{
    const uint8_t *from = fill->chunks + fill->next, *end = fill->chunks + fill->n_chunks;
    const uint8_t *found = memchr(from, CHUNK_MISSING, (size_t)(end - from));
    if (!found)
        found = memchr(fill->chunks, CHUNK_MISSING, fill->n_chunks);
    return (uint64_t)(found - fill->chunks);
}

static StoreFill *pick_ahead_locked(Fills *fills, uint64_t now, uint64_t *chunk,
                                    uint64_t *wait_until_ms)
{
    gboolean readers = fills->reader_ms && now - fills->reader_ms < READERS_AROUND_MS;
    StoreFill *fill;
    TAILQ_FOREACH (fill, &fills->ahead, run_link)
        if (pace_allows_locked(fill->pace, wait_until_ms))
            break;
    if (!fill)
        return NULL;
    unsigned workers = fill->store->config.fill_threads;
    if (fills->ahead_busy >= (readers ? MAX(workers - 1, 1) : workers))
        return NULL; /* when one of them ends it tries again */
    TAILQ_REMOVE(&fills->ahead, fill, run_link);
    TAILQ_INSERT_TAIL(&fills->ahead, fill, run_link);
    *chunk = next_missing(fill);
    uint64_t left = fill->key.size - *chunk * fill->chunk_bytes;
    pace_take_locked(fill->pace, MIN(left, fill->chunk_bytes));
    fill_claim_locked(fills, fill, *chunk);
    fills->ahead_busy++;
    return fill;
}

StoreFill *fill_pick_locked(Fills *fills, uint64_t *chunk, uint64_t *wait_until_ms, gboolean *ahead)
{
    StoreFill *fill;
    *ahead = FALSE;
    while ((fill = TAILQ_FIRST(&fills->wanted))) {
        TAILQ_REMOVE(&fills->wanted, fill, wanted_link);
        fill->in_wanted = FALSE;
        Waiter *waiter;
        TAILQ_FOREACH (waiter, &fill->waiters, link)
            if (fill->chunks[waiter->chunk] == CHUNK_MISSING)
                break;
        if (!waiter)
            continue;
        *chunk = waiter->chunk;
        TAILQ_INSERT_TAIL(&fills->wanted, fill, wanted_link);
        fill->in_wanted = TRUE;
        fill_claim_locked(fills, fill, *chunk);
        return fill;
    }
    uint64_t now = monotonic_ms();
    while ((fill = TAILQ_FIRST(&fills->deferred)) && fill->not_before_ms <= now)
        run_locked(fills, fill);
    *wait_until_ms = fill ? fill->not_before_ms : 0;
    fill = TAILQ_FIRST(&fills->running);
    if (!fill) {
        fill = pick_ahead_locked(fills, now, chunk, wait_until_ms);
        *ahead = fill != NULL;
        return fill;
    }
    TAILQ_REMOVE(&fills->running, fill, run_link);
    TAILQ_INSERT_TAIL(&fills->running, fill, run_link);
    *chunk = next_missing(fill);
    fill_claim_locked(fills, fill, *chunk);
    return fill;
}

void fill_enqueue_locked(Fills *fills, StoreFill *fill)
{
    fill->ready = TRUE;
    fill->began_us = g_get_monotonic_time();
    atomic_fetch_add(&fills->started, 1);
    if (fill->ahead) {
        TAILQ_INSERT_TAIL(&fills->ahead, fill, run_link);
        fill->in_running = TRUE;
        pthread_cond_signal(&fills->work);
    } else if (fill->n_chunks > 1 || !TAILQ_EMPTY(&fill->waiters)) {
        TAILQ_INSERT_TAIL(&fills->running, fill, run_link);
        fill->in_running = TRUE;
        if (!TAILQ_EMPTY(&fill->waiters))
            fill_want_locked(fills, fill);
        pthread_cond_signal(&fills->work);
    } else {
        fill->not_before_ms = monotonic_ms() + fill->store->hooks.grace_ms;
        TAILQ_INSERT_TAIL(&fills->deferred, fill, run_link);
        fill->in_deferred = TRUE;
        if (!fills->timing)
            pthread_cond_signal(&fills->work);
    }
}
