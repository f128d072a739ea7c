/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kind of volumes that are images (image.h has the picture): what NodeKind asks of them. A
 * device is built up in the order FUSE mount, loop device, file system, and taken away in the
 * reverse order. Each step is repeated safely, since it begins with what is there.
 */
#include "driver/node/image/internal.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include "common/autofd.h"

void image_init(Staging *s, NodeBlock *block, const char *device_dir)
{
    s->block = block;
    s->device_dir = g_strdup(device_dir);
}

static void image_free(Staging *s)
{
    g_clear_pointer(&s->block, node_block_free);
    g_clear_pointer(&s->device_dir, g_free);
}

static gboolean image_takes(const VolumeAttributes *attributes)
{
    return attributes->type == VOLUME_RBD;
}

/* ---- taking away ---- */

static gboolean remove_fuse(Staging *s, const char *volume, const ImagePaths *paths, gboolean stale,
                            Deadline deadline, GError **error)
{
    return served_clear(s, volume, paths->dir, stale, deadline, error) &&
           s->mounter->ops->remove_dir(s->mounter, paths->dir, error);
}

/* The directory is there before anything else of an image, and goes last. */
static gboolean is_image(const ImagePaths *paths)
{
    hearth_autofd int fd = open(paths->dir, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return fd >= 0 || errno != ENOENT;
}

/* While it is published a device stays. One that is only staged stays too until it is unstaged: it
 * has no mount, and is staged as long as it exists. */
static gboolean image_remove_unused(Staging *s, const NodeCleanup *cleanup, GError **error)
{
    LoopDevice device;
    const char *volume = cleanup->volume;
    const gboolean unstaging = cleanup->unstaging;
    if (!s->block)
        return TRUE;
    g_auto(ImagePaths) paths = {0};
    image_paths_of(s, volume, &paths);
    if (!is_image(&paths))
        return TRUE;
    g_autoptr(GPtrArray) table = served_list(s, error);
    if (!table || !s->block->ops->loop_find(s->block, paths.tag, &device, error))
        return FALSE;
    if (device.number >= 0) {
        const MountEntry *entry = image_find_use(s, table, paths.tag, device.number);
        if (entry && unstaging && !device.autoclear)
            return hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                               "volume %s is published at %s; unpublish it first", volume,
                               entry->target);
        if (entry || (!unstaging && !device.autoclear))
            return TRUE;
        if (!s->block->ops->loop_detach(s->block, device.number, error))
            return FALSE;
    }
    return remove_fuse(s, volume, &paths, FALSE, cleanup->deadline, error);
}

/*
 * Takes away all parts of an image that hearthd no longer serves. Its mounts go first, because they
 * cannot be recognized once its FUSE mount is gone. Files that a process still has open end with
 * that process; nothing can be written through them any more.
 */
static gboolean remove_dead(Staging *s, const char *volume, const ImagePaths *paths,
                            Deadline deadline, GError **error)
{
    NodeMounter *m = s->mounter;
    LoopDevice device;
    g_autoptr(GPtrArray) table = served_list(s, error);
    if (!table || !s->block->ops->loop_find(s->block, paths->tag, &device, error))
        return FALSE;
    /* Otherwise writing back would wait, and the unmounts with it. */
    keeper_release_volume(s->keeper, volume);
    for (guint i = table->len; device.number >= 0 && i > 0; i--) {
        const MountEntry *entry = table->pdata[i - 1];
        if ((image_is_fs_on(entry, device.number) ||
             image_is_published(s, entry, paths->tag, device.number)) &&
            !m->ops->unmount(m, entry->target, TRUE, left_ms(deadline, G_MAXINT64), error))
            return FALSE;
    }
    g_autoptr(GError) cause = NULL;
    if (device.number >= 0 && !s->block->ops->loop_detach(s->block, device.number, &cause))
        g_message("volume %s: %s", volume, cause->message);
    return remove_fuse(s, volume, paths, TRUE, deadline, error);
}

/* ---- putting together ---- */

/* What an attempt to stage an image has done so far. */
typedef struct StageAttempt {
    const NodeCall *call;
    ImagePaths paths;
    gboolean made_fuse, made_loop, made_dir;
    LoopDevice device;
    int loop_fd, mount_fd;
} StageAttempt;

