/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The volumeAttributes of PersistentVolumes: those that CreateVolume wrote
 * (driver/service/node/context.h), those of an administrator's static volume, and those of a
 * PersistentVolume of ceph-csi, which has other names for some of them. ceph-csi's attributes for
 * its own mounting (mounter, kernelMountOptions, imageFeatures, ...) are ignored.
 */
#ifndef HEARTH_DRIVER_VOLUME_ATTRIBUTES_H
#define HEARTH_DRIVER_VOLUME_ATTRIBUTES_H

#include <glib.h>
#include "driver/volume/id.h"

/* Whom the volume was made for, as external-provisioner --extra-create-metadata tells it. */
#define ATTRIBUTE_PV_NAME "csi.storage.k8s.io/pv/name"
#define ATTRIBUTE_PVC_NAME "csi.storage.k8s.io/pvc/name"
#define ATTRIBUTE_PVC_NAMESPACE "csi.storage.k8s.io/pvc/namespace"

/* What they say. All strings are borrowed from the map; NULL: absent or empty. */
typedef struct VolumeAttributes {
    const char *volume; /* the handle */
    VolumeType type; /* "type", or that of the handle, or what the others are of: CephFS at last */
    const char *cluster_id;
    const char *fs_name;
    const char *root_path; /* in a file system: rootPath, or ceph-csi's subvolumePath */
    const char *dataset;
    const char *pool;
    const char *rados_namespace;
    const char *image; /* imageName; of a static image ceph-csi takes the handle for it */
    const char *snapshot;
    const char *mkfs_options;
    const char *cache, *cache_quota, *warm, *read_timeout;
    const char *pv_name, *pvc_name, *pvc_namespace;
    gboolean is_snapshot; /* of files: it cannot be written however it is mounted */
} VolumeAttributes;

/*
 * Reads `map`, name -> value. INVALID_ARGUMENT for a type that is not known, and where the volume
 * would not be what the attributes say: encrypted volumes and shallow ones of ceph-csi, a
 * staticVolume that is neither true nor false, a dataset beside a rootPath.
 */
gboolean attributes_read(const char *volume, GHashTable *map, VolumeAttributes *attributes,
                         GError **error);
/* The same without these checks. FALSE: the type is not known, and CephFS is taken. */
gboolean attributes_take(const char *volume, GHashTable *map, VolumeAttributes *attributes);

#endif
