/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/image/internal.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include "common/autofd.h"
#include "driver/node/mount/fsgroup.h"
#include "driver/node/hearthd/spec.h"

/* Of the volume ID's hash. */
#define HASH_DIGITS 32

void image_place_clear(ImagePlace *place)
{
    g_free(place->dir);
    g_free(place->file);
    g_free(place->tag);
}

void image_place_of(const Staging *s, const char *volume, ImagePlace *place)
{
    g_autofree char *hash = g_compute_checksum_for_string(G_CHECKSUM_SHA256, volume, -1);
    hash[HASH_DIGITS] = '\0';
    place->dir = g_build_filename(s->device_dir, hash, NULL);
    place->file = g_build_filename(place->dir, "image", NULL);
    /* Of the place too: a machine may be several nodes. */
    g_autofree char *tag = g_compute_checksum_for_string(G_CHECKSUM_SHA256, place->dir, -1);
    tag[HASH_DIGITS] = '\0';
    place->tag = g_strconcat(MOUNT_SOURCE_PREFIX, tag, NULL);
}

/* ---- taking away ---- */

static gboolean remove_fuse(Staging *s, const char *volume, const ImagePlace *place, gboolean stale,
                            Deadline deadline, GError **error)
{
    return staging_clear(s, volume, place->dir, stale, deadline, error) &&
           s->mounter->ops->remove_dir(s->mounter, place->dir, error);
}

/* The directory is there before anything else of an image, and goes last. */
static gboolean is_image(const ImagePlace *place)
{
    hearth_autofd int fd = open(place->dir, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return fd >= 0 || errno != ENOENT;
}

gboolean image_remove_if_unused(Staging *s, const char *volume, gboolean unstaging,
                                Deadline deadline, GError **error)
{
    LoopDevice device;
    if (!s->block)
        return TRUE;
    g_auto(ImagePlace) place = {0};
    image_place_of(s, volume, &place);
    if (!is_image(&place))
        return TRUE;
    g_autoptr(GPtrArray) table = staging_list(s, error);
    if (!table || !s->block->ops->loop_find(s->block, place.tag, &device, error))
        return FALSE;
    if (device.number >= 0) {
        const MountEntry *entry = image_find_use(s, table, place.tag, device.number);
        if (entry && unstaging && !device.autoclear) {
            g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION,
                        "volume %s is published at %s; unpublish it first", volume, entry->target);
            return FALSE;
        }
        if (entry || (!unstaging && !device.autoclear))
            return TRUE;
        if (!s->block->ops->loop_detach(s->block, device.number, error))
            return FALSE;
    }
    return remove_fuse(s, volume, &place, FALSE, deadline, error);
}

/*
 * Takes away all there is of an image that hearthd no longer serves. Mounts of it go first, for
 * once its FUSE mount is gone they could no longer be told from others. What a process still has
 * open of them ends with that process; nothing can be written through it any more.
 */
static gboolean remove_dead(Staging *s, const char *volume, const ImagePlace *place,
                            Deadline deadline, GError **error)
{
    NodeMounter *m = s->mounter;
    LoopDevice device;
    g_autoptr(GPtrArray) table = staging_list(s, error);
    if (!table || !s->block->ops->loop_find(s->block, place->tag, &device, error))
        return FALSE;
    /* Else what is written back would wait, and the unmounts with it. */
    keeper_release_volume(s->keeper, volume);
    for (guint i = table->len; device.number >= 0 && i > 0; i--) {
        const MountEntry *entry = table->pdata[i - 1];
        if ((image_is_fs_on(entry, device.number) ||
             image_is_published(s, entry, place->tag, device.number)) &&
            !m->ops->unmount(m, entry->target, TRUE, left_ms(deadline, G_MAXINT64), error))
            return FALSE;
    }
    g_autoptr(GError) cause = NULL;
    if (device.number >= 0 && !s->block->ops->loop_detach(s->block, device.number, &cause))
        g_message("volume %s: %s", volume, cause->message);
    return remove_fuse(s, volume, place, TRUE, deadline, error);
}

/* ---- putting together ---- */

/* Whether the FUSE mount is there, and hearthd serves it. */
static gboolean look_at_fuse(Staging *s, const char *volume, const ImagePlace *place,
                             gboolean *mounted, gboolean *served, Deadline deadline, GError **error)
{
    g_autoptr(GPtrArray) table = staging_list(s, error);
    const MountEntry *entry = table ? mount_find(table, place->dir) : NULL;
    *mounted = entry != NULL;
    *served = FALSE;
    if (!table || (entry && !staging_check_owner(s, entry, volume, error)))
        return FALSE;
    g_autoptr(HearthdLink) link = hearthd_connect(s->socket_path, NULL, error);
    gboolean attached;
    if (!link ||
        !hearthd_is_attached(link, volume, left_ms(deadline, STAGING_ASK_MS), &attached, error))
        return FALSE;
    *served = *mounted && attached && !staging_is_dead(s, place->dir);
    return TRUE;
}

