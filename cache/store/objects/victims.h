/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which objects an eviction takes next. What it costs to find them depends on the number of tags,
 * not on that of objects.
 *
 *   unused tags       least recently used first, of all of them
 *   tags in use       from the tag that has most: a tag takes from others only until all have the
 *                     same. Of this tag, the least recently used while its readers fetch what is
 *                     new; the last fetched while they fetch what had been evicted, since the files
 *                     that they read again and again do not fit then, and a part of them hits only
 *                     if it stays.
 *
 * The kernel reads files of native datasets without hearthd, so their last use is when they were
 * fetched. Uses of live volumes are known: what is used again is never taken as last fetched.
 */
#ifndef HEARTH_CACHE_STORE_OBJECTS_VICTIMS_H
#define HEARTH_CACHE_STORE_OBJECTS_VICTIMS_H

#include "cache/store/objects/internal.h"

/* The tags that an eviction may take from now, and how far it has come. */
typedef struct Victims {
    Store *store;
    gboolean in_use; /* the order is that of tags in use */
    GArray *shares;
} Victims;

/* Those of the run's tag or, without one, of its rank. */
void victims_init(Victims *victims, Store *store, const EvictRun *run);
void victims_clear(Victims *victims);
/*
 * Lists up to `max` objects, each only once between victims_init() and victims_clear(), until their
 * charges reach `bytes` and their number `objects`. They must be removed before the next call.
 * Returns the number, 0 when there are no more, or -errno of the index.
 */
ssize_t victims_list(Victims *victims, uint64_t bytes, uint64_t objects, IndexEntry *out,
                     size_t max);

#endif
