/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the controller has a node do for a CacheWarmup: an entry of spec.warmups of its NodeCache
 * (deploy/crds). As long as it stands there the node does it, or reports what came of it in
 * status.warmups; when it goes, what is under way is cancelled. No I/O.
 */
#ifndef HEARTH_DRIVER_WARMUP_ORDER_H
#define HEARTH_DRIVER_WARMUP_ORDER_H

#include "driver/warmth/dataset_origin.h"
#include "driver/warmup/warmup.h"

/* As the schema has it. */
#define WARMUP_ORDERS_MAX 64
/* Of them, those of one namespace. */
#define WARMUP_ORDERS_NAMESPACE_MAX 16

typedef struct WarmupOrder {
    char *namespace, *name; /* of the CacheWarmup */
    char *run;              /* warmup_run_name() */
    DatasetOrigin origin;
    GPtrArray *paths; /* as Warmup has them */
    guint64 rate;     /* bytes a second; 0: no bound */
} WarmupOrder;

/* What a run under way, of which `status` tells, asks of each of its nodes; a new reference. */
json_t *warmup_order_json(const Warmup *warmup, const json_t *status);
/* FALSE: it cannot be understood. */
gboolean warmup_order_read(const json_t *object, WarmupOrder *order);
void warmup_order_clear(WarmupOrder *order);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(WarmupOrder, warmup_order_clear)

/* How far a node is with one. */
typedef struct WarmupDoing {
    const char *state; /* of status.warmups[].state; a literal */
    guint64 bytes, total, bytes_per_second;
    int percent;   /* -1: of bytes and total */
    char *message; /* for people; NULL: none */
} WarmupDoing;

/* An entry of status.warmups; a new reference. */
json_t *warmup_doing_json(const WarmupOrder *order, const WarmupDoing *doing);

#endif
