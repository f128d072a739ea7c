/* Has each node's NodeCache order what runs under way want of it, and no more. */
#ifndef HEARTH_DRIVER_WARM_WARMUP_ORDERS_H
#define HEARTH_DRIVER_WARM_WARMUP_ORDERS_H

#include "driver/warm/warmup_begin.h"

/* under_way: WarmupUnderWay. ordered: names of nodes that have orders now. KUBE_ERROR: of the last
 * that could not be written; others were. */
gboolean warmup_orders_settle(KubeClient *client, Warmth *warmth, const GPtrArray *under_way,
                              const GPtrArray *ordered, GCancellable *cancel, GError **error);

#endif
