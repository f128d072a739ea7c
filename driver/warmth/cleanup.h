/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes what Hearth leaves in Kubernetes, before it is uninstalled: NodeCaches, our DatasetHints,
 * and labels of nodes (ours, and the topology labels that kubelet makes of a driver's answer and
 * does not remove). No controller or node plugin may run any more: it would write them again.
 */
#ifndef HEARTH_DRIVER_WARMTH_CLEANUP_H
#define HEARTH_DRIVER_WARMTH_CLEANUP_H

#include "driver/kube/client.h"

typedef struct WarmCleanup {
    guint nodes, node_caches, hints; /* cleaned, deleted, deleted */
} WarmCleanup;

/* FALSE with the first error, after everything else was tried. A kind that the API server does not
 * know has no objects. */
gboolean warm_cleanup(KubeClient *client, WarmCleanup *done, GError **error);

#endif
