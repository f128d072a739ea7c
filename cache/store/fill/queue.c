/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which chunk is fetched next. Fills of an origin take turns within each of its queues: `wanted`
 * have readers waiting, `running` have chunks missing, `deferred` are small and left to their
 * reader for a moment, because a reader that fetches the only chunk on its own thread saves two
 * thread switches per file. Fills in `ahead` have no reader yet: they come last, and never use all
 * workers while there are readers.
 *
 * Origins take turns too. One of them gets another worker only while it has fewer than are free, so
 * an origin that does not answer never has all workers: of 32 it gets 16, the next one like it 8.
 */
#include "cache/store/fill/internal.h"
#include <string.h>

#define READERS_AROUND_MS 1000
/* How often more workers are tried, while there are too few and work waits. */
#define SCARCE_LOOK_MS 1000

/* --- origins --- */

void fill_source_join_locked(Fills *fills, StoreFill *fill)
{
    FillSource *source = g_hash_table_lookup(fills->sources, fill->origin);
    if (!source) {
        source = g_new0(FillSource, 1);
        source->origin = fill->origin;
        TAILQ_INIT(&source->wanted);
        TAILQ_INIT(&source->running);
        TAILQ_INIT(&source->deferred);
        TAILQ_INIT(&source->ahead);
        TAILQ_INSERT_TAIL(&fills->turns, source, turn);
        g_hash_table_insert(fills->sources, source->origin, source);
    }
    source->fills++;
    fill->source = source;
}

static void free_source_if_unused(Fills *fills, FillSource *source)
{
    if (source->fills > 0 || source->busy > 0 || source->stuck > 0)
        return;
    TAILQ_REMOVE(&fills->turns, source, turn);
    g_hash_table_remove(fills->sources, source->origin);
}

void fill_source_leave_locked(Fills *fills, StoreFill *fill)
{
    FillSource *source = fill->source;
    fill->source = NULL;
    source->fills--;
    free_source_if_unused(fills, source);
}

/* Whether it may have another worker, and with `spare` one more after that. */
static gboolean may_have_worker(const Fills *fills, const FillSource *source, gboolean spare)
{
    const unsigned available = fills->most - fills->busy;
    /* The last worker is for an origin that has none, since more can come late, or never. */
    if (source->busy + source->stuck > 0 && fill_one_worker_left_locked(fills))
        return FALSE;
    /* The one that it gets is not available any more. */
    return available > 0 && (source->busy + (spare ? 2 : 0) < available || fills->busy == 0);
}

/* --- the queues of an origin --- */

void fill_want_locked(Fills *fills, StoreFill *fill)
{
    if (!fill->ready || fill->in_wanted)
        return;
    TAILQ_INSERT_TAIL(&fill->source->wanted, fill, wanted_link);
    fill->in_wanted = TRUE;
    fill_wake_worker_locked(fills);
}

static struct FillQueue *run_queue(const StoreFill *fill)
{
    return fill->ahead ? &fill->source->ahead : &fill->source->running;
}

void fill_leave_queues_locked(StoreFill *fill)
{
    if (fill->in_wanted)
        TAILQ_REMOVE(&fill->source->wanted, fill, wanted_link);
    if (fill->in_running)
        TAILQ_REMOVE(run_queue(fill), fill, run_link);
    if (fill->in_deferred)
        TAILQ_REMOVE(&fill->source->deferred, fill, run_link);
    fill->in_wanted = fill->in_running = fill->in_deferred = FALSE;
}

static void run_locked(StoreFill *fill)
{
    if (fill->in_deferred)
        TAILQ_REMOVE(&fill->source->deferred, fill, run_link);
    fill->in_deferred = FALSE;
    TAILQ_INSERT_TAIL(&fill->source->running, fill, run_link);
    fill->in_running = TRUE;
}

void fill_need_locked(Fills *fills, StoreFill *fill)
{
    if (!fill->ahead)
        return;
    if (fill->in_running)
        TAILQ_REMOVE(&fill->source->ahead, fill, run_link);
    fill->ahead = FALSE;
    if (fill->in_running)
        TAILQ_INSERT_TAIL(&fill->source->running, fill, run_link);
    fill_wake_worker_locked(fills);
}

