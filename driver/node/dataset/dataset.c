/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kind of volumes that are a snapshot (dataset.h has the picture): what NodeKind asks of them.
 * A staged claim is a stack, which names its shared layers in the mount table, or a live volume.
 * The steps here see stacks only, except stage().
 */
#include "driver/node/dataset/dataset.h"
#include <pthread.h>
#include <string.h>
#include <sys/mount.h>
#include "driver/node/dataset/internal.h"
#include "driver/node/hearthd/spec.h"
#include "proto/wire_keys.h"

void dataset_init(Staging *s, NodeLayers *layers, unsigned refresh_ms)
{
    s->datasets = g_new0(NodeDatasets, 1);
    s->datasets->layers = layers;
    pthread_mutex_init(&s->datasets->lock, NULL);
    s->datasets->building =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)hearthd_close);
    s->datasets->refresh_ms = (int)refresh_ms;
    dataset_refresh_start(s);
}

static void dataset_free(Staging *s)
{
    NodeDatasets *d = s->datasets;
    if (!d)
        return;
    dataset_refresh_stop(s);
    node_layers_free(d->layers);
    g_hash_table_unref(d->building);
    pthread_mutex_destroy(&d->lock);
    g_free(d);
    s->datasets = NULL;
}

static gboolean dataset_takes(const VolumeAttributes *attributes)
{
    return attributes->type != VOLUME_RBD && attributes->is_snapshot;
}

static gboolean dataset_shows(const MountEntry *entry)
{
    g_auto(SharedLayers) shared = {0};
    return shared_layers_of(entry, &shared);
}

static char *dataset_layer_below(const MountEntry *entry)
{
    g_auto(SharedLayers) shared = {0};
    return shared_layers_of(entry, &shared) ? g_steal_pointer(&shared.fill) : NULL;
}

/* ---- staging ---- */

/* Whether two specs that differ name the same dataset: only hearthd knows. It tries another user or
 * key, and fails when Ceph refuses it. */
static gboolean is_same_dataset(Staging *s, const NodeCall *call, const char *id, gboolean *same,
                                GError **error)
{
    gboolean native;
    g_auto(DatasetClaim) c = {.volume = call->volume, .spec = call->spec};
    *same = FALSE;
    if (!json_is_true(json_object_get(call->spec, WIRE_KEY_CACHE)))
        return TRUE;
    if (!dataset_claim_ask(s, &c, &native, call->deadline, error))
        return FALSE;
    *same = g_strcmp0(c.manifest.dataset, id) == 0;
    return TRUE;
}

/* Checks that the layers, which are served, are those of the claim, and takes over what may change.
 */
static gboolean update_staged(Staging *s, const NodeCall *call, const SharedLayers *shared,
                              GError **error)
{
    g_autoptr(HearthdLink) link = hearthd_connect(s->socket_path, NULL, error);
    node_spec_auto_t *kept = link ? watch_spec(s->keeper, link, shared->volume, error) : NULL;
    if (!kept)
        return FALSE;
    /* With the user and key that the layers are served with. */
    const gboolean own = node_spec_same_authority(kept, call->spec);
    gboolean same = own && node_spec_same_volume(kept, call->spec);
    if (!same && !is_same_dataset(s, call, shared->id, &same, error))
        return FALSE;
    if (!same)
        return hearth_fail(
            error, HEARTH_ERROR_ALREADY_EXISTS,
            "volume %s is staged at %s already, with other parameters; unstage it first",
            call->volume, call->staged);
    return !own || shared_layers_renew(s, link, shared->volume, call->spec, call->deadline, error);
}

/* *staged: the claim's stack is mounted as requested. FALSE with ALREADY_EXISTS: as something
 * else. */
