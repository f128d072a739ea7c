/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The buffers of reads that bypass the store, of all origins together: a part of --memory. An
 * origin has at most half of what the others leave, since its Ceph may not answer for a long time.
 * The first read of an origin waits for no other. So the bound is exceeded by one read for each
 * origin at most.
 */
#ifndef HEARTH_CACHE_FUSE_LAYER_BYPASS_BUDGET_H
#define HEARTH_CACHE_FUSE_LAYER_BYPASS_BUDGET_H

#include <glib.h>
#include <stdatomic.h>
#include <stdint.h>

#define BYPASS_BUDGET_BYTES ((uint64_t)16 << 20)

/* Of an origin; zero at first. */
typedef struct BypassShare {
    uint64_t bytes; /* the budget's lock */
} BypassShare;

/* Waits until there is room. FALSE: it is not wanted any more (bypass_budget_wake()). */
gboolean bypass_budget_take(BypassShare *share, size_t bytes, const atomic_bool *unwanted);
void bypass_budget_give(BypassShare *share, size_t bytes);
/* After `unwanted` was set for one that may wait. */
void bypass_budget_wake(void);
uint64_t bypass_budget_used(void);

#endif
