/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mounts a volume that hearthd serves: open it at hearthd, mount a FUSE descriptor detached, attach
 * the descriptor at hearthd, check that the root answers, and only then place the mount. So a mount
 * appears complete, and a failure takes back every step before it.
 */
#include <sys/mount.h>
#include "common/autofd.h"
#include "driver/node/hearthd/kept_copy.h"
#include "driver/node/hearthd/manifest.h"
#include "driver/node/hearthd/spec.h"
#include "driver/node/served/served.h"

/* For hearth-keeper to have the mount before the call is answered. */
#define COPY_MS 100

/* What an attempt to mount a volume has done so far. */
typedef struct MountAttempt {
    const ServedMount *mount;
    Deadline deadline;
    HearthdLink *link; /* on which the volume is open */
    gboolean made_dir, opened;
    int fuse_fd, mount_fd;
} MountAttempt;

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

/* Binds a mount that is served already at another path: someone else has taken the mount at ours
 * away. */
static gboolean clone_live(Staging *s, MountAttempt *a, const MountEntry *live, GError **error)
{
    NodeMounter *m = s->mounter;
    const ServedMount *mount = a->mount;
    if (!served_check_context(live, mount->volume, mount->options.context,
                              HEARTH_ERROR_ALREADY_EXISTS, error))
        return FALSE;
    a->mount_fd = m->ops->clone(m, live->target, live->dev, mount->options.attrs, error);
    if (a->mount_fd < 0)
        return FALSE;
    node_spec_auto_t *kept = watch_spec(s->keeper, a->link, mount->volume, error);
    return kept && m->ops->place(m, a->mount_fd, mount->path, error);
}

static gboolean mount_new(Staging *s, MountAttempt *a, GError **error)
{
    NodeMounter *m = s->mounter;
    const ServedMount *mount = a->mount;
    a->mount_fd = m->ops->mount_fuse(m, mount->volume, &mount->options, &a->fuse_fd, error);
    if (a->mount_fd < 0)
        return FALSE;
    if (mount->layer &&
        !hearthd_await_manifest(a->link, mount->volume, left_ms(a->deadline, G_MAXINT64), error))
        return FALSE;
    const HearthdMount attach = {
        .volume = mount->volume, .layer = mount->layer, .fuse_fd = a->fuse_fd};
    g_autofree char *note = NULL;
    if (!hearthd_attach(a->link, &attach, &note, left_ms(a->deadline, G_MAXINT64), error))
        return FALSE;
    if (!m->ops->probe(m, a->mount_fd, mount->path, left_ms(a->deadline, G_MAXINT64), error))
        return FALSE;
    if (!m->ops->place(m, a->mount_fd, mount->path, error))
        return FALSE;
    const KeptResume resume = {note,
                               note ? -1 : hearthd_state(a->link, mount->volume, SERVED_ASK_MS)};
    keeper_put(s->keeper, mount->volume, mount->spec, &resume, hearth_steal_fd(&a->fuse_fd));
    kept_copy_settle(s->kept_copy, COPY_MS);
    return TRUE;
}

/* hearthd holds the volume from an earlier time: with this spec, or with another, as `conflict`
 * says. A mount of it that is in use stays, and is shown here too. Otherwise the volume is closed
 * and opened again.
 */
static gboolean mount_held(Staging *s, MountAttempt *a, GError *conflict, GError **error)
{
    const ServedMount *mount = a->mount;
    gboolean attached;
    g_autoptr(GPtrArray) table = served_list(s, error);
    if (!table)
        return FALSE;
    const MountEntry *live = find_live(s, table, mount->volume);
    if (live && !conflict)
        return clone_live(s, a, live, error);
    if (live)
        return hearth_fail(error, HEARTH_ERROR_ALREADY_EXISTS, "mounted at %s: %s", live->target,
                           conflict->message);
    g_clear_pointer(&a->link, hearthd_close);
    if (!hearthd_forget(s->socket_path, mount->volume, left_ms(a->deadline, SERVED_ASK_MS), error))
        return FALSE;
    a->link = hearthd_connect_and_open(s->socket_path, mount->spec,
                                       left_ms(a->deadline, G_MAXINT64), &attached, error);
    a->opened = a->link != NULL;
    return a->opened && mount_new(s, a, error);
}

static gboolean try_mount(Staging *s, MountAttempt *a, GError **error)
{
    const ServedMount *mount = a->mount;
    gboolean attached = FALSE;
    g_autoptr(GError) cause = NULL;
    if (!s->mounter->ops->make_dir(s->mounter, mount->path, &a->made_dir, error))
        return FALSE;
    a->link = hearthd_connect_and_open(s->socket_path, mount->spec,
                                       left_ms(a->deadline, G_MAXINT64), &attached, &cause);
    a->opened = a->link && !attached;
    if (a->opened)
        return mount_new(s, a, error);
    if (a->link || g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_ALREADY_EXISTS))
        return mount_held(s, a, cause, error);
    g_propagate_error(error, g_steal_pointer(&cause));
    return FALSE;
}

static void take_back(Staging *s, const MountAttempt *a)
{
    const ServedMount *mount = a->mount;
    g_autoptr(GError) forget = NULL, remove = NULL;
    /* Not over a->link: after the failure it may be of no more use. */
    if (a->opened && !hearthd_forget(s->socket_path, mount->volume, SERVED_CLEANUP_MS, &forget))
        g_warning("volume %s: taking a failed mount back: %s", mount->volume, forget->message);
    if (a->made_dir && !s->mounter->ops->remove_dir(s->mounter, mount->path, &remove))
        g_warning("volume %s: taking a failed mount back: %s", mount->volume, remove->message);
}

/* Mounts the volume at the path, where nothing is mounted; all or nothing. */
static gboolean mount_or_take_back(Staging *s, const ServedMount *mount, Deadline deadline,
                                   GError **error)
{
    MountAttempt a = {.mount = mount, .deadline = deadline, .fuse_fd = -1, .mount_fd = -1};
    const gboolean mounted = try_mount(s, &a, error);
    if (a.mount_fd >= 0)
        close(a.mount_fd);
    if (a.fuse_fd >= 0)
        close(a.fuse_fd);
    if (!mounted)
        take_back(s, &a);
    hearthd_close(a.link);
    return mounted;
}

gboolean served_mount(Staging *s, const ServedMount *mount, Deadline deadline, GError **error)
{
    g_auto(MountState) state = {0};
    if (!served_read_state(s, mount->volume, mount->path, &state, deadline, error))
        return FALSE;
    if (state.alive) {
        const ServedUpdate update = {.volume = mount->volume,
                                     .staged = mount->path,
                                     .dev = state.entry->dev,
                                     .spec = mount->spec};
        return served_check_context(state.entry, mount->volume, mount->options.context,
                                    HEARTH_ERROR_ALREADY_EXISTS, error) &&
               served_update(s, &update, deadline, error);
    }
    if (state.entry) {
        if (!served_clear(s, mount->volume, mount->path, TRUE, deadline, error))
            return FALSE;
        keeper_drop(s->keeper, mount->volume);
    }
    return mount_or_take_back(s, mount, deadline, error);
}
