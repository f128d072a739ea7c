/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reserving space for an object, evicting others where that helps. Two bounds have to hold: the
 * configured one, and that of the file system (space.c measures both).
 */
#include <limits.h>
#include "cache/store/objects/internal.h"

/* Reserves within the configured bound. */
static gboolean reserve_evicting(Store *store, uint64_t charge)
{
    IndexTotals missing;
    if (space_try_reserve(store, charge, &missing))
        return TRUE;
    evict_begin(store, TRUE);
    EvictRun run = {.tag = NULL};
    gboolean fits =
        space_try_reserve(store, charge, &missing); /* others may have evicted meanwhile */
    if (!fits) {
        /* A little more than this fill needs: the next fills need space as well. */
        if (missing.bytes)
            missing.bytes += store->config.max_bytes / 64;
        if (missing.objects)
            missing.objects += store->config.max_inodes / 64;
        store_evict_locked(store, &run, missing.bytes, missing.objects, UINT_MAX);
        fits = space_try_reserve(store, charge, &missing);
    }
    evict_end(store);
    return fits;
}

/* Makes the file system fit: evicts once, and only if that can be enough and is not done already.
 */
static gboolean relieve_file_system(Store *store)
{
    IndexTotals missing;
    if (space_file_system_fits(store, FALSE, &missing))
        return TRUE;
    evict_begin(store, TRUE);
    EvictRun run = {.tag = NULL};
    gboolean fits =
        space_file_system_fits(store, TRUE, &missing); /* others may have evicted meanwhile */
    IndexTotals held = ledger_held(&store->ledger);
    gboolean awaited = space_is_awaited(store, &missing);
    if (!fits && !awaited && missing.bytes <= held.bytes && missing.objects <= held.objects) {
        store_evict_locked(store, &run, missing.bytes, missing.objects, UINT_MAX);
        fits = space_file_system_fits(store, TRUE, &missing);
    }
    evict_end(store);
    return fits;
}

gboolean space_reserve(Store *store, uint64_t size)
{
    uint64_t charge = record_charge(size);
    if (!space_is_enough_for(store, charge))
        return FALSE;
    if (!reserve_evicting(store, charge))
        return FALSE;
    if (relieve_file_system(store))
        return TRUE;
    ledger_unreserve(&store->ledger, charge);
    return FALSE;
}