static gboolean check_staged(Staging *s, const NodeCall *call, const GPtrArray *table,
                             const MountEntry *entry, gboolean *staged, GError **error)
{
    g_auto(SharedLayers) shared = {0};
    *staged = FALSE;
    if (!entry || !shared_layers_of(entry, &shared))
        return TRUE;
    if (!shared_layers_is_served(s, table, &shared, staged, call->deadline, error))
        return FALSE;
    if (!*staged)
        return TRUE;
    return served_check_context(entry, call->volume, call->use.context, HEARTH_ERROR_ALREADY_EXISTS,
                                error) &&
           update_staged(s, call, &shared, error);
}

static gboolean dataset_stage(Staging *s, const NodeCall *call, GError **error)
{
    gboolean staged;
    g_autoptr(GPtrArray) table = served_list(s, error);
    const MountEntry *entry = table ? mount_find(table, call->staged) : NULL;
    if (!table || (entry && !served_check_owner(s, entry, call->volume, error)))
        return FALSE;
    if (entry && mount_served_volume(entry)) /* a live volume stays one */
        return live_kind.stage(s, call, error);
    if (!check_staged(s, call, table, entry, &staged, error))
        return FALSE;
    if (staged)
        return TRUE;
    DatasetClaim c = {.volume = call->volume,
                      .path = call->staged,
                      .spec = call->spec,
                      .over_stack = entry != NULL,
                      .options = {.attrs = call->use.attrs, .context = call->use.context}};
    return dataset_claim_mount(s, &c, call->deadline, error);
}

/* ---- publishing ---- */

/* Whether a stack, which shows files as they are, can be read by the pod's group. */
static gboolean fits_group(Staging *s, const SharedLayers *shared, gint64 group, gboolean *fits,
                           GError **error)
{
    g_auto(HearthdManifest) manifest = {0};
    *fits = group < 0;
    if (*fits)
        return TRUE;
    g_autoptr(HearthdLink) link = hearthd_connect(s->socket_path, NULL, error);
    if (!link || !hearthd_manifest(link, shared->volume, 0, &manifest, error))
        return FALSE;
    *fits = manifest.readable;
    return TRUE;
}

static gboolean dataset_check(Staging *s, const NodeCall *call, StagedVolume *staged,
                              GError **error)
{
    gboolean alive, fits = FALSE;
    g_auto(SharedLayers) shared = {0};
    g_autoptr(GPtrArray) table = served_list(s, error);
    if (!table)
        return FALSE;
    const MountEntry *entry = mount_find(table, call->staged);
    if (!entry || !shared_layers_of(entry, &shared))
        return hearth_fail(error, HEARTH_ERROR_ABORTED, "%s: unmounted meanwhile; try again",
                           call->staged);
    if (!served_check_owner(s, entry, call->volume, error) ||
        !served_check_context(entry, call->volume, call->use.context,
                              HEARTH_ERROR_FAILED_PRECONDITION, error))
        return FALSE;
    if (!shared_layers_is_served(s, table, &shared, &alive, call->deadline, error))
        return FALSE;
    if (alive && !fits_group(s, &shared, call->use.group, &fits, error))
        return FALSE;
    const MountEntry *other =
        alive && !fits ? served_find_publication(table, entry->dev, call->staged) : NULL;
    if (other)
        return served_refuse_group(call->volume, other, call->use.group, error);
    staged->volume = g_strdup(shared.volume);
    staged->context = g_strdup(entry->context);
    if (!alive)
        staged->lost = "hearthd had lost it";
    else if (!fits)
        staged->lost = "its pod has an fsGroup, and some files are not readable by everyone";
    return TRUE;
}

static gboolean dataset_restore(Staging *s, const NodeCall *call, const StagedVolume *staged,
                                const json_t *spec, GError **error)
{
    node_spec_auto_t *own = shared_layers_spec(spec, call->volume);
    if (call->use.group >= 0)
        json_object_set_new(own, WIRE_KEY_MOUNT_GROUP, json_integer((json_int_t)call->use.group));
    DatasetClaim c = {.volume = call->volume,
                      .path = call->staged,
                      .spec = own,
                      .over_stack = TRUE,
                      .options = {.attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY,
                                  .context = staged->context}};
    if (dataset_claim_mount(s, &c, call->deadline, error))
        return TRUE;
    /* For the next attempt: taking back has dropped it. */
    if (!keeper_is_complete(s->keeper, staged->volume))
        keeper_put(s->keeper, staged->volume, spec, &KEPT_RESUME_NONE, -1);
    return FALSE;
}

