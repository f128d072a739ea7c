/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/dataset/internal.h"
#include "driver/node/staging_internal.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include "common/autofd.h"
#include "driver/node/mount/kubelet_paths.h"
#include "driver/node/mount/selinux.h"
#include "driver/node/hearthd/spec.h"

/* For the attributes of a mount of which it is only asked whether it is dead. */
#define DEAD_PROBE_MS 2000
/* An unmount is given this at least: one that is begun and not waited for would come as a surprise.
 */
#define UNMOUNT_LEAST_MS 2000
/* Mounts stacked on one path, made by hand or by older kernels' races. */
#define MAX_STACKED 16

Staging *staging_new(NodeMounter *mounter, const char *hearthd_socket)
{
    Staging *s = g_new0(Staging, 1);
    s->mounter = mounter;
    s->socket_path = g_strdup(hearthd_socket);
    s->keeper = keeper_new();
    s->busy = busy_new();
    g_mutex_init(&s->walks_lock);
    s->walks =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)fsgroup_walk_free);
    s->watch = watch_new(hearthd_socket, mounter, s->keeper, s->busy);
    return s;
}

void staging_take_images(Staging *s, NodeBlock *block, const char *device_dir)
{
    s->block = block;
    s->device_dir = g_strdup(device_dir);
}

void staging_free(Staging *s)
{
    if (!s)
        return;
    node_datasets_free(s);
    watch_free(s->watch);
    busy_free(s->busy);
    keeper_free(s->keeper);
    node_mounter_free(s->mounter);
    node_block_free(s->block);
    g_hash_table_unref(s->walks);
    g_mutex_clear(&s->walks_lock);
    g_free(s->device_dir);
    g_free(s->socket_path);
    g_free(s);
}

GPtrArray *staging_list(Staging *s, GError **error)
{
    return s->mounter->ops->list(s->mounter, error);
}

static gboolean is_of_volume(const MountEntry *entry, const char *volume)
{
    return g_strcmp0(mount_volume(entry), volume) == 0;
}

/* Whether it is what hearthd serves of the volume. */
static gboolean is_served_of(const MountEntry *entry, const char *volume)
{
    return g_strcmp0(mount_served_volume(entry), volume) == 0;
}

/* Whether what is mounted is the volume, or is on it. */
static gboolean belongs(Staging *s, const MountEntry *entry, const char *volume)
{
    return is_of_volume(entry, volume) || image_is_mount_of(s, entry, volume);
}

gboolean staging_check_owner(Staging *s, const MountEntry *entry, const char *volume,
                             GError **error)
{
    const char *owner = mount_volume(entry);
    if (belongs(s, entry, volume))
        return TRUE;
    if (owner)
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION,
                    "%s: volume %s is mounted there, not %s; unmount it first", entry->target,
                    owner, volume);
    else
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION,
                    "%s: \"%s\" of type %s is mounted there; unmount it first", entry->target,
                    entry->source, entry->type);
    return FALSE;
}

gboolean staging_is_dead(Staging *s, const char *path)
{
    g_autoptr(GError) cause = NULL;
    return !s->mounter->ops->probe(s->mounter, -1, path, DEAD_PROBE_MS, &cause) &&
           g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION);
}

gboolean staging_check_context(const MountEntry *entry, const char *volume, const char *context,
                               int code, GError **error)
{
    if (!context || (entry->context && selinux_same(entry->context, context)))
        return TRUE;
    g_set_error(error, HEARTH_ERROR, code,
                "volume %s is mounted at %s with %s%s, and %s is asked for: a volume has one "
                "SELinux context on a node until its last pod there has gone; give its pods the "
                "same seLinuxOptions, keep them on different nodes, or set seLinuxChangePolicy: "
                "Recursive in them",
                volume, entry->target,
                entry->context ? "the SELinux context " : "no SELinux context",
                entry->context ? entry->context : "", context);
    return FALSE;
}

