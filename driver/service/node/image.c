/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/service/node/image.h"
#include <sys/mount.h>
#include "common/error.h"
#include "driver/node/mount/fs_options.h"
#include "driver/node/image/image.h"
#include "driver/service/capability.h"

struct NodeImageUse {
    ImageUse use;
    char *fs_type, *mkfs_options, *context;
    char **fs_options;
    gboolean exclusive, shared;
    gid_t group;
};

void node_image_use_free(NodeImageUse *u)
{
    if (!u)
        return;
    g_free(u->fs_type);
    g_free(u->mkfs_options);
    g_free(u->context);
    g_strfreev(u->fs_options);
    g_free(u);
}

static char *text_or_null(const char *text)
{
    return text && *text ? g_strdup(text) : NULL;
}

static void read_mode(NodeImageUse *u, Csi__V1__VolumeCapability__AccessMode__Mode mode)
{
    switch (mode) {
    case CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__MULTI_NODE_READER_ONLY:
        /* A device: whoever reads it can see to what others write. */
        u->shared = u->use.block;
        /* fall through */
    case CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_READER_ONLY:
        u->use.attrs |= MOUNT_ATTR_RDONLY;
        break;
    case CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_SINGLE_WRITER:
        u->exclusive = TRUE;
        break;
    case CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__MULTI_NODE_SINGLE_WRITER:
    case CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__MULTI_NODE_MULTI_WRITER:
        u->shared = TRUE;
        break;
    default:
        break;
    }
}

NodeImageUse *node_image_use_new(const Csi__V1__VolumeCapability *capability, GHashTable *context,
                                 gboolean selinux, GError **error)
{
    if (!capability) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT,
                    "volume_capability is missing");
        return NULL;
    }
    Csi__V1__VolumeCapability *const list[] = {(Csi__V1__VolumeCapability *)capability};
    if (!capability_check_form(list, 1, error) ||
        !capability_check_supported(list, 1, VOLUME_RBD, error))
        return NULL;
    g_autoptr(NodeImageUse) u = g_new0(NodeImageUse, 1);
    const Csi__V1__VolumeCapability__MountVolume *mount =
        capability->access_type_case == CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT
            ? capability->mount
            : NULL;
    u->fs_type = text_or_null(mount ? mount->fs_type : NULL);
    u->mkfs_options = text_or_null(g_hash_table_lookup(context, "mkfsOptions"));
    if (!fs_options_parse(u->fs_type, mount ? mount->mount_flags : NULL,
                          mount ? mount->n_mount_flags : 0, &u->use.attrs, &u->context,
                          &u->fs_options, error))
        return NULL;
    u->use.block = capability->access_type_case == CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK;
    u->use.fs_type = u->fs_type;
    u->use.mkfs_options = u->mkfs_options;
    u->use.fs_options = u->fs_options;
    u->use.context = selinux ? u->context : NULL;
    read_mode(u, capability->access_mode->mode);
    gint64 group;
    if (!capability_mount_group(capability, &group, error))
        return NULL;
    u->group = (gid_t)group;
    u->use.group = group >= 0 ? &u->group : NULL;
    if (g_hash_table_lookup(context, "snapshot") && !node_image_is_read_only(u)) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT,
                    "a snapshot can only be read: use access mode ReadOnlyMany");
        return NULL;
    }
    return g_steal_pointer(&u);
}

gboolean node_image_is_read_only(const NodeImageUse *u)
{
    return (u->use.attrs & MOUNT_ATTR_RDONLY) != 0;
}

gboolean node_image_stage(Staging *staging, const char *volume, const char *path, json_t *spec,
                          const NodeImageUse *u, gint64 timeout_ms, GError **error)
{
    if (u->shared)
        json_object_set_new(json_object_get(spec, "origin"), "shared", json_true());
    return image_stage(staging, volume, path, spec, &u->use, timeout_ms, error);
}

gboolean node_image_publish(Staging *staging, const char *volume, const char *staged,
                            const char *target, const NodeImageUse *u, gboolean read_only,
                            gint64 timeout_ms, GError **error)
{
    return image_publish(staging, volume, staged, target, &u->use,
                         u->use.attrs | (read_only ? MOUNT_ATTR_RDONLY : 0), u->exclusive,
                         timeout_ms, error);
}
