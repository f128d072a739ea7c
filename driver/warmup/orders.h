/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the orders of the runs under way into the NodeCaches, and removes all others. A NodeCache
 * has room for WARMUP_ORDERS_MAX: the oldest run of each namespace comes first, then the second of
 * each, up to WARMUP_ORDERS_NAMESPACE_MAX. So no namespace keeps another from its turn.
 */
#ifndef HEARTH_DRIVER_WARMUP_ORDERS_H
#define HEARTH_DRIVER_WARMUP_ORDERS_H

#include "driver/warmup/begin.h"

/* Runs in that order; WarmupObject, borrowed, the array is the caller's. */
GPtrArray *warmup_orders_turns(const GPtrArray *under_way);

/* under_way: WarmupObject. ordered: names of nodes that have orders now. KUBE_ERROR: of the last
 * that could not be written; others were. */
gboolean warmup_orders_settle(KubeClient *client, Warmth *warmth, const GPtrArray *under_way,
                              const GPtrArray *ordered, GCancellable *cancel, GError **error);

#endif