/* What an attempt has done so far. */
typedef struct Attempt {
    const char *volume;
    ImagePlace place;
    gboolean made_fuse, made_loop, made_dir;
    LoopDevice device;
    int loop_fd, mount_fd;
} Attempt;

static gboolean attach(Staging *s, Attempt *a, const ImageUse *use, GError **error)
{
    NodeBlock *b = s->block;
    const gboolean read_only = (use->attrs & MOUNT_ATTR_RDONLY) != 0;
    if (!b->ops->loop_find(b, a->place.tag, &a->device, error))
        return FALSE;
    if (a->device.number < 0) {
        a->loop_fd = b->ops->loop_attach(b, a->place.file, a->place.tag, read_only, !use->block,
                                         &a->device, error);
        a->made_loop = a->loop_fd >= 0;
        return a->made_loop;
    }
    if (a->device.autoclear == use->block) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_ALREADY_EXISTS,
                    "volume %s is staged already, %s; unstage it first", a->volume,
                    use->block ? "with a file system" : "as a block device");
        return FALSE;
    }
    a->loop_fd = b->ops->loop_hold(b, a->device.number, error);
    return a->loop_fd >= 0;
}

/* Mounts the file system at `path`, unless it is. */
static gboolean mount_fs(Staging *s, Attempt *a, const char *path, const ImageUse *use,
                         Deadline deadline, GError **error)
{
    NodeMounter *m = s->mounter;
    g_autoptr(GPtrArray) table = staging_list(s, error);
    const MountEntry *entry = table ? mount_find(table, path) : NULL;
    if (!table)
        return FALSE;
    if (entry) {
        const gboolean read_only = (use->attrs & MOUNT_ATTR_RDONLY) != 0;
        if (!staging_check_owner(s, entry, a->volume, error))
            return FALSE;
        if (entry->read_only == read_only && image_is_fs_on(entry, a->device.number))
            return staging_check_context(entry, a->volume, use->context,
                                         HEARTH_ERROR_ALREADY_EXISTS, error);
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_ALREADY_EXISTS,
                    "volume %s is staged at %s already, %s; unstage it first", a->volume, path,
                    entry->read_only ? "for reading only" : "for writing");
        return FALSE;
    }
    if (!m->ops->make_dir(m, path, &a->made_dir, error))
        return FALSE;
    const MountEntry *other = image_find_fs(table, a->device.number);
    if (other && !staging_check_context(other, a->volume, use->context,
                                        HEARTH_ERROR_FAILED_PRECONDITION, error))
        return FALSE;
    g_autofree char *grow = NULL;
    a->mount_fd = other ? m->ops->clone(m, other->target, other->dev, use->attrs, error)
                        : image_fs_mount(s, &a->place, &a->device, use, &grow, deadline, error);
    if (a->mount_fd < 0 || !m->ops->place(m, a->mount_fd, path, error))
        return FALSE;
    g_autoptr(GError) cause = NULL;
    if (grow && !s->block->ops->grow(s->block, a->device.number, grow, path,
                                     left_ms(deadline, G_MAXINT64), &cause))
        g_warning("volume %s: its file system stays smaller than its image: %s", a->volume,
                  cause->message);
    return TRUE;
}

static gboolean try_build(Staging *s, Attempt *a, const char *path, const json_t *spec,
                          const ImageUse *use, Deadline deadline, GError **error)
{
    gboolean mounted, served;
    if (!look_at_fuse(s, a->volume, &a->place, &mounted, &served, deadline, error) ||
        (mounted && !served && !remove_dead(s, a->volume, &a->place, deadline, error)) ||
        !s->block->ops->make_root(s->block, s->device_dir, error))
        return FALSE;
    /* Nobody but this process looks at it, so it has no context. */
    const MountOptions fuse = {.attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC |
                                        (use->attrs & MOUNT_ATTR_RDONLY)};
    if (!staging_mount_at(s, a->volume, a->place.dir, spec, NULL, &fuse, deadline, error))
        return FALSE;
    a->made_fuse = !mounted || !served;
    return attach(s, a, use, error) && (use->block || mount_fs(s, a, path, use, deadline, error));
}