/* A mount of the volume that answers, wherever it is; NULL: none. Borrowed from the table. */
static const MountEntry *find_live(Staging *s, const GPtrArray *table, const char *volume)
{
    for (guint i = 0; i < table->len; i++) {
        const MountEntry *entry = table->pdata[i];
        if (is_served_of(entry, volume) && mount_find(table, entry->target) == entry &&
            !staging_is_dead(s, entry->target))
            return entry;
    }
    return NULL;
}

/* Whether the mount is still in the table; TRUE when that cannot be read. */
static gboolean is_mounted(Staging *s, const char *path, uint64_t id)
{
    g_autoptr(GPtrArray) table = staging_list(s, NULL);
    const MountEntry *entry = table ? mount_find(table, path) : NULL;
    return !table || (entry && entry->id == id);
}

/* Unmounts; one that is in use only when it is dead, for nobody can do anything with it. */
static gboolean unmount(Staging *s, const MountEntry *entry, gboolean stale, Deadline deadline,
                        GError **error)
{
    const NodeMounterOps *ops = s->mounter->ops;
    gint64 limit = MAX(left_ms(deadline, G_MAXINT64), UNMOUNT_LEAST_MS);
    g_autoptr(GError) cause = NULL;
    if (ops->unmount(s->mounter, entry->target, stale, limit, &cause))
        return TRUE;
    if (!stale && g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION) &&
        staging_is_dead(s, entry->target))
        return ops->unmount(s->mounter, entry->target, TRUE, limit, error);
    /* Writing back may hang when the mount has gone already; detaching from hearthd ends that. */
    if (!is_mounted(s, entry->target, entry->id))
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&cause));
    return FALSE;
}

gboolean staging_clear(Staging *s, const char *volume, const char *path, gboolean stale,
                       Deadline deadline, GError **error)
{
    for (unsigned i = 0; i < MAX_STACKED; i++) {
        g_autoptr(GPtrArray) table = staging_list(s, error);
        if (!table)
            return FALSE;
        const MountEntry *entry = mount_find(table, path);
        if (!entry)
            return TRUE;
        if (!staging_check_owner(s, entry, volume, error) ||
            !unmount(s, entry, stale, deadline, error))
            return FALSE;
    }
    g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_INTERNAL,
                "%s: still mounted after %d unmounts; unmount it by hand", path, MAX_STACKED);
    return FALSE;
}

gboolean staging_detach_if_last(Staging *s, const char *volume, Deadline deadline, GError **error)
{
    g_autoptr(GPtrArray) table = staging_list(s, error);
    if (!table)
        return FALSE;
    for (guint i = 0; i < table->len; i++)
        if (is_served_of(table->pdata[i], volume))
            return TRUE;
    keeper_drop(s->keeper, volume);
    gboolean absent;
    g_autoptr(GError) cause = NULL;
    g_autoptr(HearthdLink) link = hearthd_connect(s->socket_path, &absent, &cause);
    if (link ? hearthd_detach(link, volume, left_ms(deadline, G_MAXINT64), &cause) : absent)
        return TRUE; /* a hearthd that is not there serves nothing */
    g_propagate_error(error, g_steal_pointer(&cause));
    return FALSE;
}

/* Checks that what is staged and served is what is asked for. */
static gboolean check_same(Staging *s, HearthdLink *link, const char *volume, const char *path,
                           dev_t dev, const json_t *spec, Deadline deadline, GError **error)
{
    if (!watch_fetch(s->keeper, link, volume, error))
        return FALSE;
    json_t *kept = keeper_spec(s->keeper, volume);
    const json_t *group = json_object_get(spec, "mountGroup");
    gboolean same = kept && node_spec_same_volume(kept, spec);
    gboolean changed = same && node_spec_update(kept, spec);
    /* Another key is not believed: hearthd tries it. */
    changed = (same && node_spec_take_authority(kept, spec)) || changed;
    gboolean good = same && (!changed || staging_renew(s, link, volume, kept, deadline, error)) &&
                    staging_take_group(s, volume, path, dev, group ? json_integer_value(group) : -1,
                                       deadline, error);
    node_spec_free(kept);
    if (!same)
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_ALREADY_EXISTS,
                    "volume %s is staged at %s already, with other parameters; unstage it first",
                    volume, path);
    return good;
}

