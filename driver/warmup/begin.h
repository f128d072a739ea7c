/* SPDX-License-Identifier: Apache-2.0 */
/* Begins a run of a CacheWarmup: finds its dataset and its nodes. */
#ifndef HEARTH_DRIVER_WARMUP_BEGIN_H
#define HEARTH_DRIVER_WARMUP_BEGIN_H

#include "driver/warmth/warmth.h"
#include "driver/warmup/target.h"

/* A CacheWarmup with a valid spec, and its status as it was written last; borrowed. */
typedef struct WarmupUnderWay {
    const Warmup *warmup;
    const json_t *status;
} WarmupUnderWay;

typedef struct WarmupBegin {
    WarmupTargets targets;
    Warmth *warmth;
    const GPtrArray *under_way; /* WarmupUnderWay: the runs that use room on nodes */
} WarmupBegin;

/* The new status, a new reference: the run begins, or waits for the reason in it. NULL with
 * KUBE_ERROR: the API cannot be reached. */
json_t *warmup_begin(const WarmupBegin *begin, const Warmup *warmup, const WarmupRun *run,
                     const json_t *status, gint64 now_s, GError **error);

#endif