static void warn_of(const char *volume, const GError *cause)
{
    g_warning("volume %s: taking a failed staging back: %s", volume, cause->message);
}

/* An AUTOCLEAR device has gone with its descriptor. */
static void take_back(Staging *s, const Attempt *a, const char *path, const ImageUse *use)
{
    const Deadline deadline = deadline_in(STAGING_CLEANUP_MS);
    g_autoptr(GError) loop = NULL, fuse = NULL, dir = NULL;
    if (a->made_dir && !s->mounter->ops->remove_dir(s->mounter, path, &dir))
        warn_of(a->volume, dir);
    if (a->made_loop && use->block &&
        !s->block->ops->loop_detach(s->block, a->device.number, &loop))
        warn_of(a->volume, loop);
    if (a->made_fuse && (!remove_fuse(s, a->volume, &a->place, FALSE, deadline, &fuse) ||
                         !staging_detach_if_last(s, a->volume, deadline, &fuse)))
        warn_of(a->volume, fuse);
}

/* All of what is staged at `path`, or nothing. */
static gboolean build(Staging *s, const char *volume, const char *path, const json_t *spec,
                      const ImageUse *use, Deadline deadline, GError **error)
{
    Attempt a = {.volume = volume, .device = {.number = -1}, .loop_fd = -1, .mount_fd = -1};
    image_place_of(s, volume, &a.place);
    gboolean built = try_build(s, &a, path, spec, use, deadline, error);
    if (a.mount_fd >= 0)
        close(a.mount_fd);
    if (a.loop_fd >= 0)
        close(a.loop_fd);
    if (!built)
        take_back(s, &a, path, use);
    image_place_clear(&a.place);
    return built;
}

gboolean image_stage(Staging *s, const char *volume, const char *path, const json_t *spec,
                     const ImageUse *use, gint64 timeout_ms, GError **error)
{
    Deadline deadline = deadline_in(timeout_ms);
    g_autoptr(BusyHold) hold = busy_take(s->busy, volume, path, error);
    if (!hold)
        return FALSE;
    g_autoptr(GPtrArray) table = staging_list(s, error);
    const MountEntry *entry = table ? mount_find(table, path) : NULL;
    if (!table || (entry && !staging_check_owner(s, entry, volume, error)))
        return FALSE;
    if (!build(s, volume, path, spec, use, deadline, error))
        return FALSE;
    return TRUE;
}

/* ---- publishing ---- */

/* The SELinux context of what is mounted there, the caller's; NULL: none. */
static char *context_at(Staging *s, const char *path)
{
    g_autoptr(GPtrArray) table = staging_list(s, NULL);
    const MountEntry *entry = table ? mount_find(table, path) : NULL;
    return entry ? g_strdup(entry->context) : NULL;
}

/* The volume's device, built anew from what the keeper has when hearthd lost it. */
static gboolean ensure_served(Staging *s, const char *volume, const char *staged,
                              const ImageUse *use, LoopDevice *device, Deadline deadline,
                              GError **error)
{
    gboolean mounted, served;
    g_auto(ImagePlace) place = {0};
    image_place_of(s, volume, &place);
    if (!s->block->ops->loop_find(s->block, place.tag, device, error) ||
        !look_at_fuse(s, volume, &place, &mounted, &served, deadline, error))
        return FALSE;
    if (mounted && !served) {
        json_t *spec = keeper_spec(s->keeper, volume);
        if (!spec) {
            g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION,
                        "volume %s is staged at %s but hearthd no longer serves it; unstage it and "
                        "stage it again",
                        volume, staged);
            return FALSE;
        }
        g_autofree char *had = context_at(s, staged);
        ImageUse again = *use;
        again.context = use->context ? use->context : had;
        gboolean built = build(s, volume, staged, spec, &again, deadline, error);
        node_spec_free(spec);
        if (!built)
            return FALSE;
        g_message("volume %s: built anew at %s after hearthd lost it", volume, staged);
        if (!s->block->ops->loop_find(s->block, place.tag, device, error))
            return FALSE;
    }
    if (!mounted || device->number < 0)
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION,
                    "volume %s is not staged at %s; stage it first", volume, staged);
    else if (device->autoclear == use->block)
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION,
                    "volume %s is staged %s; stage it as it is to be published", volume,
                    use->block ? "with a file system" : "as a block device");
    else
        return TRUE;
    return FALSE;
}