/* What an attempt to mount a volume has done so far. */
typedef struct Attempt {
    const char *volume, *path, *layer;
    gboolean made_dir, opened;
    int fuse_fd, mount_fd;
} Attempt;

/*
 * Opens the volume at hearthd. What it may still hold of an earlier time is closed first, unless a
 * mount of it is in use: then *live is that mount.
 */
static gboolean open_volume(Staging *s, HearthdLink *link, Attempt *a, const json_t *spec,
                            const GPtrArray *table, const MountEntry **live, Deadline deadline,
                            GError **error)
{
    gboolean attached = FALSE;
    g_autoptr(GError) cause = NULL;
    *live = NULL;
    a->opened = hearthd_open(link, spec, left_ms(deadline, G_MAXINT64), &attached, &cause);
    if (a->opened && !attached)
        return TRUE;
    if (!a->opened && !g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_ALREADY_EXISTS)) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    const MountEntry *found = find_live(s, table, a->volume);
    if (found) {
        gboolean same = a->opened;
        a->opened = FALSE; /* not by us: taking back leaves it alone */
        if (same)
            *live = found;
        else
            g_propagate_prefixed_error(error, g_steal_pointer(&cause),
                                       "mounted at %s: ", found->target);
        return same;
    }
    if (!hearthd_detach(link, a->volume, left_ms(deadline, STAGING_ASK_MS), error))
        return FALSE;
    a->opened = hearthd_open(link, spec, left_ms(deadline, G_MAXINT64), &attached, error);
    return a->opened;
}

/* A layer is served only when its manifest is ready; it is, but this volume has not asked yet. */
static gboolean wait_for_manifest(HearthdLink *link, const char *volume, Deadline deadline,
                                  GError **error)
{
    g_auto(HearthdManifest) manifest = {0};
    if (!hearthd_manifest(link, volume, left_ms(deadline, G_MAXINT64), &manifest, error))
        return FALSE;
    if (!manifest.ready)
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_ABORTED,
                    "the manifest of %s is being built anew; ask again", volume);
    return manifest.ready;
}

static gboolean try_mount(Staging *s, HearthdLink *link, Attempt *a, const json_t *spec,
                          const MountOptions *options, Deadline deadline, GError **error)
{
    NodeMounter *m = s->mounter;
    g_autoptr(GPtrArray) table = staging_list(s, error);
    if (!table || !m->ops->make_dir(m, a->path, &a->made_dir, error))
        return FALSE;
    const MountEntry *live;
    if (!open_volume(s, link, a, spec, table, &live, deadline, error))
        return FALSE;
    if (live) {
        /* Served already, but not here: its staging mount was taken away by someone else. */
        if (!staging_check_context(live, a->volume, options->context, HEARTH_ERROR_ALREADY_EXISTS,
                                   error))
            return FALSE;
        a->mount_fd = m->ops->clone(m, live->target, live->dev, options->attrs, error);
        return a->mount_fd >= 0 && watch_fetch(s->keeper, link, a->volume, error) &&
               m->ops->place(m, a->mount_fd, a->path, error);
    }
    a->fuse_fd = m->ops->open_fuse(m, error);
    if (a->fuse_fd < 0)
        return FALSE;
    a->mount_fd = m->ops->mount_fuse(m, a->fuse_fd, a->volume, options, error);
    if (a->mount_fd < 0 || (a->layer && !wait_for_manifest(link, a->volume, deadline, error)) ||
        !hearthd_attach(link, a->volume, a->layer, a->fuse_fd, left_ms(deadline, G_MAXINT64),
                        error) ||
        !m->ops->probe(m, a->mount_fd, a->path, left_ms(deadline, G_MAXINT64), error) ||
        !m->ops->place(m, a->mount_fd, a->path, error))
        return FALSE;
    keeper_put(s->keeper, a->volume, spec, hearth_steal_fd(&a->fuse_fd));
    return TRUE;
}

