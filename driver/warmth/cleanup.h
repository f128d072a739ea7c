/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes away what is left in Kubernetes, for who uninstalls: labels of nodes - ours, and those of
 * topology, which kubelet makes of a driver's answer and does not take back -, NodeCaches,
 * DatasetHints of ours. No controller or node may run any more, for it would write them again.
 */
#ifndef HEARTH_DRIVER_WARMTH_CLEANUP_H
#define HEARTH_DRIVER_WARMTH_CLEANUP_H

#include "driver/kube/client.h"

typedef struct WarmCleanup {
    guint nodes, node_caches, hints; /* cleaned, deleted, deleted */
} WarmCleanup;

/* FALSE with the first error; what could be done is. A kind that the API server does not know has
 * no objects. */
gboolean warm_cleanup(KubeClient *client, WarmCleanup *done, GError **error);

#endif