/* Gives the files of the file system to the group, unless they are. */
static gboolean take_group(Staging *s, const char *volume, const char *staged, const char *target,
                           dev_t dev, gid_t group, Deadline deadline, GError **error)
{
    gboolean fits;
    g_autoptr(GPtrArray) table = staging_list(s, error);
    if (!table || !fsgroup_fits(staged, group, &fits, error))
        return FALSE;
    const MountEntry *there = mount_find(table, target);
    /* A pod may change the root that it has; publishing for it once more leaves that as it is. */
    if (fits || (there && there->dev == dev))
        return TRUE;
    const MountEntry *other = staging_find_publication(table, dev, staged, NULL);
    if (other)
        return staging_other_group(volume, other, group, error);
    FsgroupWalk *walk = staging_take_walk(s, volume);
    gboolean done = fsgroup_apply(staged, group, deadline, G_MAXUINT64, &walk, error);
    staging_keep_walk(s, volume, walk);
    if (done)
        return TRUE;
    g_prefix_error(error, "volume %s: ", volume);
    return FALSE;
}

static gboolean publish_fs(Staging *s, const char *volume, const char *staged, const char *target,
                           int number, const ImageUse *use, uint64_t attrs, gboolean exclusive,
                           Deadline deadline, GError **error)
{
    g_autoptr(GPtrArray) table = staging_list(s, error);
    const MountEntry *entry = table ? mount_find(table, staged) : NULL;
    if (!table)
        return FALSE;
    if (!entry || !image_is_fs_on(entry, number)) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION,
                    "volume %s is not staged at %s; stage it first", volume, staged);
        return FALSE;
    }
    if (!staging_check_context(entry, volume, use->context, HEARTH_ERROR_FAILED_PRECONDITION,
                               error) ||
        (use->group && !entry->read_only &&
         !take_group(s, volume, staged, target, entry->dev, *use->group, deadline, error)))
        return FALSE;
    return staging_bind(s, volume, staged, target, entry->dev, attrs, exclusive, deadline, error);
}

/* FALSE with the error when where it is published already excludes this publication. */
static gboolean check_others(Staging *s, const GPtrArray *table, const char *volume,
                             const ImagePlace *place, const char *target, const LoopDevice *device,
                             gboolean read_only, gboolean exclusive, GError **error)
{
    const MountEntry *other = image_find_publication(s, table, place->tag, device->number, target);
    if (!other || (!exclusive && device->read_only == read_only))
        return TRUE;
    g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION,
                exclusive ? "volume %s is for a single writer and published at %s already"
                          : "volume %s is published at %s already, and a device is writable "
                            "for all who have it or for nobody",
                volume, other->target);
    return FALSE;
}

/* Binds the device's node at the target, where nothing is mounted. */
static gboolean bind_device(Staging *s, const char *volume, const ImagePlace *place,
                            const char *target, int number, GError **error)
{
    NodeBlock *b = s->block;
    gboolean made;
    if (!b->ops->make_file(b, target, place->tag, &made, error))
        return FALSE;
    if (b->ops->bind(b, number, target, error))
        return TRUE;
    g_autoptr(GError) cause = NULL;
    if (made && !b->ops->remove_file(b, target, &cause))
        g_warning("volume %s: taking a failed publication back: %s", volume, cause->message);
    return FALSE;
}

/*
 * A device node can be written to on a read-only mount, so it is the device that is made read-only;
 * which holds for all that have it.
 */
static gboolean publish_device(Staging *s, const char *volume, const char *target,
                               const LoopDevice *device, gboolean read_only, gboolean exclusive,
                               Deadline deadline, GError **error)
{
    NodeBlock *b = s->block;
    g_auto(ImagePlace) place = {0};
    image_place_of(s, volume, &place);
    if (!image_clear_lost(s, volume, target, left_ms(deadline, G_MAXINT64), error))
        return FALSE;
    g_autoptr(GPtrArray) table = staging_list(s, error);
    if (!table ||
        !check_others(s, table, volume, &place, target, device, read_only, exclusive, error))
        return FALSE;
    const MountEntry *entry = mount_find(table, target);
    if (entry) {
        if (!staging_check_owner(s, entry, volume, error))
            return FALSE;
        if (image_bound_device(entry) == device->number && device->read_only == read_only)
            return TRUE;
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_ALREADY_EXISTS,
                    "volume %s is published at %s already, %s; unpublish it first", volume, target,
                    device->read_only ? "for reading only" : "for writing");
        return FALSE;
    }
    return (device->read_only == read_only ||
            b->ops->loop_set_read_only(b, device->number, read_only, error)) &&
           bind_device(s, volume, &place, target, device->number, error);
}

