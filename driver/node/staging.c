/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps that are the same for every kind of volume, and the table of kinds. NodeStageVolume
 * goes from here to the kind's stage(); NodePublishVolume first makes sure that the volume is
 * served, then goes to the kind's publish(). Unstaging and unpublishing know no volume context, so
 * every kind removes its own part.
 */
#include "driver/node/staging.h"
#include "driver/node/dataset/dataset.h"
#include "driver/node/hearthd/kept_copy.h"
#include "driver/node/hearthd/spec.h"
#include "driver/node/image/image.h"
#include "driver/node/served/served.h"

/* A question about sizes, while a call may take longer. */
#define STATVFS_MS 10000

/* The first that takes a volume has it. Parts are removed in this order: a dataset's layers and an
 * image's device before hearthd forgets the volume. */
static const NodeKind *const kinds[] = {&dataset_kind, &image_kind, &live_kind, NULL};

/* NULL: not known. */
static GHashTable *mounted_volumes(NodeMounter *mounter)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) table = mounter->ops->list(mounter, &error);
    if (!table) {
        g_warning("%s", error->message);
        return NULL;
    }
    GHashTable *mounted = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < table->len; i++) {
        const char *volume = mount_served_volume(table->pdata[i]);
        if (volume)
            g_hash_table_add(mounted, g_strdup(volume));
    }
    return mounted;
}

Staging *staging_new(NodeMounter *mounter, const char *hearthd_socket, unsigned wait_sec)
{
    Staging *s = g_new0(Staging, 1);
    s->kinds = kinds;
    s->mounter = mounter;
    s->socket_path = g_strdup(hearthd_socket);
    s->keeper = keeper_new();
    g_autoptr(GHashTable) mounted = mounted_volumes(mounter);
    s->kept_copy = kept_copy_new(hearthd_socket, s->keeper, mounted);
    s->busy = busy_new();
    s->usages = usages_new();
    g_mutex_init(&s->walks_lock);
    s->walks =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)fsgroup_walk_free);
    const WatchConfig watch = {.socket_path = hearthd_socket,
                               .mounter = mounter,
                               .keeper = s->keeper,
                               .busy = s->busy,
                               .wait_sec = wait_sec};
    s->watch = watch_new(&watch);
    return s;
}

void staging_free(Staging *s)
{
    if (!s)
        return;
    for (const NodeKind *const *kind = kinds; *kind; kind++)
        if ((*kind)->free)
            (*kind)->free(s);
    watch_free(s->watch);
    busy_free(s->busy);
    usages_free(s->usages);
    kept_copy_free(s->kept_copy);
    keeper_free(s->keeper);
    node_mounter_free(s->mounter);
    g_hash_table_unref(s->walks);
    g_mutex_clear(&s->walks_lock);
    g_free(s->socket_path);
    g_free(s);
}

gboolean staging_waits(Staging *s, const char *volume)
{
    return keeper_may_wait(s->keeper, volume);
}

const NodeKind *staging_kind(const VolumeAttributes *attributes)
{
    const NodeKind *const *kind = kinds;
    while (!(*kind)->takes(attributes))
        kind++;
    return *kind;
}

/* ---- staging and publishing ---- */

gboolean staging_stage(Staging *s, const NodeKind *kind, const NodeCall *call, GError **error)
{
    g_autoptr(BusyHold) hold = busy_take(s->busy, call->volume, call->staged, error);
    return hold && kind->stage(s, call, error);
}

/* Makes sure that the staged volume is served: mounts it again, from what the keeper has, when
 * hearthd has lost it. */
static gboolean ensure_served(Staging *s, const NodeKind *kind, const NodeCall *call,
                              GError **error)
{
    g_auto(StagedVolume) staged = {0};
    if (!kind->check(s, call, &staged, error))
        return FALSE;
    if (!staged.lost)
        return TRUE;
    node_spec_auto_t *spec = keeper_spec(s->keeper, staged.volume);
    if (!spec)
        return hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                           "volume %s is staged at %s but hearthd no longer serves it; unstage it "
                           "and stage it again",
                           call->volume, call->staged);
    if (!kind->restore(s, call, &staged, spec, error))
        return FALSE;
    g_message("volume %s: mounted again at %s: %s", call->volume, call->staged, staged.lost);
    return TRUE;
}

gboolean staging_publish(Staging *s, const NodeKind *kind, const NodeCall *call, GError **error)
{
    g_autoptr(BusyHold) hold = busy_take(s->busy, call->volume, call->target, error);
    g_autoptr(MountEntry) entry = NULL;
    if (!hold || !served_find(s, call->staged, &entry, error))
        return FALSE;
    /* A dataset may have been staged as a live volume: the mount shows it. */
    const NodeKind *staged = kind->on_device ? kind : served_kind_of(s, entry);
    return ensure_served(s, staged, call, error) && staged->publish(s, call, error);
}

/* ---- unstaging and unpublishing ---- */

