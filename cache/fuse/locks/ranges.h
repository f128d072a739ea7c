/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of bytes that one owner has locked, as a GArray of LockRange in no order. */
#ifndef HEARTH_CACHE_FUSE_LOCKS_RANGES_H
#define HEARTH_CACHE_FUSE_LOCKS_RANGES_H

#include <glib.h>
#include <stdint.h>

typedef struct LockRange {
    int64_t first, last; /* both belong to it */
} LockRange;

GArray *lock_ranges_new(void);
/* They do not overlap afterwards. */
void lock_ranges_add(GArray *ranges, LockRange range);
/* What is left of a range on both sides stays. */
void lock_ranges_remove(GArray *ranges, LockRange range);
gboolean lock_ranges_overlap(const GArray *ranges, LockRange range);

#endif
