/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Publishing of images that are staged: a bind of the file system, or of the device's node on a
 * file. A file system gets the pod's fsGroup here, because its files belong to it alone.
 */
#include <string.h>
#include <sys/mount.h>
#include "driver/node/image/internal.h"
#include "driver/node/mount/fsgroup.h"

/* Gives the files of the file system to the group, unless they have it. */
static gboolean give_to_group(Staging *s, const NodeCall *call, dev_t dev, GError **error)
{
    gboolean fits;
    const gid_t group = (gid_t)call->use.group;
    g_autoptr(GPtrArray) table = served_list(s, error);
    if (!table || !fsgroup_fits(call->staged, group, &fits, error))
        return FALSE;
    const MountEntry *there = mount_find(table, call->target);
    /* A pod may change the root that it has; publishing for it once more leaves that as it is. */
    if (fits || (there && there->dev == dev))
        return TRUE;
    const MountEntry *other = served_find_publication(table, dev, call->staged);
    if (other)
        return served_refuse_group(call->volume, other, call->use.group, error);
    FsgroupWalk *walk = served_steal_walk(s, call->volume);
    gboolean done = fsgroup_apply(call->staged, group, call->deadline, G_MAXUINT64, &walk, error);
    served_keep_walk(s, call->volume, walk);
    if (!done)
        g_prefix_error(error, "volume %s: ", call->volume);
    return done;
}

static gboolean publish_fs(Staging *s, const NodeCall *call, const LoopDevice *device,
                           GError **error)
{
    g_autoptr(MountEntry) entry = NULL;
    if (!served_find(s, call->staged, &entry, error))
        return FALSE;
    if (!entry || !image_is_fs_on(entry, device->number))
        return hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                           "volume %s is not staged at %s; stage it first", call->volume,
                           call->staged);
    if (!served_check_context(entry, call->volume, call->use.context,
                              HEARTH_ERROR_FAILED_PRECONDITION, error))
        return FALSE;
    if (call->use.group >= 0 && !entry->read_only && !give_to_group(s, call, entry->dev, error))
        return FALSE;
    return served_bind(s, call, entry->dev, error);
}

static gboolean is_for_reading(const NodeCall *call)
{
    return call->read_only || (call->use.attrs & MOUNT_ATTR_RDONLY);
}

/* FALSE with the error when another publication of the device excludes this one. */
static gboolean check_others(Staging *s, const GPtrArray *table, const NodeCall *call,
                             const ImagePaths *paths, const LoopDevice *device, GError **error)
{
    const MountEntry *other =
        image_find_publication(s, table, paths->tag, device->number, call->target);
    if (!other)
        return TRUE;
    if (call->use.exclusive)
        return hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                           "volume %s is for a single writer and published at %s already",
                           call->volume, other->target);
    return device->read_only == is_for_reading(call) ||
           hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                       "volume %s is published at %s already, and a device is writable for all "
                       "who have it or for nobody",
                       call->volume, other->target);
}

/* Binds the device's node at the target, where nothing is mounted. */
static gboolean bind_device(Staging *s, const NodeCall *call, const ImagePaths *paths, int number,
                            GError **error)
{
    NodeBlock *b = s->block;
    gboolean made;
    if (!b->ops->make_file(b, call->target, paths->tag, &made, error))
        return FALSE;
    if (b->ops->bind(b, number, call->target, error))
        return TRUE;
    g_autoptr(GError) cause = NULL;
    if (made && !b->ops->remove_file(b, call->target, &cause))
        g_warning("volume %s: taking a failed publication back: %s", call->volume, cause->message);
    return FALSE;
}

/*
 * A device node can be written to on a read-only mount, so the device itself is made read-only;
 * that holds for all its users.
 */
static gboolean publish_device(Staging *s, const NodeCall *call, const ImagePaths *paths,
                               const LoopDevice *device, GError **error)
{
    NodeBlock *b = s->block;
    const gboolean read_only = is_for_reading(call);
    if (!image_clear_lost(s, call->volume, call->target, call->deadline, error))
        return FALSE;
    g_autoptr(GPtrArray) table = served_list(s, error);
    if (!table || !check_others(s, table, call, paths, device, error))
        return FALSE;
    const MountEntry *entry = mount_find(table, call->target);
    if (entry) {
        if (!served_check_owner(s, entry, call->volume, error))
            return FALSE;
        if (image_bound_device(entry) == device->number && device->read_only == read_only)
            return TRUE;
        return hearth_fail(error, HEARTH_ERROR_ALREADY_EXISTS,
                           "volume %s is published at %s already, %s; unpublish it first",
                           call->volume, call->target,
                           device->read_only ? "for reading only" : "for writing");
    }
    if (device->read_only != read_only &&
        !b->ops->loop_set_read_only(b, device->number, read_only, error))
        return FALSE;
    return bind_device(s, call, paths, device->number, error);
}

gboolean image_publish(Staging *s, const NodeCall *call, GError **error)
{
    LoopDevice device;
    g_auto(ImagePaths) paths = {0};
    image_paths_of(s, call->volume, &paths);
    if (!s->block->ops->loop_find(s->block, paths.tag, &device, error))
        return FALSE;
    if (device.number < 0)
        return hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                           "volume %s is not staged at %s; stage it first", call->volume,
                           call->staged);
    if (device.autoclear == call->use.block)
        return hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                           "volume %s is staged %s; stage it as it is to be published",
                           call->volume,
                           call->use.block ? "with a file system" : "as a block device");
    return call->use.block ? publish_device(s, call, &paths, &device, error)
                           : publish_fs(s, call, &device, error);
}

gboolean image_remove_target(Staging *s, const NodeCleanup *cleanup, GError **error)
{
    return !s->block || s->block->ops->remove_file(s->block, cleanup->path, error);
}
