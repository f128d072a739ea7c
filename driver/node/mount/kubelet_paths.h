/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The meaning of kubelet's paths. Only the path tells a plugin the pod of a publication. kubelet
 * also makes binds of its own of a publication: one for each subPath of a container, one of each
 * device. They are part of the pod's publication, not another.
 *
 *   ROOT/pods/POD/volumes/kubernetes.io~csi/PV/mount           target of a file system
 *   ROOT/pods/POD/volume-subpaths/PV/CONTAINER/N               kubelet's bind of a subPath
 *   ROOT/plugins/kubernetes.io/csi/volumeDevices/publish/PV/POD  target of a device
 *   ROOT/plugins/kubernetes.io/csi/volumeDevices/PV/dev/POD      kubelet's bind of a device
 *
 * Source: pkg/volume/csi/csi_mounter.go, csi_block.go, pkg/volume/util/subpath of Kubernetes.
 */
#ifndef HEARTH_DRIVER_NODE_MOUNT_KUBELET_PATHS_H
#define HEARTH_DRIVER_NODE_MOUNT_KUBELET_PATHS_H

#include <glib.h>

/* Whether `path` is a bind that kubelet made of the publication at `target`, for the same pod. */
gboolean kubelet_made_of(const char *path, const char *target);
/* Whether `path` is kubelet's bind of a device, of any pod. */
gboolean kubelet_is_device_bind(const char *path);
/* The UID of the pod whose publication is at `target`, the caller's; NULL: it is no target. */
char *kubelet_pod_of(const char *target);

#endif