static gboolean attach_device(Staging *s, StageAttempt *a, GError **error)
{
    NodeBlock *b = s->block;
    const VolumeUse *use = &a->call->use;
    if (!b->ops->loop_find(b, a->paths.tag, &a->device, error))
        return FALSE;
    if (a->device.number < 0) {
        a->device.read_only = (use->attrs & MOUNT_ATTR_RDONLY) != 0;
        a->device.autoclear = !use->block;
        a->loop_fd = b->ops->loop_attach(b, a->paths.file, a->paths.tag, &a->device, error);
        a->made_loop = a->loop_fd >= 0;
        return a->made_loop;
    }
    if (a->device.autoclear == use->block)
        return hearth_fail(error, HEARTH_ERROR_ALREADY_EXISTS,
                           "volume %s is staged already, %s; unstage it first", a->call->volume,
                           use->block ? "with a file system" : "as a block device");
    a->loop_fd = b->ops->loop_hold(b, a->device.number, error);
    return a->loop_fd >= 0;
}

/* Checks that the file system mounted at the staging path is the one that is requested. */
static gboolean check_fs(Staging *s, const StageAttempt *a, const MountEntry *entry, GError **error)
{
    const NodeCall *call = a->call;
    const gboolean read_only = (call->use.attrs & MOUNT_ATTR_RDONLY) != 0;
    if (!served_check_owner(s, entry, call->volume, error))
        return FALSE;
    if (entry->read_only == read_only && image_is_fs_on(entry, a->device.number))
        return served_check_context(entry, call->volume, call->use.context,
                                    HEARTH_ERROR_ALREADY_EXISTS, error);
    return hearth_fail(error, HEARTH_ERROR_ALREADY_EXISTS,
                       "volume %s is staged at %s already, %s; unstage it first", call->volume,
                       call->staged, entry->read_only ? "for reading only" : "for writing");
}

/* Mounts the file system at the staging path, unless it is mounted there. */
static gboolean mount_fs(Staging *s, StageAttempt *a, GError **error)
{
    NodeMounter *m = s->mounter;
    const NodeCall *call = a->call;
    const ImageFs fs = {
        .paths = &a->paths, .device = &a->device, .use = &call->use, .deadline = call->deadline};
    g_autoptr(MountEntry) entry = NULL;
    if (!served_find(s, call->staged, &entry, error))
        return FALSE;
    if (entry)
        return check_fs(s, a, entry, error);
    if (!m->ops->make_dir(m, call->staged, &a->made_dir, error))
        return FALSE;
    g_autoptr(GPtrArray) table = served_list(s, error);
    if (!table)
        return FALSE;
    const MountEntry *other = image_find_fs(table, a->device.number);
    if (other && !served_check_context(other, call->volume, call->use.context,
                                       HEARTH_ERROR_FAILED_PRECONDITION, error))
        return FALSE;
    g_autofree char *grow = NULL;
    a->mount_fd = other ? m->ops->clone(m, other->target, other->dev, call->use.attrs, error)
                        : image_fs_mount(s, &fs, &grow, error);
    if (a->mount_fd < 0 || !m->ops->place(m, a->mount_fd, call->staged, error))
        return FALSE;
    g_autoptr(GError) cause = NULL;
    if (grow && !s->block->ops->grow(s->block, a->device.number, grow, call->staged,
                                     left_ms(call->deadline, G_MAXINT64), &cause))
        g_warning("volume %s: its file system stays smaller than its image: %s", call->volume,
                  cause->message);
    return TRUE;
}

/* Mounts the FUSE file system with the image, unless hearthd serves it already. */
static gboolean mount_fuse(Staging *s, StageAttempt *a, GError **error)
{
    const NodeCall *call = a->call;
    g_auto(MountState) state = {0};
    if (!served_read_state(s, call->volume, a->paths.dir, &state, call->deadline, error))
        return FALSE;
    const gboolean dead = state.entry && !state.alive;
    if (dead && !remove_dead(s, call->volume, &a->paths, call->deadline, error))
        return FALSE;
    if (!s->block->ops->make_root(s->block, s->device_dir, error))
        return FALSE;
    /* Only this process opens it, so it has no SELinux context. */
    const ServedMount mount = {.volume = call->volume,
                               .path = a->paths.dir,
                               .spec = call->spec,
                               .options = {.attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                                                    MOUNT_ATTR_NOEXEC |
                                                    (call->use.attrs & MOUNT_ATTR_RDONLY)}};
    if (!served_mount(s, &mount, call->deadline, error))
        return FALSE;
    a->made_fuse = !state.alive;
    return TRUE;
}

