/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers that wait long for their origin. They do nothing, so they do not count among those that
 * may be busy: other files are fetched meanwhile, also those of the same origin. What they may
 * cost is bounded by the memory of the bytes that they wait for, which is as much as all workers
 * that are busy may have. An origin gets more only while it has less than is left, as with workers.
 *
 * The fill of a pick may be freed before the pick ends (fill_fetch_claimed_locked()).
 */
#include <sys/mman.h>
#include "cache/store/fill/internal.h"

static uint64_t bytes_of(const FillPick *pick)
{
    const StoreFill *fill = pick->fill;
    return MIN(pick->n * fill->chunk_bytes, fill->key.size - pick->chunk * fill->chunk_bytes);
}

/* In parts of FILL_STUCK_MAX. */
static unsigned cost_of(const Fills *fills, const Store *store, const FillPick *pick)
{
    const uint64_t unit = MAX(1, fills->most * store->config.chunk_bytes / FILL_STUCK_MAX);
    return (unsigned)MAX(1, (pick->bytes + unit - 1) / unit);
}

/* What earlier fetches have left in its buffer, beyond the bytes that it waits for. */
static void give_back_rest(const Store *store, const FillPick *pick)
{
    const uint64_t used = fill_aligned(pick->bytes);
    if (used < store->config.chunk_bytes)
        madvise(pick->buf + used, store->config.chunk_bytes - used, MADV_DONTNEED);
}

static void set_busy(Fills *fills, FillPick *pick, unsigned by)
{
    fills->busy += by;
    pick->source->busy += by;
    fills->ahead_busy += pick->ahead ? by : 0;
}

static void set_stuck(Fills *fills, FillPick *pick, unsigned by)
{
    fills->stuck += by;
    pick->source->stuck += by;
    fills->cost += by * pick->cost;
    pick->source->cost += by * pick->cost;
}

void fill_pick_begins_locked(Fills *fills, FillPick *pick, uint64_t now)
{
    pick->began_ms = now;
    pick->bytes = bytes_of(pick);
    TAILQ_INSERT_TAIL(&fills->picks, pick, link);
    set_busy(fills, pick, 1);
}

void fill_pick_answered_locked(Fills *fills, FillPick *pick)
{
    if (pick->cost || pick->answered)
        return;
    pick->answered = TRUE;
    TAILQ_REMOVE(&fills->picks, pick, link);
}

void fill_pick_ends_locked(Fills *fills, FillPick *pick)
{
    fill_pick_answered_locked(fills, pick);
    if (pick->cost)
        set_stuck(fills, pick, -1u);
    else
        set_busy(fills, pick, -1u);
}

uint64_t fill_find_stuck_locked(Fills *fills, const Store *store, uint64_t now)
{
    FillPick *pick, *next;
    for (pick = TAILQ_FIRST(&fills->picks); pick; pick = next) {
        next = TAILQ_NEXT(pick, link);
        const uint64_t when = pick->began_ms + store->hooks.stuck_ms;
        if (when > now)
            return when;
        const unsigned cost = cost_of(fills, store, pick);
        if (pick->source->cost + cost > FILL_STUCK_MAX - fills->cost)
            continue;
        TAILQ_REMOVE(&fills->picks, pick, link);
        set_busy(fills, pick, -1u);
        pick->cost = cost;
        set_stuck(fills, pick, 1);
        give_back_rest(store, pick);
    }
    return 0;
}
