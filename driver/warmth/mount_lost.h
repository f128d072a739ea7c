/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods whose mounts nobody serves since hearthd was restarted: which of them are still to get an
 * Event. A node names UIDs of pods in its NodeCache; only pods that Kubernetes has on that very
 * node get one, because the node is trusted little. No lock of its own.
 */
#ifndef HEARTH_DRIVER_WARMTH_MOUNT_LOST_H
#define HEARTH_DRIVER_WARMTH_MOUNT_LOST_H

#include "driver/kube/client.h"

#define MOUNT_LOST_REASON "MountLost"
/* Of a node, in its NodeCache. */
#define MOUNT_LOST_MAX 64

typedef struct MountLost MountLost;

MountLost *mount_lost_new(void);
void mount_lost_free(MountLost *lost);
/* uids: of its NodeCache; empty: none, or it has none any more. */
void mount_lost_report(MountLost *lost, const char *node, const GPtrArray *uids);

/* The pods of one node. */
typedef struct MountLostNode {
    char *node;
    GPtrArray *uids;
} MountLostNode;

/* Takes what is due: MountLostNode *, the caller's. */
GPtrArray *mount_lost_take(MountLost *lost);
/* Their Events could not be written: they are due again. */
void mount_lost_again(MountLost *lost, const MountLostNode *due);
/* Writes the Events of the pods that are on the node. KUBE_ERROR. */
gboolean mount_lost_post(KubeClient *client, const MountLostNode *due, GCancellable *cancel,
                         GError **error);

#endif