/* The layer below what is mounted at the path; the caller's. NULL: there is none. */
static gboolean find_layer(Staging *s, const char *path, char **layer, GError **error)
{
    g_autoptr(MountEntry) entry = NULL;
    *layer = NULL;
    if (path && !served_find(s, path, &entry, error))
        return FALSE;
    const NodeKind *kind = served_kind_of(s, entry);
    if (entry && kind->layer_below)
        *layer = kind->layer_below(entry);
    return TRUE;
}

static gboolean clear_lost(Staging *s, const NodeCleanup *cleanup, GError **error)
{
    for (const NodeKind *const *kind = kinds; *kind; kind++)
        if ((*kind)->clear_lost && !(*kind)->clear_lost(s, cleanup, error))
            return FALSE;
    return TRUE;
}

static gboolean remove_target(Staging *s, const NodeCleanup *cleanup, GError **error)
{
    for (const NodeKind *const *kind = kinds; *kind; kind++)
        if ((*kind)->remove_target && !(*kind)->remove_target(s, cleanup, error))
            return FALSE;
    return TRUE;
}

/* Unmounts what is published at the target, and removes the mount point. */
static gboolean clear_target(Staging *s, const NodeCleanup *cleanup, GError **error)
{
    if (!clear_lost(s, cleanup, error))
        return FALSE;
    if (!served_clear(s, cleanup->volume, cleanup->path, FALSE, cleanup->deadline, error))
        return FALSE;
    return remove_target(s, cleanup, error);
}

static gboolean remove_unused(Staging *s, const NodeCleanup *cleanup, GError **error)
{
    for (const NodeKind *const *kind = kinds; *kind; kind++)
        if (!(*kind)->remove_unused(s, cleanup, error))
            return FALSE;
    return TRUE;
}

gboolean staging_unstage(Staging *s, const char *volume, const char *path, gint64 timeout_ms,
                         GError **error)
{
    const Deadline deadline = deadline_in(timeout_ms);
    g_autofree char *layer = NULL;
    g_autoptr(BusyHold) hold = busy_take(s->busy, volume, path, error);
    if (!hold || !find_layer(s, path, &layer, error))
        return FALSE;
    const NodeCleanup cleanup = {
        .volume = volume, .path = path, .layer = layer, .unstaging = TRUE, .deadline = deadline};
    served_release_if_lost(s, volume);
    fsgroup_walk_free(served_steal_walk(s, volume));
    if (path && !served_clear(s, volume, path, FALSE, deadline, error))
        return FALSE;
    return remove_unused(s, &cleanup, error);
}

gboolean staging_unpublish(Staging *s, const char *volume, const char *target, gint64 timeout_ms,
                           GError **error)
{
    const Deadline deadline = deadline_in(timeout_ms);
    g_autofree char *layer = NULL;
    g_autoptr(BusyHold) hold = busy_take(s->busy, volume, target, error);
    if (!hold || !find_layer(s, target, &layer, error))
        return FALSE;
    const NodeCleanup cleanup = {
        .volume = volume, .path = target, .layer = layer, .deadline = deadline};
    /* Other pods may wait for the next hearthd with this one. */
    if (!keeper_may_yet_wait(s->keeper, volume))
        served_release_if_lost(s, volume);
    if (target && !clear_target(s, &cleanup, error))
        return FALSE;
    return remove_unused(s, &cleanup, error);
}

/* ---- sizes ---- */

gboolean staging_statvfs(Staging *s, const char *volume, const char *path, gint64 timeout_ms,
                         struct statvfs *st, GError **error)
{
    g_autoptr(MountEntry) entry = NULL;
    if (!served_find(s, path, &entry, error))
        return FALSE;
    if (!entry || !served_owns(s, entry, volume))
        return hearth_fail(error, HEARTH_ERROR_NOT_FOUND, "volume %s is not mounted at %s", volume,
                           path);
    const NodeKind *kind = served_kind_of(s, entry);
    return kind->statvfs
               ? kind->statvfs(s, entry, st, error)
               : s->mounter->ops->statvfs(s->mounter, path, entry->dev, timeout_ms, st, error);
}

gboolean staging_expand(Staging *s, const char *volume, const char *path, gint64 timeout_ms,
                        guint64 *bytes, GError **error)
{
    struct statvfs st;
    for (const NodeKind *const *kind = kinds; *kind; kind++) {
        gboolean staged = FALSE;
        if ((*kind)->is_staged && !(*kind)->is_staged(s, volume, &staged, error))
            return FALSE;
        if (staged)
            return (*kind)->expand(s, volume, *bytes, deadline_in(timeout_ms), bytes, error);
    }
    /* A subvolume's quota changes without the node: only its size is reported. */
    if (!staging_statvfs(s, volume, path, MIN(timeout_ms, STATVFS_MS), &st, error))
        return FALSE;
    *bytes = (guint64)st.f_blocks * (st.f_frsize ? st.f_frsize : st.f_bsize);
    return TRUE;
}