/* Mounts the volume at `path`, where nothing is mounted; all or nothing. */
static gboolean mount_volume_at(Staging *s, HearthdLink *link, const char *volume, const char *path,
                                const json_t *spec, const char *layer, const MountOptions *options,
                                Deadline deadline, GError **error)
{
    Attempt a = {.volume = volume, .path = path, .layer = layer, .fuse_fd = -1, .mount_fd = -1};
    gboolean mounted = try_mount(s, link, &a, spec, options, deadline, error);
    if (a.mount_fd >= 0)
        close(a.mount_fd);
    if (a.fuse_fd >= 0)
        close(a.fuse_fd);
    if (mounted)
        return TRUE;
    /* The link may be of no more use after the failure, so the volume is detached over another. */
    if (a.opened) {
        g_autoptr(HearthdLink) second = hearthd_connect(s->socket_path, NULL, NULL);
        g_autoptr(GError) cause = NULL;
        if (second && !hearthd_detach(second, volume, STAGING_CLEANUP_MS, &cause))
            g_warning("volume %s: taking a failed mount back: %s", volume, cause->message);
    }
    if (a.made_dir) {
        g_autoptr(GError) cause = NULL;
        if (!s->mounter->ops->remove_dir(s->mounter, path, &cause))
            g_warning("volume %s: taking a failed mount back: %s", volume, cause->message);
    }
    return FALSE;
}

gboolean staging_mount_at(Staging *s, const char *volume, const char *path, const json_t *spec,
                          const char *layer, const MountOptions *options, Deadline deadline,
                          GError **error)
{
    g_autoptr(GPtrArray) table = staging_list(s, error);
    if (!table)
        return FALSE;
    const MountEntry *entry = mount_find(table, path);
    if (entry && !staging_check_owner(s, entry, volume, error))
        return FALSE;
    g_autoptr(HearthdLink) link = hearthd_connect(s->socket_path, NULL, error);
    if (!link)
        return FALSE;
    if (entry) {
        gboolean attached;
        if (!hearthd_is_attached(link, volume, left_ms(deadline, STAGING_ASK_MS), &attached, error))
            return FALSE;
        if (attached && !staging_is_dead(s, path))
            return staging_check_context(entry, volume, options->context,
                                         HEARTH_ERROR_ALREADY_EXISTS, error) &&
                   check_same(s, link, volume, path, entry->dev, spec, deadline, error);
        if (!staging_clear(s, volume, path, TRUE, deadline, error))
            return FALSE;
        keeper_drop(s->keeper, volume);
    }
    return mount_volume_at(s, link, volume, path, spec, layer, options, deadline, error);
}

gboolean staging_stage(Staging *s, const char *volume, const char *path, const json_t *spec,
                       const MountOptions *options, gint64 timeout_ms, GError **error)
{
    g_autoptr(BusyHold) hold = busy_take(s->busy, volume, path, error);
    return hold &&
           staging_mount_at(s, volume, path, spec, NULL, options, deadline_in(timeout_ms), error);
}

/* The place of the stack at `path`, if there is one. */
static gboolean look_for_stack(Staging *s, const char *path, DatasetPlace *place, GError **error)
{
    g_autoptr(GPtrArray) table = staging_list(s, error);
    if (table)
        dataset_is_at(table, path, place);
    return table != NULL;
}

void staging_release_if_lost(Staging *s, const char *volume)
{
    gboolean absent, attached = TRUE;
    g_autoptr(HearthdLink) link = hearthd_connect(s->socket_path, &absent, NULL);
    if (link ? hearthd_is_attached(link, volume, STAGING_ASK_MS, &attached, NULL) && !attached
             : absent)
        keeper_release_volume(s->keeper, volume);
}

gboolean staging_unstage(Staging *s, const char *volume, const char *path, gint64 timeout_ms,
                         GError **error)
{
    Deadline deadline = deadline_in(timeout_ms);
    g_auto(DatasetPlace) place = {0};
    g_autoptr(BusyHold) hold = busy_take(s->busy, volume, path, error);
    if (!hold || (path && !look_for_stack(s, path, &place, error)))
        return FALSE;
    staging_release_if_lost(s, volume);
    fsgroup_walk_free(staging_take_walk(s, volume));
    return (!path || staging_clear(s, volume, path, FALSE, deadline, error)) &&
           dataset_remove_unused(s, volume, &place, TRUE, deadline, error) &&
           image_remove_if_unused(s, volume, TRUE, deadline, error) &&
           staging_detach_if_last(s, volume, deadline, error);
}