void fill_promote_locked(Fills *fills, StoreFill *fill)
{
    if (!fill->in_deferred)
        return;
    run_locked(fill);
    fill_wake_worker_locked(fills);
}

void fill_enqueue_locked(Fills *fills, StoreFill *fill)
{
    fill->ready = TRUE;
    fill->began_us = g_get_monotonic_time();
    atomic_fetch_add(&fills->started, 1);
    if (fill->parts) { /* readers ask for what they want */
        fill_changed_locked(fill);
    } else if (fill->ahead) {
        TAILQ_INSERT_TAIL(&fill->source->ahead, fill, run_link);
        fill->in_running = TRUE;
        fill_wake_worker_locked(fills);
    } else if (fill->n_chunks > 1 || !TAILQ_EMPTY(&fill->waiters)) {
        run_locked(fill);
        if (!TAILQ_EMPTY(&fill->waiters))
            fill_want_locked(fills, fill);
        fill_wake_worker_locked(fills);
    } else {
        fill->not_before_ms = monotonic_ms() + fill->store->hooks.grace_ms;
        TAILQ_INSERT_TAIL(&fill->source->deferred, fill, run_link);
        fill->in_deferred = TRUE;
        if (!fills->timing_ms || fill->not_before_ms < fills->timing_ms)
            fill_wake_worker_locked(fills);
    }
}

void fill_run_more_locked(Fills *fills, StoreFill *fill)
{
    if (!fill->in_running)
        TAILQ_INSERT_TAIL(run_queue(fill), fill, run_link);
    fill->in_running = TRUE;
    fill_wake_worker_locked(fills);
}

void fill_claim_locked(StoreFill *fill, uint64_t chunk, uint64_t n)
{
    memset(fill->chunks + chunk, CHUNK_BUSY, n);
    fill->busy++;
    fill->next = chunk + n;
    fill->missing -= n;
    if (fill->missing == 0)
        fill_leave_queues_locked(fill);
}

/* --- choosing --- */

static uint64_t next_missing(const StoreFill *fill)
{
    const uint8_t *from = fill->chunks + fill->next, *end = fill->chunks + fill->n_chunks;
    const uint8_t *found = memchr(from, CHUNK_MISSING, (size_t)(end - from));
    if (!found)
        found = memchr(fill->chunks, CHUNK_MISSING, fill->n_chunks);
    return (uint64_t)(found - fill->chunks);
}

/* How many chunks from this one on are missing, up to what a worker fetches at once. */
static uint64_t run_at(const StoreFill *fill, uint64_t chunk)
{
    const uint64_t most =
        MIN(fill->n_chunks, chunk + fill->store->config.chunk_bytes / fill->chunk_bytes);
    uint64_t end = chunk + 1;
    while (end < most && fill->chunks[end] == CHUNK_MISSING)
        end++;
    return end - chunk;
}

static const FillWait *waits_for_missing(const StoreFill *fill)
{
    const FillWait *waiter;
    TAILQ_FOREACH (waiter, &fill->waiters, link)
        if (fill->chunks[waiter->chunk] == CHUNK_MISSING)
            break;
    return waiter;
}

void fill_want_next_locked(Fills *fills, StoreFill *fill)
{
    if (fill_state(fill) == FILL_ACTIVE && waits_for_missing(fill))
        fill_want_locked(fills, fill);
}

static StoreFill *pick_wanted(FillSource *source, uint64_t *chunk)
{
    StoreFill *fill;
    while ((fill = TAILQ_FIRST(&source->wanted))) {
        const FillWait *waiter = waits_for_missing(fill);
        TAILQ_REMOVE(&source->wanted, fill, wanted_link);
        fill->in_wanted = waiter != NULL;
        if (!waiter)
            continue;
        TAILQ_INSERT_TAIL(&source->wanted, fill, wanted_link);
        *chunk = waiter->chunk;
        return fill;
    }
    return NULL;
}

static StoreFill *pick_running(FillSource *source, uint64_t *chunk)
{
    StoreFill *fill = TAILQ_FIRST(&source->running);
    if (!fill)
        return NULL;
    TAILQ_REMOVE(&source->running, fill, run_link);
    TAILQ_INSERT_TAIL(&source->running, fill, run_link);
    *chunk = next_missing(fill);
    return fill;
}