static gboolean dataset_publish(Staging *s, const NodeCall *call, GError **error)
{
    dev_t dev;
    return served_device_at(s, call->staged, &dev, error) && served_bind(s, call, dev, error);
}

/* ---- unpublishing and unstaging ---- */

/*
 * Forgets a build that the volume waited for, and removes all layers without a stack on them. An
 * error is returned only for the layers that the volume was on; others are tried again by the next
 * call.
 */
static gboolean dataset_remove_unused(Staging *s, const NodeCleanup *cleanup, GError **error)
{
    if (!s->datasets)
        return TRUE;
    if (cleanup->unstaging)
        hearthd_close(dataset_steal_build(s->datasets, cleanup->volume));
    g_autoptr(GPtrArray) all = shared_layers_list(s);
    for (guint i = 0; i < all->len; i++) {
        const SharedLayers *shared = all->pdata[i];
        const gboolean mine = g_strcmp0(shared->fill, cleanup->layer) == 0;
        g_autoptr(GError) cause = NULL;
        g_autoptr(BusyHold) hold =
            busy_take_until(s->busy, shared->busy, mine ? cleanup->deadline : 0, &cause);
        if (hold && shared_layers_remove_unused(s, shared, cleanup->deadline, &cause))
            continue;
        if (mine) {
            g_propagate_error(error, g_steal_pointer(&cause));
            return FALSE;
        }
        if (hold)
            g_warning("dataset %s: %s", shared->id, cause->message);
    }
    return TRUE;
}

/* ---- usage and health ---- */

/* The dataset's size and number of files: overlayfs reports those of the manifest's file. */
static gboolean dataset_statvfs(Staging *s, const MountEntry *entry, struct statvfs *st,
                                GError **error)
{
    g_auto(SharedLayers) shared = {0};
    g_auto(HearthdManifest) manifest = {0};
    g_autoptr(HearthdLink) link = hearthd_connect(s->socket_path, NULL, error);
    if (!link || !shared_layers_of(entry, &shared) ||
        !hearthd_manifest(link, shared.volume, 0, &manifest, error))
        return FALSE;
    *st = (struct statvfs){.f_bsize = 1,
                           .f_frsize = 1,
                           .f_blocks = manifest.bytes,
                           .f_files = manifest.files + manifest.directories};
    return TRUE;
}

/* A stack may be on layers that are lost while hearthd serves others of the same dataset. */
static char *dataset_fault(Staging *s, const MountEntry *entry, Deadline deadline)
{
    gboolean served;
    g_auto(SharedLayers) shared = {0};
    g_autoptr(GError) cause = NULL;
    shared_layers_of(entry, &shared);
    g_autofree char *unserved = served_fault(s, shared.volume, deadline, NULL);
    g_autoptr(GPtrArray) table = unserved ? NULL : served_list(s, &cause);
    if (table && shared_layers_is_served(s, table, &shared, &served, deadline, &cause) && served)
        return NULL;
    const char *why = "hearthd was restarted; restart the pods that use it";
    if (unserved)
        why = unserved;
    else if (cause)
        why = cause->message;
    return g_strdup_printf("files that this node does not hold cannot be read: %s", why);
}

const NodeKind dataset_kind = {
    .name = "dataset",
    .takes = dataset_takes,
    .free = dataset_free,
    .shows = dataset_shows,
    .layer_below = dataset_layer_below,
    .stage = dataset_stage,
    .check = dataset_check,
    .restore = dataset_restore,
    .publish = dataset_publish,
    .remove_unused = dataset_remove_unused,
    .statvfs = dataset_statvfs,
    .fault = dataset_fault,
};
