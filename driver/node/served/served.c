/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads, clears and binds mounts that hearthd serves. What is mounted is looked up again before
 * each step: the kernel has the only record, and other processes change it too.
 */
#include "driver/node/served/served.h"
#include <string.h>
#include <sys/mount.h>
#include "common/autofd.h"
#include "driver/node/mount/kubelet_paths.h"
#include "driver/node/mount/selinux.h"

/* How long a mount may take to show whether it is dead. */
#define DEAD_PROBE_MS 2000
/* The shortest time for an unmount: one that is begun and not waited for takes effect later, when
 * the caller does not expect it. */
#define UNMOUNT_LEAST_MS 2000
/* How often it is asked whether the new hearthd serves a mount. */
#define HAND_OVER_LOOK_MS 50
/* Mounts stacked on one path, made by hand or by older kernels' races. */
#define MAX_STACKED 16

/* ---- what is mounted ---- */

gboolean served_owns(Staging *s, const MountEntry *entry, const char *volume)
{
    if (g_strcmp0(mount_volume(entry), volume) == 0)
        return TRUE;
    for (const NodeKind *const *kind = s->kinds; *kind; kind++)
        if ((*kind)->owns && (*kind)->owns(s, entry, volume))
            return TRUE;
    return FALSE;
}

const NodeKind *served_kind_of(Staging *s, const MountEntry *entry)
{
    const NodeKind *const *kind = s->kinds;
    for (; kind[1]; kind++)
        if (entry && (*kind)->shows && (*kind)->shows(entry))
            break;
    return *kind;
}

gboolean served_check_owner(Staging *s, const MountEntry *entry, const char *volume, GError **error)
{
    const char *owner = mount_volume(entry);
    if (served_owns(s, entry, volume))
        return TRUE;
    if (owner)
        return hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                           "%s: volume %s is mounted there, not %s; unmount it first",
                           entry->target, owner, volume);
    return hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                       "%s: \"%s\" of type %s is mounted there; unmount it first", entry->target,
                       entry->source, entry->type);
}

gboolean served_is_dead(Staging *s, const char *path)
{
    g_autoptr(GError) cause = NULL;
    return !s->mounter->ops->probe(s->mounter, -1, path, DEAD_PROBE_MS, &cause) &&
           g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION);
}

/* A hearthd that has just come is given the mounts of the last one. */
static gboolean await_served(Staging *s, const char *volume, gboolean *attached, Deadline deadline,
                             GError **error)
{
    for (;;) {
        HearthdServing serving;
        g_autoptr(HearthdLink) link = hearthd_connect(s->socket_path, NULL, error);
        if (!link ||
            !hearthd_serving(link, volume, left_ms(deadline, SERVED_ASK_MS), &serving, error))
            return FALSE;
        *attached = serving.attached;
        if (serving.attached || !keeper_may_wait(s->keeper, volume))
            return TRUE;
        if (left_ms(deadline, G_MAXINT64) == 0)
            return hearth_fail(error, HEARTH_ERROR_ABORTED,
                               "volume %s: the new hearthd begins to serve its mount; ask again",
                               volume);
        watch_hand_over(s->watch, volume);
        g_usleep(HAND_OVER_LOOK_MS * 1000);
    }
}

gboolean served_is_alive(Staging *s, const char *volume, const char *path, gboolean *alive,
                         Deadline deadline, GError **error)
{
    gboolean attached;
    if (!await_served(s, volume, &attached, deadline, error))
        return FALSE;
    *alive = attached && !served_is_dead(s, path);
    return TRUE;
}

gboolean served_read_state(Staging *s, const char *volume, const char *path, MountState *state,
                           Deadline deadline, GError **error)
{
    state->alive = FALSE;
    if (!served_find(s, path, &state->entry, error))
        return FALSE;
    if (!state->entry)
        return TRUE;
    return served_check_owner(s, state->entry, volume, error) &&
           served_is_alive(s, volume, path, &state->alive, deadline, error);
}