/*
 * The mount of the volume at `staged`, made anew from what the keeper has when hearthd lost it,
 * with the context it had. Gives its device.
 */
static gboolean ensure_served(Staging *s, const char *volume, const char *staged,
                              const char *context, dev_t *dev, Deadline deadline, GError **error)
{
    g_autoptr(GPtrArray) table = staging_list(s, error);
    if (!table)
        return FALSE;
    const MountEntry *entry = mount_find(table, staged);
    if (!entry) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION,
                    "volume %s is not staged at %s; stage it first", volume, staged);
        return FALSE;
    }
    if (!staging_check_owner(s, entry, volume, error) ||
        !staging_check_context(entry, volume, context, HEARTH_ERROR_FAILED_PRECONDITION, error))
        return FALSE;
    *dev = entry->dev;
    g_autoptr(HearthdLink) link = hearthd_connect(s->socket_path, NULL, error);
    gboolean attached;
    if (!link ||
        !hearthd_is_attached(link, volume, left_ms(deadline, STAGING_ASK_MS), &attached, error))
        return FALSE;
    if (attached && !staging_is_dead(s, staged))
        return TRUE;

    json_t *spec = keeper_spec(s->keeper, volume);
    if (!spec) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION,
                    "volume %s is staged at %s but hearthd no longer serves it; unstage it and "
                    "stage it again",
                    volume, staged);
        return FALSE;
    }
    const gboolean read_only = json_is_true(json_object_get(spec, "readOnly"));
    const MountOptions options = {.attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                                           (read_only ? MOUNT_ATTR_RDONLY : 0),
                                  .context = entry->context};
    gboolean served =
        staging_clear(s, volume, staged, TRUE, deadline, error) &&
        mount_volume_at(s, link, volume, staged, spec, NULL, &options, deadline, error);
    node_spec_free(spec);
    if (!served)
        return FALSE;
    g_message("volume %s: mounted anew at %s after hearthd lost it", volume, staged);
    g_autoptr(GPtrArray) now = staging_list(s, error);
    entry = now ? mount_find(now, staged) : NULL;
    if (now && !entry)
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_ABORTED, "%s: unmounted meanwhile; try again",
                    staged);
    if (entry)
        *dev = entry->dev;
    return entry != NULL;
}

/*
 * FALSE with the error when the volume is mounted anywhere but at its staging path and `target`.
 * kubelet publishes again after its restart, and has made binds of its own of the first time.
 */
static gboolean check_exclusive(Staging *s, const GPtrArray *table, const char *volume, dev_t dev,
                                const char *staged, const char *target, GError **error)
{
    for (guint i = 0; i < table->len; i++) {
        const MountEntry *entry = table->pdata[i];
        /* By suffix: where the host's root is mounted too, each mount is listed once more. */
        if (entry->dev != dev || !belongs(s, entry, volume) ||
            g_str_has_suffix(entry->target, staged) || g_str_has_suffix(entry->target, target) ||
            kubelet_made_of(entry->target, target))
            continue;
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION,
                    "volume %s is for a single writer and published at %s already", volume,
                    entry->target);
        return FALSE;
    }
    return TRUE;
}

