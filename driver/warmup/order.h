/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controller's order to a node for a CacheWarmup: an entry of spec.warmups of its NodeCache
 * (deploy/crds). While the entry exists the node runs it, and reports the result in status.warmups.
 * When it is removed the run is cancelled. No I/O.
 */
#ifndef HEARTH_DRIVER_WARMUP_ORDER_H
#define HEARTH_DRIVER_WARMUP_ORDER_H

#include "driver/warmth/dataset_origin.h"
#include "driver/warmup/warmup.h"

/* The limit of the schema. */
#define WARMUP_ORDERS_MAX 64
/* The limit for one namespace. */
#define WARMUP_ORDERS_NAMESPACE_MAX 16

typedef struct WarmupOrder {
    char *namespace, *name; /* of the CacheWarmup */
    char *run;              /* warmup_run_name() */
    DatasetOrigin origin;
    GPtrArray *paths; /* as Warmup has them */
    guint64 rate;     /* bytes a second; 0: no bound */
} WarmupOrder;

/* The order to each node of the run that `status` describes; a new reference. */
json_t *warmup_order_json(const Warmup *warmup, const json_t *status);
/* FALSE: it is malformed. */
gboolean warmup_order_read(const json_t *object, WarmupOrder *order);
void warmup_order_clear(WarmupOrder *order);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(WarmupOrder, warmup_order_clear)

/* The progress of a node. */
typedef struct WarmupDoing {
    const char *state; /* of status.warmups[].state; a literal */
    guint64 bytes, total, bytes_per_second;
    int percent;   /* -1: of bytes and total */
    char *message; /* for people; NULL: none */
} WarmupDoing;

/* An entry of status.warmups; a new reference. */
json_t *warmup_doing_json(const WarmupOrder *order, const WarmupDoing *doing);

#endif
