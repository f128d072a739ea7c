/* SPDX-License-Identifier: Apache-2.0 */
/* What NodeGetVolumeStats answers: how full a volume is, and whether it works. */
#ifndef HEARTH_DRIVER_SERVICE_NODE_STATS_H
#define HEARTH_DRIVER_SERVICE_NODE_STATS_H

#include "csi.pb-c.h"
#include "driver/node/health.h"
#include "driver/rpc/server.h"

/* The answer for a report of health_check(). FALSE: the call's memory is exhausted. */
gboolean node_stats(RpcCall *call, const HealthReport *report,
                    Csi__V1__NodeGetVolumeStatsResponse *out);

#endif
