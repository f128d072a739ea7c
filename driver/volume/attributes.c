/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/volume/attributes.h"
#include <string.h>

const char *attributes_get(GHashTable *map, const char *name)
{
    const char *value = g_hash_table_lookup(map, name);
    return value && *value ? value : NULL;
}

static gboolean is_true(GHashTable *map, const char *name)
{
    return g_strcmp0(attributes_get(map, name), "true") == 0;
}

gboolean attributes_type(const char *volume, GHashTable *map, VolumeType *type, GError **error)
{
    const char *name = attributes_get(map, "type");
    if (name) {
        if (volume_type_parse(name, type))
            return TRUE;
        return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                           "volume %s: type \"%s\" is not known; use cephfs, rbd or dir", volume,
                           name);
    }
    g_autoptr(VolumeId) id = volume_id_decode(volume, NULL);
    gboolean image = attributes_get(map, "imageName") ||
                     (attributes_get(map, "pool") && !attributes_get(map, "fsName") &&
                      !attributes_get(map, "dataset") && !attributes_root_path(map));
    *type = image ? VOLUME_RBD : VOLUME_CEPHFS;
    if (id)
        *type = id->type;
    return TRUE;
}

gboolean attributes_check(const char *volume, GHashTable *map, GError **error)
{
    const char *fixed = attributes_get(map, "staticVolume");
    const char *text = NULL;
    if (fixed && strcmp(fixed, "true") != 0 && strcmp(fixed, "false") != 0)
        text = "staticVolume must be \"true\" or \"false\"";
    else if (is_true(map, "encrypted"))
        text = "it is encrypted by ceph-csi, and this driver would show what is encrypted; copy "
               "its files with ceph-csi to a volume that is not";
    else if (attributes_get(map, "dataset") && attributes_root_path(map))
        text = "dataset and rootPath both say where it is; leave one of them out";
    else if (attributes_get(map, "backingSnapshotID"))
        text = "it is a snapshot that ceph-csi shows by its journal; make a volume of this driver "
               "from a VolumeSnapshot, with accessModes [ReadOnlyMany]";
    if (text)
        hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT, "volume %s: %s", volume, text);
    return text == NULL;
}

const char *attributes_root_path(GHashTable *map)
{
    const char *path = attributes_get(map, "rootPath");
    return path ? path : attributes_get(map, "subvolumePath");
}

const char *attributes_image(const char *volume, GHashTable *map)
{
    const char *image = attributes_get(map, "imageName");
    return !image && is_true(map, "staticVolume") ? volume : image;
}

gboolean attributes_is_snapshot(GHashTable *map)
{
    const char *path = attributes_root_path(map);
    return is_true(map, "backingSnapshot") || attributes_get(map, "dataset") ||
           (path && strstr(path, "/.snap/"));
}