static void warn_of_take_back(const char *volume, const GError *cause)
{
    g_warning("volume %s: taking a failed staging back: %s", volume, cause->message);
}

/* An AUTOCLEAR device has gone with its descriptor. */
static void take_back(Staging *s, const StageAttempt *a)
{
    const char *volume = a->call->volume;
    const Deadline deadline = deadline_in(SERVED_CLEANUP_MS);
    g_autoptr(GError) loop = NULL, fuse = NULL, dir = NULL;
    if (a->made_dir && !s->mounter->ops->remove_dir(s->mounter, a->call->staged, &dir))
        warn_of_take_back(volume, dir);
    if (a->made_loop && a->call->use.block &&
        !s->block->ops->loop_detach(s->block, a->device.number, &loop))
        warn_of_take_back(volume, loop);
    if (!a->made_fuse)
        return;
    if (!remove_fuse(s, volume, &a->paths, FALSE, deadline, &fuse) ||
        !served_detach_if_last(s, volume, deadline, &fuse))
        warn_of_take_back(volume, fuse);
}

/* Builds everything that is staged, or nothing. */
static gboolean build(Staging *s, const NodeCall *call, GError **error)
{
    StageAttempt a = {.call = call, .device = {.number = -1}, .loop_fd = -1, .mount_fd = -1};
    image_paths_of(s, call->volume, &a.paths);
    gboolean built = mount_fuse(s, &a, error) && attach_device(s, &a, error);
    if (built && !call->use.block)
        built = mount_fs(s, &a, error);
    if (a.mount_fd >= 0)
        close(a.mount_fd);
    if (a.loop_fd >= 0)
        close(a.loop_fd);
    if (!built)
        take_back(s, &a);
    image_paths_clear(&a.paths);
    return built;
}

static gboolean check_enabled(Staging *s, const char *volume, GError **error)
{
    return s->block || hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                                   "volume %s is an image, and this node plugin has no directory "
                                   "for their devices; give it --device-dir",
                                   volume);
}

static gboolean image_stage(Staging *s, const NodeCall *call, GError **error)
{
    if (!check_enabled(s, call->volume, error))
        return FALSE;
    g_autoptr(MountEntry) entry = NULL;
    if (!served_find(s, call->staged, &entry, error) ||
        (entry && !served_check_owner(s, entry, call->volume, error)))
        return FALSE;
    return build(s, call, error);
}

/* ---- serving again ---- */

/* The SELinux context of what is mounted there, the caller's; NULL: none. */
static char *context_at(Staging *s, const char *path)
{
    g_autoptr(MountEntry) entry = NULL;
    served_find(s, path, &entry, NULL);
    return entry ? g_strdup(entry->context) : NULL;
}

static gboolean image_check(Staging *s, const NodeCall *call, StagedVolume *staged, GError **error)
{
    g_auto(MountState) state = {0};
    if (!check_enabled(s, call->volume, error))
        return FALSE;
    g_auto(ImagePaths) paths = {0};
    image_paths_of(s, call->volume, &paths);
    if (!served_read_state(s, call->volume, paths.dir, &state, call->deadline, error))
        return FALSE;
    if (!state.entry)
        return hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                           "volume %s is not staged at %s; stage it first", call->volume,
                           call->staged);
    if (state.alive)
        return TRUE;
    staged->volume = g_strdup(call->volume);
    staged->context = context_at(s, call->staged);
    staged->lost = "hearthd had lost it";
    return TRUE;
}

static gboolean image_restore(Staging *s, const NodeCall *call, const StagedVolume *staged,
                              const json_t *spec, GError **error)
{
    NodeCall again = *call;
    again.spec = spec;
    if (!again.use.context)
        again.use.context = staged->context;
    return build(s, &again, error);
}

static gboolean clear_lost_target(Staging *s, const NodeCleanup *cleanup, GError **error)
{
    return image_clear_lost(s, cleanup->volume, cleanup->path, cleanup->deadline, error);
}

const NodeKind image_kind = {
    .name = "image",
    .on_device = TRUE,
    .takes = image_takes,
    .free = image_free,
    .owns = image_owns,
    .stage = image_stage,
    .check = image_check,
    .restore = image_restore,
    .publish = image_publish,
    .clear_lost = clear_lost_target,
    .remove_target = image_remove_target,
    .remove_unused = image_remove_unused,
    .is_staged = image_is_staged,
    .expand = image_expand,
    .device_bytes = image_device_bytes,
};