gboolean staging_bind(Staging *s, const char *volume, const char *staged, const char *target,
                      dev_t dev, uint64_t attrs, gboolean exclusive, Deadline deadline,
                      GError **error)
{
    NodeMounter *m = s->mounter;
    g_autoptr(GPtrArray) table = staging_list(s, error);
    if (!table || (exclusive && !check_exclusive(s, table, volume, dev, staged, target, error)))
        return FALSE;
    const MountEntry *entry = mount_find(table, target);
    if (entry) {
        if (!staging_check_owner(s, entry, volume, error))
            return FALSE;
        if (entry->dev == dev) {
            const MountEntry *origin = mount_find(table, staged);
            gboolean wanted = (attrs & MOUNT_ATTR_RDONLY) || (origin && origin->read_only);
            if (entry->read_only == wanted)
                return TRUE;
            g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_ALREADY_EXISTS,
                        "volume %s is published at %s already, %s; unpublish it first", volume,
                        target, entry->read_only ? "for reading only" : "for writing");
            return FALSE;
        }
        /* Another device: a bind of an earlier mount, which is stale. */
        if (!staging_clear(s, volume, target, TRUE, deadline, error))
            return FALSE;
    }
    gboolean made;
    if (!m->ops->make_dir(m, target, &made, error))
        return FALSE;
    hearth_autofd int bind = m->ops->clone(m, staged, dev, attrs, error);
    if (bind >= 0 && m->ops->place(m, bind, target, error))
        return TRUE;
    g_autoptr(GError) cause = NULL;
    if (made && !m->ops->remove_dir(m, target, &cause))
        g_warning("volume %s: taking a failed publication back: %s", volume, cause->message);
    return FALSE;
}

/* Makes sure that the volume at `staged` is served, and its files are for the group (-1: none). */
static gboolean serve_for(Staging *s, const char *volume, const char *staged, const char *context,
                          gint64 group, dev_t *dev, Deadline deadline, GError **error)
{
    g_auto(DatasetPlace) place = {0};
    g_autoptr(GPtrArray) table = staging_list(s, error);
    if (!table)
        return FALSE;
    if (s->datasets && dataset_is_at(table, staged, &place))
        return staging_check_owner(s, mount_find(table, staged), volume, error) &&
               dataset_ensure_served(s, volume, staged, &place, context, group, dev, deadline,
                                     error);
    return ensure_served(s, volume, staged, context, dev, deadline, error) &&
           staging_take_group(s, volume, staged, *dev, group, deadline, error);
}

gboolean staging_publish(Staging *s, const char *volume, const char *staged, const char *target,
                         const MountOptions *options, gboolean exclusive, gint64 group,
                         gint64 timeout_ms, GError **error)
{
    Deadline deadline = deadline_in(timeout_ms);
    g_autoptr(BusyHold) hold = busy_take(s->busy, volume, target, error);
    dev_t dev;
    return hold && serve_for(s, volume, staged, options->context, group, &dev, deadline, error) &&
           staging_bind(s, volume, staged, target, dev, options->attrs, exclusive, deadline, error);
}

gboolean staging_unpublish(Staging *s, const char *volume, const char *target, gint64 timeout_ms,
                           GError **error)
{
    Deadline deadline = deadline_in(timeout_ms);
    g_auto(DatasetPlace) place = {0};
    g_autoptr(BusyHold) hold = busy_take(s->busy, volume, target, error);
    if (!hold || (target && !look_for_stack(s, target, &place, error)))
        return FALSE;
    staging_release_if_lost(s, volume);
    if (target && (!image_clear_lost(s, volume, target, left_ms(deadline, G_MAXINT64), error) ||
                   !staging_clear(s, volume, target, FALSE, deadline, error) ||
                   (s->block && !s->block->ops->remove_file(s->block, target, error)) ||
                   !s->mounter->ops->remove_dir(s->mounter, target, error)))
        return FALSE;
    return dataset_remove_unused(s, volume, &place, FALSE, deadline, error) &&
           image_remove_if_unused(s, volume, FALSE, deadline, error) &&
           staging_detach_if_last(s, volume, deadline, error);
}

gboolean staging_statvfs(Staging *s, const char *volume, const char *path, gint64 timeout_ms,
                         struct statvfs *st, GError **error)
{
    g_autoptr(GPtrArray) table = staging_list(s, error);
    if (!table)
        return FALSE;
    const MountEntry *entry = mount_find(table, path);
    if (!entry || !belongs(s, entry, volume)) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND, "volume %s is not mounted at %s",
                    volume, path);
        return FALSE;
    }
    g_auto(DatasetPlace) place = {0};
    if (dataset_place_of(entry, &place)) /* overlayfs tells of the manifest's file */
        return dataset_statvfs(s, &place, st, error);
    return s->mounter->ops->statvfs(s->mounter, path, entry->dev, timeout_ms, st, error);
}