gboolean served_check_context(const MountEntry *entry, const char *volume, const char *context,
                              int code, GError **error)
{
    if (!context || (entry->context && selinux_same(entry->context, context)))
        return TRUE;
    g_autofree char *mounted = entry->context
                                   ? g_strconcat("the SELinux context ", entry->context, NULL)
                                   : g_strdup("no SELinux context");
    return hearth_fail(
        error, code,
        "volume %s is mounted at %s with %s, and %s is asked for: a volume has one SELinux "
        "context on a node until its last pod there has gone; give its pods the same "
        "seLinuxOptions, keep them on different nodes, or set seLinuxChangePolicy: Recursive in "
        "them",
        volume, entry->target, mounted, context);
}

gboolean served_device_at(Staging *s, const char *path, dev_t *dev, GError **error)
{
    g_autoptr(MountEntry) entry = NULL;
    if (!served_find(s, path, &entry, error))
        return FALSE;
    if (!entry)
        return hearth_fail(error, HEARTH_ERROR_ABORTED, "%s: unmounted meanwhile; try again", path);
    *dev = entry->dev;
    return TRUE;
}

char *served_fault(Staging *s, const char *volume, Deadline deadline, gboolean *rests)
{
    gboolean absent;
    HearthdServing serving = {0};
    g_autoptr(GError) cause = NULL;
    g_autoptr(HearthdLink) link = hearthd_connect(s->socket_path, &absent, &cause);
    const gboolean waits = keeper_may_wait(s->keeper, volume);
    if (!link && absent && waits)
        return g_strdup("hearthd is not running on this node: reads wait for it; see its pod");
    if (!link && absent)
        return g_strdup("hearthd is not running on this node, so the volume is not served; see its "
                        "pod. Files fail until it is back and the volume is published again");
    if (!link || !hearthd_serving(link, volume, left_ms(deadline, SERVED_ASK_MS), &serving, &cause))
        return g_strdup(cause->message);
    if (rests)
        *rests = serving.rests;
    if (!serving.attached && waits)
        return g_strdup("hearthd was restarted and begins to serve this mount; reads wait");
    return serving.attached
               ? NULL
               : g_strdup("hearthd was restarted and no longer serves this mount; restart the "
                          "pods that use it");
}

/* ---- unmounting ---- */

/* Whether the mount is still there; TRUE when that cannot be told. */
static gboolean is_mounted(Staging *s, const char *path, uint64_t id)
{
    g_autoptr(MountEntry) entry = NULL;
    return !served_find(s, path, &entry, NULL) || (entry && entry->id == id);
}

/* Unmounts. A mount that is in use is only unmounted when it is dead, and so of no use. */
static gboolean unmount(Staging *s, const MountEntry *entry, gboolean stale, Deadline deadline,
                        GError **error)
{
    const NodeMounterOps *ops = s->mounter->ops;
    gint64 limit = MAX(left_ms(deadline, G_MAXINT64), UNMOUNT_LEAST_MS);
    g_autoptr(GError) cause = NULL;
    if (ops->unmount(s->mounter, entry->target, stale, limit, &cause))
        return TRUE;
    if (!stale && g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION) &&
        served_is_dead(s, entry->target))
        return ops->unmount(s->mounter, entry->target, TRUE, limit, error);
    /* Writing back may hang when the mount has gone already; detaching from hearthd ends that. */
    if (!is_mounted(s, entry->target, entry->id))
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&cause));
    return FALSE;
}

gboolean served_clear(Staging *s, const char *volume, const char *path, gboolean stale,
                      Deadline deadline, GError **error)
{
    for (unsigned i = 0; i < MAX_STACKED; i++) {
        g_autoptr(MountEntry) entry = NULL;
        if (!served_find(s, path, &entry, error))
            return FALSE;
        if (!entry)
            return TRUE;
        if (!served_check_owner(s, entry, volume, error) ||
            !unmount(s, entry, stale, deadline, error))
            return FALSE;
    }
    return hearth_fail(error, HEARTH_ERROR_INTERNAL,
                       "%s: still mounted after %d unmounts; unmount it by hand", path,
                       MAX_STACKED);
}

