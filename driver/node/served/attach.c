/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mounts a volume that hearthd serves: open it at hearthd, mount a FUSE descriptor detached, attach
 * the descriptor at hearthd, check that the root answers, and only then place the mount. So a mount
 * appears complete, and a failure takes back every step before it.
 */
#include <sys/mount.h>
#include "common/autofd.h"
#include "driver/node/hearthd/manifest.h"
#include "driver/node/hearthd/spec.h"
#include "driver/node/served/served.h"
#include "proto/wire_keys.h"

/* What an attempt to mount a volume has done so far. */
typedef struct Attempt {
    const ServedMount *mount;
    gboolean made_dir, opened;
    int fuse_fd, mount_fd;
} Attempt;

/* A mount of the volume that answers, wherever it is; NULL: none. Borrowed from the table. */
static const MountEntry *find_live(Staging *s, const GPtrArray *table, const char *volume)
{
    for (guint i = 0; i < table->len; i++) {
        const MountEntry *entry = table->pdata[i];
        if (g_strcmp0(mount_served_volume(entry), volume) == 0 &&
            mount_find(table, entry->target) == entry && !served_is_dead(s, entry->target))
            return entry;
    }
    return NULL;
}

/*
 * Opens the volume at hearthd. What hearthd may still hold of an earlier time is closed first,
 * unless a mount of it is in use: then *live is that mount.
 */
static gboolean open_volume(Staging *s, HearthdLink *link, Attempt *a, const GPtrArray *table,
                            const MountEntry **live, Deadline deadline, GError **error)
{
    const char *volume = a->mount->volume;
    const json_t *spec = a->mount->spec;
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
    const MountEntry *found = find_live(s, table, volume);
    if (found) {
        const gboolean same = a->opened;
        a->opened = FALSE; /* not by us: taking back leaves it alone */
        if (same)
            *live = found;
        else
            g_propagate_prefixed_error(error, g_steal_pointer(&cause),
                                       "mounted at %s: ", found->target);
        return same;
    }
    if (!hearthd_detach(link, volume, left_ms(deadline, SERVED_ASK_MS), error))
        return FALSE;
    a->opened = hearthd_open(link, spec, left_ms(deadline, G_MAXINT64), &attached, error);
    return a->opened;
}

/* Binds a mount that is served already at another path: someone else has taken the mount at ours
 * away. */
static gboolean clone_live(Staging *s, HearthdLink *link, Attempt *a, const MountEntry *live,
                           GError **error)
{
    NodeMounter *m = s->mounter;
    const ServedMount *mount = a->mount;
    if (!served_check_context(live, mount->volume, mount->options.context,
                              HEARTH_ERROR_ALREADY_EXISTS, error))
        return FALSE;
    a->mount_fd = m->ops->clone(m, live->target, live->dev, mount->options.attrs, error);
    return a->mount_fd >= 0 && watch_fetch(s->keeper, link, mount->volume, error) &&
           m->ops->place(m, a->mount_fd, mount->path, error);
}

static gboolean mount_new(Staging *s, HearthdLink *link, Attempt *a, Deadline deadline,
                          GError **error)
{
    NodeMounter *m = s->mounter;
    const ServedMount *mount = a->mount;
    a->mount_fd = m->ops->mount_fuse(m, mount->volume, &mount->options, &a->fuse_fd, error);
    if (a->mount_fd < 0)
        return FALSE;
    if (mount->layer &&
        !hearthd_await_manifest(link, mount->volume, left_ms(deadline, G_MAXINT64), error))
        return FALSE;
    if (!hearthd_attach(link, mount->volume, mount->layer, a->fuse_fd,
                        left_ms(deadline, G_MAXINT64), error))
        return FALSE;
    if (!m->ops->probe(m, a->mount_fd, mount->path, left_ms(deadline, G_MAXINT64), error) ||
        !m->ops->place(m, a->mount_fd, mount->path, error))
        return FALSE;
    keeper_put(s->keeper, mount->volume, mount->spec, hearth_steal_fd(&a->fuse_fd));
    return TRUE;
}

