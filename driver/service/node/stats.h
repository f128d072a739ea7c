/* SPDX-License-Identifier: Apache-2.0 */
/* What NodeGetVolumeStats answers: how full a volume is, and whether it works (node/health.h). */
#ifndef HEARTH_DRIVER_SERVICE_NODE_STATS_H
#define HEARTH_DRIVER_SERVICE_NODE_STATS_H

#include "csi.pb-c.h"
#include "driver/node/staging.h"
#include "driver/rpc/server.h"

/* `path` is canonical. FALSE without an error: the call's memory is exhausted. NOT_FOUND. */
gboolean node_stats(RpcCall *call, Staging *staging, const char *volume, const char *path,
                    gint64 timeout_ms, Csi__V1__NodeGetVolumeStatsResponse *out, GError **error);

#endif
