/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bound on bytes per second, for objects that are fetched ahead. A caller may take a whole chunk
 * at once; the next caller waits for the time that these bytes may take, minus a small slack for
 * threads that wake late.
 */
#ifndef HEARTH_CACHE_STORE_FILL_PACE_H
#define HEARTH_CACHE_STORE_FILL_PACE_H

#include <stdatomic.h>
#include "cache/store/fill/fill.h"

struct StorePace {
    atomic_uint refs;
    uint64_t bytes_per_sec;
    uint64_t next_us; /* Fills.lock: monotonic */
};

StorePace *pace_ref(StorePace *pace);
/* Whether bytes may be taken now; else *until_ms is lowered to when (0: not set). Lock held. */
gboolean pace_allows_locked(const StorePace *pace, uint64_t *until_ms);
void pace_take_locked(StorePace *pace, uint64_t bytes);

#endif
