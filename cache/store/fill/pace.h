/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bound on bytes per second, for what is fetched ahead of need. Who takes bytes may take all of a
 * chunk at once; the next one waits until so much time has gone by, less a little that evens out
 * how late threads wake.
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
