/*
 * What is fetched next. Fills take turns within each queue: `wanted` have readers waiting,
 * `running` have chunks missing, `deferred` are small and left to their reader until their time has
 * come: a reader that fetches the only chunk on its own thread saves two thread switches per file.
 */
#include "cache/store/fill_internal.h"
#include <string.h>

void fill_want_locked(Fills *fills, StoreFill *fill)
{
    if (!fill->ready || fill->in_wanted)
        return;
    TAILQ_INSERT_TAIL(&fills->wanted, fill, wanted_link);
    fill->in_wanted = TRUE;
    pthread_cond_signal(&fills->work);
}

void fill_leave_queues_locked(Fills *fills, StoreFill *fill)
{
    if (fill->in_wanted)
        TAILQ_REMOVE(&fills->wanted, fill, wanted_link);
    if (fill->in_running)
        TAILQ_REMOVE(&fills->running, fill, run_link);
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

StoreFill *fill_pick_locked(Fills *fills, uint64_t *chunk, uint64_t *wait_until_ms)
{
    StoreFill *fill;
    while ((fill = TAILQ_FIRST(&fills->wanted))) {
        TAILQ_REMOVE(&fills->wanted, fill, wanted_link);
        fill->in_wanted = FALSE;
        Waiter *waiter;
        TAILQ_FOREACH(waiter, &fill->waiters, link)
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
    uint64_t now = store_mono_ms();
    while ((fill = TAILQ_FIRST(&fills->deferred)) && fill->not_before_ms <= now)
        run_locked(fills, fill);
    *wait_until_ms = fill ? fill->not_before_ms : 0;
    fill = TAILQ_FIRST(&fills->running);
    if (!fill)
        return NULL;
    TAILQ_REMOVE(&fills->running, fill, run_link);
    TAILQ_INSERT_TAIL(&fills->running, fill, run_link);
    *chunk = next_missing(fill);
    fill_claim_locked(fills, fill, *chunk);
    return fill;
}

void fill_enqueue_locked(Fills *fills, StoreFill *fill)
{
    fill->ready = TRUE;
    atomic_fetch_add(&fills->started, 1);
    if (fill->n_chunks > 1 || !TAILQ_EMPTY(&fill->waiters)) {
        TAILQ_INSERT_TAIL(&fills->running, fill, run_link);
        fill->in_running = TRUE;
        if (!TAILQ_EMPTY(&fill->waiters))
            fill_want_locked(fills, fill);
        pthread_cond_signal(&fills->work);
    } else {
        fill->not_before_ms = store_mono_ms() + fill->store->hooks.grace_ms;
        TAILQ_INSERT_TAIL(&fills->deferred, fill, run_link);
        fill->in_deferred = TRUE;
        if (!fills->timing)
            pthread_cond_signal(&fills->work);
    }
}
