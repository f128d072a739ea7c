/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Events of a CacheWarmup, by how its status changes:
 *
 *     Started     a run has begun
 *     NodeWarm    a node has all of it; of runs on WARMUP_EVENTS_NODES nodes at most
 *     Completed   all nodes have
 *     Failed      a warning: the run has failed, or the spec cannot be done
 *
 * What a namespace reads of them is in the status, too: no place in Ceph. No I/O.
 */
#ifndef HEARTH_DRIVER_WARMUP_EVENTS_H
#define HEARTH_DRIVER_WARMUP_EVENTS_H

#include <jansson.h>
#include "driver/warmup/warmup.h"

#define WARMUP_EVENTS_NODES 16

typedef struct WarmupEvent {
    char *name; /* of the Event */
    gboolean warning;
    const char *reason; /* a literal */
    char *message;
} WarmupEvent;

/* WarmupEvent, freed with the array, which is the caller's. before: NULL: there was no status. */
GPtrArray *warmup_events(const Warmup *warmup, const json_t *before, const json_t *after);

#endif