gboolean image_publish(Staging *s, const char *volume, const char *staged, const char *target,
                       const ImageUse *use, uint64_t attrs, gboolean exclusive, gint64 timeout_ms,
                       GError **error)
{
    Deadline deadline = deadline_in(timeout_ms);
    LoopDevice device;
    g_autoptr(BusyHold) hold = busy_take(s->busy, volume, target, error);
    if (!hold || !ensure_served(s, volume, staged, use, &device, deadline, error))
        return FALSE;
    if (!use->block)
        return publish_fs(s, volume, staged, target, device.number, use, attrs, exclusive, deadline,
                          error);
    const gboolean read_only = (attrs & MOUNT_ATTR_RDONLY) || (use->attrs & MOUNT_ATTR_RDONLY);
    return publish_device(s, volume, target, &device, read_only, exclusive, deadline, error);
}

/* ---- sizes ---- */

gboolean image_is_staged(Staging *s, const char *volume, gboolean *staged, GError **error)
{
    LoopDevice device = {.number = -1};
    g_auto(ImagePlace) place = {0};
    if (s->block)
        image_place_of(s, volume, &place);
    if (s->block && !s->block->ops->loop_find(s->block, place.tag, &device, error))
        return FALSE;
    *staged = device.number >= 0;
    return TRUE;
}

/* Whoever may not grow a mounted file system may still find it grown, as by its staging. */
static gboolean grow_mounted(Staging *s, const LoopDevice *device, const MountEntry *entry,
                             Deadline deadline, GError **error)
{
    NodeBlock *b = s->block;
    g_auto(BlockContent) content = {0};
    if (!b->ops->can_grow_mounted(b, entry->type)) {
        if (!b->ops->look(b, device->number, left_ms(deadline, G_MAXINT64), &content, error))
            return FALSE;
        if (content.bytes + IMAGE_LEFT_OVER_BYTES > device->bytes)
            return TRUE;
    }
    return b->ops->grow(b, device->number, entry->type, entry->target,
                        left_ms(deadline, G_MAXINT64), error);
}

gboolean image_expand(Staging *s, const char *volume, guint64 at_least, gint64 timeout_ms,
                      guint64 *bytes, GError **error)
{
    Deadline deadline = deadline_in(timeout_ms);
    LoopDevice device;
    guint64 image_bytes;
    g_auto(ImagePlace) place = {0};
    image_place_of(s, volume, &place);
    g_autoptr(BusyHold) hold = busy_take(s->busy, volume, NULL, error);
    if (!hold || !s->block->ops->loop_find(s->block, place.tag, &device, error))
        return FALSE;
    if (device.number < 0) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION,
                    "volume %s is not staged on this node", volume);
        return FALSE;
    }
    g_autoptr(HearthdLink) link = hearthd_connect(s->socket_path, NULL, error);
    if (!link ||
        !hearthd_resize(link, volume, left_ms(deadline, G_MAXINT64), &image_bytes, error) ||
        !s->block->ops->loop_grow(s->block, device.number, place.file,
                                  left_ms(deadline, G_MAXINT64), bytes, error))
        return FALSE;
    if (*bytes < at_least) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION,
                    "volume %s: the image has %" G_GUINT64_FORMAT " bytes and %" G_GUINT64_FORMAT
                    " are asked for; ControllerExpandVolume comes first",
                    volume, *bytes, at_least);
        return FALSE;
    }
    device.bytes = *bytes;
    g_autoptr(GPtrArray) table = staging_list(s, error);
    for (guint i = 0; table && i < table->len; i++) {
        const MountEntry *entry = table->pdata[i];
        if (image_is_fs_on(entry, device.number) && !entry->read_only)
            return grow_mounted(s, &device, entry, deadline, error);
    }
    return table != NULL;
}

gboolean image_device_bytes(Staging *s, const char *volume, const char *path, gboolean *is_device,
                            guint64 *bytes, GError **error)
{
    LoopDevice device;
    *is_device = FALSE;
    if (!s->block)
        return TRUE;
    g_auto(ImagePlace) place = {0};
    image_place_of(s, volume, &place);
    g_autoptr(GPtrArray) table = staging_list(s, error);
    const MountEntry *entry = table ? mount_find(table, path) : NULL;
    if (!table || !s->block->ops->loop_find(s->block, place.tag, &device, error))
        return FALSE;
    *is_device =
        entry && device.number >= 0 && image_is_published(s, entry, place.tag, device.number);
    *bytes = device.bytes;
    return TRUE;
}