void served_release_if_lost(Staging *s, const char *volume)
{
    gboolean absent;
    HearthdServing serving;
    g_autoptr(HearthdLink) link = hearthd_connect(s->socket_path, &absent, NULL);
    const gboolean lost =
        link ? hearthd_serving(link, volume, SERVED_ASK_MS, &serving, NULL) && !serving.attached
             : absent;
    if (lost)
        keeper_release_volume(s->keeper, volume);
}

gboolean served_detach_if_last(Staging *s, const char *volume, Deadline deadline, GError **error)
{
    g_autoptr(GPtrArray) table = served_list(s, error);
    if (!table)
        return FALSE;
    for (guint i = 0; i < table->len; i++)
        if (g_strcmp0(mount_served_volume(table->pdata[i]), volume) == 0)
            return TRUE;
    keeper_drop(s->keeper, volume);
    return hearthd_forget(s->socket_path, volume, left_ms(deadline, G_MAXINT64), error);
}

/* ---- binding ---- */

/*
 * FALSE with the error when the volume is mounted anywhere but at its staging path and the target.
 * kubelet publishes again after its restart, and has made binds of its own of the first time.
 */
static gboolean check_exclusive(Staging *s, const NodeCall *call, dev_t dev, GError **error)
{
    g_autoptr(GPtrArray) table = served_list(s, error);
    for (guint i = 0; table && i < table->len; i++) {
        const MountEntry *entry = table->pdata[i];
        /* By suffix: where the host's root is mounted too, each mount is listed once more. */
        const gboolean ours = g_str_has_suffix(entry->target, call->staged) ||
                              g_str_has_suffix(entry->target, call->target) ||
                              kubelet_made_of(entry->target, call->target);
        if (entry->dev == dev && !ours && served_owns(s, entry, call->volume))
            return hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                               "volume %s is for a single writer and published at %s already",
                               call->volume, entry->target);
    }
    return table != NULL;
}

/* Checks that a publication that is there already is read-only, or writable, as requested. */
static gboolean check_same_bind(Staging *s, const NodeCall *call, const MountEntry *entry,
                                uint64_t attrs, GError **error)
{
    g_autoptr(MountEntry) origin = NULL;
    if (!served_find(s, call->staged, &origin, error))
        return FALSE;
    const gboolean read_only = (attrs & MOUNT_ATTR_RDONLY) || (origin && origin->read_only);
    if (entry->read_only == read_only)
        return TRUE;
    return hearth_fail(error, HEARTH_ERROR_ALREADY_EXISTS,
                       "volume %s is published at %s already, %s; unpublish it first", call->volume,
                       call->target, entry->read_only ? "for reading only" : "for writing");
}

/* Binds the mount on a target where nothing is mounted. */
static gboolean make_bind(Staging *s, const NodeCall *call, dev_t dev, uint64_t attrs,
                          GError **error)
{
    NodeMounter *m = s->mounter;
    gboolean made;
    if (!m->ops->make_dir(m, call->target, &made, error))
        return FALSE;
    hearth_autofd int bind = m->ops->clone(m, call->staged, dev, attrs, error);
    if (bind >= 0 && m->ops->place(m, bind, call->target, error))
        return TRUE;
    g_autoptr(GError) cause = NULL;
    if (made && !m->ops->remove_dir(m, call->target, &cause))
        g_warning("volume %s: taking a failed publication back: %s", call->volume, cause->message);
    return FALSE;
}

gboolean served_bind(Staging *s, const NodeCall *call, dev_t dev, GError **error)
{
    const uint64_t attrs = call->use.attrs | (call->read_only ? MOUNT_ATTR_RDONLY : 0);
    g_autoptr(MountEntry) entry = NULL;
    if (call->use.exclusive && !check_exclusive(s, call, dev, error))
        return FALSE;
    if (!served_find(s, call->target, &entry, error))
        return FALSE;
    if (entry) {
        if (!served_check_owner(s, entry, call->volume, error))
            return FALSE;
        if (entry->dev == dev)
            return check_same_bind(s, call, entry, attrs, error);
        /* Another device: a bind of an earlier mount, which is stale. */
        if (!served_clear(s, call->volume, call->target, TRUE, call->deadline, error))
            return FALSE;
    }
    return make_bind(s, call, dev, attrs, error);
}
