/* SPDX-License-Identifier: Apache-2.0 */
/* Begins a run of a CacheWarmup: finds its dataset and its nodes. */
#ifndef HEARTH_DRIVER_WARMUP_BEGIN_H
#define HEARTH_DRIVER_WARMUP_BEGIN_H

#include "driver/warmth/warmth.h"
#include "driver/warmup/target.h"

/* One whose spec can be done, and its status as it was written last; borrowed. */
typedef struct WarmupUnderWay {
    const Warmup *warmup;
    const json_t *status;
} WarmupUnderWay;

typedef struct WarmupBegin {
    WarmupTargets targets;
    Warmth *warmth;
    const GPtrArray *under_way; /* WarmupUnderWay: what has a claim on the room of nodes */
} WarmupBegin;

/* The new status, a new reference: that the run begins, or for what it waits. NULL with
 * KUBE_ERROR: the API cannot be asked. */
json_t *warmup_begin(const WarmupBegin *begin, const Warmup *warmup, const WarmupRun *run,
                     const json_t *status, gint64 now_s, GError **error);

#endif
