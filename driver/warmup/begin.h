/* SPDX-License-Identifier: Apache-2.0 */
/* Begins a run of a CacheWarmup: finds its dataset and its nodes. */
#ifndef HEARTH_DRIVER_WARMUP_BEGIN_H
#define HEARTH_DRIVER_WARMUP_BEGIN_H

#include "driver/warmth/warmth.h"
#include "driver/warmup/status.h"
#include "driver/warmup/target.h"

typedef struct WarmupBegin {
    WarmupTargets targets;
    Warmth *warmth;
    const GPtrArray *under_way; /* WarmupObject: the runs that use room on nodes */
} WarmupBegin;

/* The new status, a new reference: the run begins, or waits for the reason in it. NULL with
 * KUBE_ERROR: the API cannot be reached. */
json_t *warmup_begin(const WarmupBegin *begin, const WarmupObject *object, const WarmupRun *run,
                     gint64 now_s, GError **error);

#endif
