/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The volumeAttributes of PersistentVolumes: those that CreateVolume wrote
 * (driver/service/node/context.h), those of an administrator's static volume, and those of a
 * PersistentVolume of ceph-csi, which has other names for some of them. ceph-csi's attributes for
 * its own mounting (mounter, kernelMountOptions, imageFeatures, ...) are ignored. `map` is name ->
 * value, borrowed, as are the results.
 */
#ifndef HEARTH_DRIVER_VOLUME_ATTRIBUTES_H
#define HEARTH_DRIVER_VOLUME_ATTRIBUTES_H

#include <glib.h>
#include "driver/volume/id.h"

/* A value; NULL when it is absent or empty. */
const char *attributes_get(GHashTable *map, const char *name);
/* "type", or that of the volume's ID, or what the other attributes are of; CephFS by default.
 * INVALID_ARGUMENT. */
gboolean attributes_type(const char *volume, GHashTable *map, VolumeType *type, GError **error);
/* INVALID_ARGUMENT for what would not be what the attributes say: encrypted volumes and shallow
 * ones of ceph-csi, a staticVolume that is neither true nor false, a dataset beside a rootPath. */
gboolean attributes_check(const char *volume, GHashTable *map, GError **error);
/* The path to mount in a file system: rootPath, or ceph-csi's subvolumePath; NULL for none. */
const char *attributes_root_path(GHashTable *map);
/* imageName; of a static image ceph-csi takes the handle for it. NULL for none. */
const char *attributes_image(const char *volume, GHashTable *map);
/* Whether it is a snapshot, which cannot be written however it is mounted. */
gboolean attributes_is_snapshot(GHashTable *map);

#endif
