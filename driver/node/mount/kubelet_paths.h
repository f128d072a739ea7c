/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kubelet's paths say. It tells a plugin the pod of a publication by nothing else, and makes
 * binds of its own of what is published: one for each subPath of a container, one of each device.
 * Those are part of the pod's publication, not another.
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

/* Whether `path` is a bind that kubelet made of what is published at `target`, for the same pod. */
gboolean kubelet_made_of(const char *path, const char *target);
/* Whether `path` is kubelet's bind of a device, whosever. */
gboolean kubelet_is_device_bind(const char *path);

#endif