static gboolean try_mount(Staging *s, HearthdLink *link, Attempt *a, Deadline deadline,
                          GError **error)
{
    const MountEntry *live;
    g_autoptr(GPtrArray) table = served_list(s, error);
    if (!table || !s->mounter->ops->make_dir(s->mounter, a->mount->path, &a->made_dir, error) ||
        !open_volume(s, link, a, table, &live, deadline, error))
        return FALSE;
    return live ? clone_live(s, link, a, live, error) : mount_new(s, link, a, deadline, error);
}

static void take_back(Staging *s, const Attempt *a)
{
    const ServedMount *mount = a->mount;
    g_autoptr(GError) detach = NULL, remove = NULL;
    /* Over another connection: after the failure the first one may be of no more use. */
    g_autoptr(HearthdLink) second = a->opened ? hearthd_connect(s->socket_path, NULL, NULL) : NULL;
    if (second && !hearthd_detach(second, mount->volume, SERVED_CLEANUP_MS, &detach))
        g_warning("volume %s: taking a failed mount back: %s", mount->volume, detach->message);
    if (a->made_dir && !s->mounter->ops->remove_dir(s->mounter, mount->path, &remove))
        g_warning("volume %s: taking a failed mount back: %s", mount->volume, remove->message);
}

/* Mounts the volume at the path, where nothing is mounted; all or nothing. */
static gboolean mount_or_take_back(Staging *s, HearthdLink *link, const ServedMount *mount,
                                   Deadline deadline, GError **error)
{
    Attempt a = {.mount = mount, .fuse_fd = -1, .mount_fd = -1};
    const gboolean mounted = try_mount(s, link, &a, deadline, error);
    if (a.mount_fd >= 0)
        close(a.mount_fd);
    if (a.fuse_fd >= 0)
        close(a.fuse_fd);
    if (!mounted)
        take_back(s, &a);
    return mounted;
}

/* Checks that what is staged and served is what is requested, and takes over what may change. */
static gboolean check_same(Staging *s, HearthdLink *link, const ServedMount *mount, dev_t dev,
                           Deadline deadline, GError **error)
{
    if (!watch_fetch(s->keeper, link, mount->volume, error))
        return FALSE;
    json_t *kept = keeper_spec(s->keeper, mount->volume);
    const json_t *group = json_object_get(mount->spec, WIRE_KEY_MOUNT_GROUP);
    const gint64 number = group ? json_integer_value(group) : -1;
    const gboolean same = kept && node_spec_same_volume(kept, mount->spec);
    gboolean changed = same && node_spec_update(kept, mount->spec);
    /* Another key is not believed: hearthd tries it. */
    changed = (same && node_spec_take_authority(kept, mount->spec)) || changed;
    gboolean good =
        same && (!changed || served_renew(s, link, mount->volume, kept, deadline, error)) &&
        served_show_for_group(s, mount->volume, mount->path, dev, number, deadline, error);
    node_spec_free(kept);
    return same ? good
                : hearth_fail(error, HEARTH_ERROR_ALREADY_EXISTS,
                              "volume %s is staged at %s already, with other parameters; unstage "
                              "it first",
                              mount->volume, mount->path);
}

gboolean served_mount(Staging *s, const ServedMount *mount, Deadline deadline, GError **error)
{
    g_autoptr(GPtrArray) table = served_list(s, error);
    if (!table)
        return FALSE;
    const MountEntry *entry = mount_find(table, mount->path);
    if (entry && !served_check_owner(s, entry, mount->volume, error))
        return FALSE;
    g_autoptr(HearthdLink) link = hearthd_connect(s->socket_path, NULL, error);
    if (!link)
        return FALSE;
    if (entry) {
        gboolean alive;
        if (!served_is_alive(s, link, mount->volume, mount->path, &alive, deadline, error))
            return FALSE;
        if (alive)
            return served_check_context(entry, mount->volume, mount->options.context,
                                        HEARTH_ERROR_ALREADY_EXISTS, error) &&
                   check_same(s, link, mount, entry->dev, deadline, error);
        if (!served_clear(s, mount->volume, mount->path, TRUE, deadline, error))
            return FALSE;
        keeper_drop(s->keeper, mount->volume);
    }
    return mount_or_take_back(s, link, mount, deadline, error);
}
