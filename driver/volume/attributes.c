/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/volume/attributes.h"
#include <string.h>

static const char *get(GHashTable *map, const char *name)
{
    const char *value = g_hash_table_lookup(map, name);
    return value && *value ? value : NULL;
}

static gboolean is_true(GHashTable *map, const char *name)
{
    return g_strcmp0(get(map, name), "true") == 0;
}

/* FALSE: there is no such type. */
static gboolean find_type(const char *name, VolumeAttributes *a)
{
    if (name)
        return volume_type_parse(name, &a->type);
    g_autoptr(VolumeId) id = volume_id_decode(a->volume, NULL);
    const gboolean in_file_system = a->fs_name || a->dataset || a->root_path;
    if (id)
        a->type = id->type;
    else if (a->image || (a->pool && !in_file_system))
        a->type = VOLUME_RBD;
    return TRUE;
}

gboolean attributes_take(const char *volume, GHashTable *map, VolumeAttributes *a)
{
    *a = (VolumeAttributes){.volume = volume,
                            .type = VOLUME_CEPHFS,
                            .cluster_id = get(map, "clusterID"),
                            .fs_name = get(map, "fsName"),
                            .root_path = get(map, "rootPath"),
                            .dataset = get(map, "dataset"),
                            .pool = get(map, "pool"),
                            .rados_namespace = get(map, "radosNamespace"),
                            .image = get(map, "imageName"),
                            .snapshot = get(map, "snapshot"),
                            .mkfs_options = get(map, "mkfsOptions"),
                            .cache = get(map, "cache"),
                            .cache_quota = get(map, "cacheQuota"),
                            .warm = get(map, "warm"),
                            .read_timeout = get(map, "readTimeout"),
                            .pv_name = get(map, ATTRIBUTE_PV_NAME),
                            .pvc_name = get(map, ATTRIBUTE_PVC_NAME),
                            .pvc_namespace = get(map, ATTRIBUTE_PVC_NAMESPACE)};
    if (!a->root_path)
        a->root_path = get(map, "subvolumePath");
    const gboolean known = find_type(get(map, "type"), a);
    if (!a->image && is_true(map, "staticVolume"))
        a->image = volume;
    a->is_snapshot = is_true(map, "backingSnapshot") || a->dataset ||
                     (a->root_path && strstr(a->root_path, "/.snap/"));
    return known;
}

/* Why the volume would not be what its attributes say; NULL: it is. */
static const char *why_not(const VolumeAttributes *a, GHashTable *map)
{
    const char *fixed = get(map, "staticVolume");
    if (fixed && strcmp(fixed, "true") != 0 && strcmp(fixed, "false") != 0)
        return "staticVolume must be \"true\" or \"false\"";
    if (is_true(map, "encrypted"))
        return "it is encrypted by ceph-csi, and this driver would show what is encrypted; copy "
               "its files with ceph-csi to a volume that is not";
    if (a->dataset && a->root_path)
        return "dataset and rootPath both say where it is; leave one of them out";
    if (get(map, "backingSnapshotID"))
        return "it is a snapshot that ceph-csi shows by its journal; make a volume of this driver "
               "from a VolumeSnapshot, with accessModes [ReadOnlyMany]";
    return NULL;
}

gboolean attributes_read(const char *volume, GHashTable *map, VolumeAttributes *attributes,
                         GError **error)
{
    if (!attributes_take(volume, map, attributes))
        return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                           "volume %s: type \"%s\" is not known; use cephfs, rbd or dir", volume,
                           get(map, "type"));
    const char *why = why_not(attributes, map);
    return !why || hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT, "volume %s: %s", volume, why);
}
