/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/service/node/use.h"
#include <sys/mount.h>
#include "common/error.h"
#include "driver/node/mount/fs_options.h"
#include "driver/node/staging.h"
#include "driver/service/capability.h"

void node_use_clear(NodeUse *u)
{
    g_clear_pointer(&u->context, g_free);
    g_clear_pointer(&u->fs_options, g_strfreev);
}

static void read_mode(NodeUse *u, Csi__V1__VolumeCapability__AccessMode__Mode mode)
{
    switch (mode) {
    case CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__MULTI_NODE_READER_ONLY:
        /* A reader of a device must see what others write. */
        u->shared = u->use.block;
        /* fall through */
    case CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_READER_ONLY:
        u->use.attrs |= MOUNT_ATTR_RDONLY;
        break;
    case CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_SINGLE_WRITER:
        u->use.exclusive = TRUE;
        break;
    case CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__MULTI_NODE_SINGLE_WRITER:
    case CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__MULTI_NODE_MULTI_WRITER:
        u->shared = u->kind->on_device;
        u->shared_locks = !u->kind->on_device;
        break;
    default:
        break;
    }
}

/* Mount flags; a kind with a file system of its own takes that one's options too. */
static gboolean read_flags(NodeUse *u, const NodeUseRequest *r, GError **error)
{
    const gboolean mounts =
        r->capability->access_type_case == CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
    const Csi__V1__VolumeCapability__MountVolume *mount = mounts ? r->capability->mount : NULL;
    char *const *flags = mount ? mount->mount_flags : NULL;
    const size_t n = mount ? mount->n_mount_flags : 0;
    if (!u->kind->on_device)
        return mount_parse_flags(flags, n, &u->use.attrs, &u->context, error);
    u->use.block = !mounts;
    u->use.fs_type = mount && mount->fs_type && *mount->fs_type ? mount->fs_type : NULL;
    u->use.mkfs_options = r->attributes->mkfs_options;
    u->fs_options = fs_options_parse(u->use.fs_type, flags, n, &u->use.attrs, &u->context, error);
    u->use.fs_options = u->fs_options;
    return u->fs_options != NULL;
}

gboolean node_use_parse(const NodeUseRequest *r, NodeUse *u, GError **error)
{
    if (!r->capability)
        return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT, "volume_capability is missing");
    Csi__V1__VolumeCapability *const list[] = {(Csi__V1__VolumeCapability *)r->capability};
    u->kind = staging_kind(r->attributes);
    if (!capability_check_form(list, 1, error))
        return FALSE;
    if (!capability_check_supported(list, 1, r->attributes->type, error))
        return FALSE;
    if (!capability_mount_group(r->capability, &u->use.group, error))
        return FALSE;
    if (!read_flags(u, r, error))
        return FALSE;
    u->use.context = r->selinux ? u->context : NULL;
    read_mode(u, r->capability->access_mode->mode);
    const gboolean read_only = (u->use.attrs & MOUNT_ATTR_RDONLY) != 0;
    if (u->kind->on_device && r->attributes->snapshot && !read_only)
        return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                           "a snapshot can only be read: use access mode ReadOnlyMany");
    return TRUE;
}