static StoreFill *pick_ahead(FillSource *source, uint64_t *chunk, uint64_t *wait_until_ms)
{
    StoreFill *fill;
    TAILQ_FOREACH (fill, &source->ahead, run_link)
        if (pace_allows_locked(fill->pace, wait_until_ms))
            break;
    if (!fill)
        return NULL;
    TAILQ_REMOVE(&source->ahead, fill, run_link);
    TAILQ_INSERT_TAIL(&source->ahead, fill, run_link);
    *chunk = next_missing(fill);
    uint64_t left = fill->key.size - *chunk * fill->chunk_bytes;
    pace_take_locked(fill->pace, MIN(left, fill->chunk_bytes));
    return fill;
}

static void earlier(uint64_t *until_ms, uint64_t when)
{
    *until_ms = *until_ms ? MIN(*until_ms, when) : when;
}

/* Small fills that no reader has fetched in time are run; when the next one will be. */
static void run_deferred(FillSource *source, uint64_t now, uint64_t *wait_until_ms)
{
    StoreFill *fill;
    while ((fill = TAILQ_FIRST(&source->deferred)) && fill->not_before_ms <= now)
        run_locked(fill);
    if (fill)
        earlier(wait_until_ms, fill->not_before_ms);
}

enum { WANTED, RUNNING, AHEAD, QUEUES };

gboolean fill_pick_locked(const Store *store, uint8_t *buf, FillPick *pick, uint64_t *wait_until_ms)
{
    Fills *fills = store->fills;
    const uint64_t now = monotonic_ms(), stuck_ms = fill_find_stuck_locked(fills, store, now);
    const gboolean readers = fills->reader_ms && now - fills->reader_ms < READERS_AROUND_MS;
    *pick = (FillPick){.buf = buf};
    if (!fill_queues_empty_locked(fills))
        fill_more_workers_locked(fills);
    for (int queue = WANTED; queue < QUEUES && !pick->fill; queue++) {
        FillSource *source;
        TAILQ_FOREACH (source, &fills->turns, turn) {
            if (queue == RUNNING)
                run_deferred(source, now, wait_until_ms);
            const gboolean spare = queue == AHEAD && readers;
            if (spare && !TAILQ_EMPTY(&source->ahead))
                earlier(wait_until_ms, fills->reader_ms + READERS_AROUND_MS);
            if (pick->fill || !may_have_worker(fills, source, spare))
                continue;
            pick->source = source;
            pick->ahead = queue == AHEAD;
            if (queue == WANTED)
                pick->fill = pick_wanted(source, &pick->chunk);
            else if (queue == RUNNING)
                pick->fill = pick_running(source, &pick->chunk);
            else
                pick->fill = pick_ahead(source, &pick->chunk, wait_until_ms);
        }
    }
    if (!pick->fill) {
        if (stuck_ms && !fill_queues_empty_locked(fills))
            earlier(wait_until_ms, stuck_ms);
        if (fills->scarce && !fill_queues_empty_locked(fills))
            earlier(wait_until_ms, now + SCARCE_LOOK_MS);
        return FALSE;
    }
    pick->n = run_at(pick->fill, pick->chunk);
    fill_claim_locked(pick->fill, pick->chunk, pick->n);
    TAILQ_REMOVE(&fills->turns, pick->source, turn);
    TAILQ_INSERT_TAIL(&fills->turns, pick->source, turn);
    fill_pick_begins_locked(fills, pick, now);
    return TRUE;
}

void fill_picked_done_locked(Fills *fills, FillPick *pick)
{
    fill_pick_ends_locked(fills, pick);
    free_source_if_unused(fills, pick->source);
}

gboolean fill_queues_empty_locked(const Fills *fills)
{
    const FillSource *source;
    TAILQ_FOREACH (source, &fills->turns, turn)
        if (!TAILQ_EMPTY(&source->wanted) || !TAILQ_EMPTY(&source->running) ||
            !TAILQ_EMPTY(&source->ahead) || (!TAILQ_EMPTY(&source->deferred) && !fills->timing_ms))
            return FALSE;
    return TRUE;
}
