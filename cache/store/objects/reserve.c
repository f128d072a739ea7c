/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reserving space for an object, evicting others where that helps. Two bounds have to hold: the
 * configured one, and that of the file system (space.c measures both).
 *
 * A reader that waits for its fill does not pay for a large eviction: it removes a little, and
 * otherwise reads past the store until the evictor has made the room.
 */
#include "cache/store/objects/internal.h"

#define READER_OBJECTS 64 /* a transaction */
#define READER_BATCHES 4
#define AHEAD_OBJECTS 1024
#define SPARE_BYTES (64U << 20)
#define SPARE_OBJECTS 64

static const EvictLimit reader_limit = {
    .batches = READER_BATCHES, .batch = READER_OBJECTS, .for_reader = TRUE};
static const EvictLimit patient_limit = {.batches = 1, .batch = AHEAD_OBJECTS};

/* Reserves within the configured bound. */
static gboolean reserve_evicting(Store *store, const IndexTotals *charge, gboolean patient)
{
    IndexTotals missing;
    EvictRun run = {.tag = NULL};
    const EvictLimit *limit = patient ? &patient_limit : &reader_limit;
    gboolean fits = space_try_reserve(store, charge, &missing);
    for (gboolean more = TRUE; !fits && more;) {
        evict_begin(store, TRUE);
        fits = space_try_reserve(store, charge, &missing); /* others may have evicted meanwhile */
        if (!fits) {
            /* A little more than this fill needs: the next fills need space as well. */
            if (missing.bytes)
                missing.bytes += MIN(store->config.max_bytes / 64, SPARE_BYTES);
            if (missing.objects)
                missing.objects += MIN(store->config.max_inodes / 64, SPARE_OBJECTS);
            store_evict_locked(store, &run, missing.bytes, missing.objects, limit);
            more = patient && !run.done;
            fits = space_try_reserve(store, charge, &missing);
        }
        evict_end(store);
    }
    return fits;
}

/* Makes the file system fit: evicts once, and only if that can be enough and is not done already.
 */
static gboolean relieve_file_system(Store *store, gboolean patient)
{
    IndexTotals missing;
    EvictRun run = {.tag = NULL};
    const EvictLimit *limit = patient ? &patient_limit : &reader_limit;
    gboolean fits = space_file_system_fits(store, FALSE, &missing);
    for (gboolean more = TRUE; !fits && more;) {
        evict_begin(store, TRUE);
        fits =
            space_file_system_fits(store, TRUE, &missing); /* others may have evicted meanwhile */
        IndexTotals held = ledger_held(&store->ledger);
        more = !fits && !space_is_awaited(store, &missing) && missing.bytes <= held.bytes &&
               missing.objects <= held.objects;
        if (more) {
            store_evict_locked(store, &run, missing.bytes, missing.objects, limit);
            more = patient && !run.done;
            fits = space_file_system_fits(store, TRUE, &missing);
        }
        evict_end(store);
    }
    return fits;
}

gboolean space_reserve(Store *store, uint64_t size, gboolean patient)
{
    const IndexTotals charge = {record_charge(size), 1};
    if (!space_is_enough_for(store, charge.bytes))
        return FALSE;
    gboolean reserved = reserve_evicting(store, &charge, patient);
    if (reserved && relieve_file_system(store, patient))
        return TRUE;
    if (reserved)
        ledger_unreserve(&store->ledger, &charge);
    if (!patient)
        space_ask(store, charge.bytes);
    return FALSE;
}

gboolean space_reserve_more(Store *store, uint64_t bytes)
{
    const IndexTotals charge = {bytes, 0};
    if (!reserve_evicting(store, &charge, TRUE))
        return FALSE;
    if (relieve_file_system(store, TRUE))
        return TRUE;
    ledger_unreserve(&store->ledger, &charge);
    return FALSE;
}
