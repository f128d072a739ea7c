/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the Node service that is about images (type=rbd): node/image.h does the work. */
#ifndef HEARTH_DRIVER_SERVICE_NODE_IMAGE_H
#define HEARTH_DRIVER_SERVICE_NODE_IMAGE_H

#include <glib.h>
#include "csi.pb-c.h"
#include "driver/node/staging.h"

/* What a capability and the volume context say of the use of an image. `selinux`: the node takes
 * contexts (mount.h); else one is left out. */
typedef struct NodeImageUse NodeImageUse;
NodeImageUse *node_image_use_new(const Csi__V1__VolumeCapability *capability, GHashTable *context,
                                 gboolean selinux, GError **error);
void node_image_use_free(NodeImageUse *use);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NodeImageUse, node_image_use_free)

/* For node_spec_new(). */
gboolean node_image_is_read_only(const NodeImageUse *use);

/* `path` and `target` are canonical; see image_stage() and image_publish(). */
gboolean node_image_stage(Staging *staging, const char *volume, const char *path, json_t *spec,
                          const NodeImageUse *use, gint64 timeout_ms, GError **error);
gboolean node_image_publish(Staging *staging, const char *volume, const char *staged,
                            const char *target, const NodeImageUse *use, gboolean read_only,
                            gint64 timeout_ms, GError **error);

#endif
