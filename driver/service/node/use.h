/* SPDX-License-Identifier: Apache-2.0 */
/* The kind of a volume and how a pod uses it, from the capability and the attributes of a call. */
#ifndef HEARTH_DRIVER_SERVICE_NODE_USE_H
#define HEARTH_DRIVER_SERVICE_NODE_USE_H

#include <glib.h>
#include "csi.pb-c.h"
#include "driver/node/served/kind.h"

typedef struct NodeUse {
    const NodeKind *kind;
    VolumeUse use; /* borrows from the request and from below */
    /* Several nodes may have the image open at a time: hearthd must not lock it. */
    gboolean shared;
    gboolean shared_locks; /* several nodes may write the files, so locks are to hold on all */
    char *context;
    char **fs_options;
} NodeUse;

/* What a call says of a volume. Borrowed. */
typedef struct NodeUseRequest {
    const Csi__V1__VolumeCapability *capability;
    const VolumeAttributes *attributes;
    gboolean selinux; /* the node takes SELinux contexts (mount.h); else one is left out */
} NodeUseRequest;

/* INVALID_ARGUMENT: volumes of the type and kind cannot be used so. */
gboolean node_use_parse(const NodeUseRequest *request, NodeUse *use, GError **error);
void node_use_clear(NodeUse *use);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(NodeUse, node_use_clear)

#endif
