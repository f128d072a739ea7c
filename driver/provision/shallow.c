/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shallow volumes: they show a snapshot, for reading only. Nothing is copied, so such a volume is a
 * record alone, and the snapshot must stay as long as the volume exists. Each volume holds the
 * snapshot's record; deleting the snapshot seals that record first, and is refused while a volume
 * holds it. Searching the volumes' records for users of the snapshot was rejected: its cost grows
 * with everything in the pool, and a volume could be recorded during the search.
 *
 * A dataset (a class's parameter) is another way to name a snapshot. That snapshot may belong to
 * anyone, who then has to keep it: only a snapshot with a record of ours can be held.
 *
 *     create   record → hold            after a crash between: create again holds, delete releases
 *     delete   release → record         after a crash between: delete again finishes
 */
#include <string.h>
#include "driver/provision/internal.h"

#define NAMED_HOLDERS 5

static gboolean check_can_show(const Work *w, GError **error)
{
    if (w->ops->snapshot_path && w->ops->record_hold)
        return TRUE;
    return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                       "backingSnapshot: snapshots of type=%s cannot be mounted as they are; use "
                       "backingSnapshot: \"false\"",
                       volume_type_name(w->id->type));
}

/* The path that the volume had when the snapshot was taken; the caller's. */
static char *source_path(Work *w, const VolumeId *source, const SnapshotRecord *snapshot,
                         GError **error)
{
    if (snapshot->source_path)
        return g_strdup(snapshot->source_path);
    Work of = work_for(w, source);
    g_autoptr(BackendVolume) volume = NULL;
    if (!work_find_volume(&of, &volume, error))
        return NULL;
    if (volume && !volume->incomplete)
        return g_strdup(volume->path);
    hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                "the record of the snapshot of volume %s does not say where it is, and the volume "
                "is gone; use backingSnapshot: \"false\" to copy it",
                source->name);
    return NULL;
}

static VolumeBacking *new_backing(const Work *w, const VolumeId *source, const char *snapshot,
                                  const char *path)
{
    VolumeBacking *backing = g_new0(VolumeBacking, 1);
    backing->group = g_strdup(source->group ? source->group : "");
    backing->name = g_strdup(source->name);
    backing->snapshot = g_strdup(snapshot);
    backing->path = w->ops->snapshot_path(path, snapshot);
    return backing;
}

/* Our record of a snapshot of `source`; *record is NULL when the snapshot is not ours. */
static gboolean find_own(Work *w, const VolumeId *source, const char *snapshot,
                         SnapshotRecord **record, GError **error)
{
    if (!work_find_snapshot(w, snapshot, record, error))
        return FALSE;
    if (*record && !work_is_snapshot_of(*record, source))
        g_clear_pointer(record, snapshot_record_free);
    return TRUE;
}

/* The path and size of the subvolume, from the record of its snapshot if that is ours, because the
 * subvolume may be gone by then. */
static char *dataset_path(Work *w, const VolumeId *source, const DatasetName *name, gint64 *bytes,
                          GError **error)
{
    Work of = work_for(w, source);
    g_autoptr(BackendVolume) volume = NULL;
    g_autoptr(SnapshotRecord) own = NULL;
    const char *group = source->group ? source->group : "";
    gboolean there;
    if (!work_find_volume(&of, &volume, error) || !find_own(w, source, name->snapshot, &own, error))
        return NULL;
    if (!work_snapshot_there(w, source, name->snapshot, &there, error))
        return NULL;
    if (there && own && own->source_path) {
        *bytes = own->bytes;
        return g_strdup(own->source_path);
    }
    if (there && volume && !volume->incomplete) {
        *bytes = volume->bytes;
        return g_strdup(volume->path);
    }
    if (volume)
        hearth_fail(error, HEARTH_ERROR_NOT_FOUND,
                    "dataset: subvolume %s/%s has no snapshot %s; `ceph fs subvolume snapshot ls "
                    "%s %s --group_name %s` lists them",
                    group, name->subvolume, name->snapshot, w->id->fs_name, name->subvolume, group);
    else
        hearth_fail(error, HEARTH_ERROR_NOT_FOUND,
                    "dataset: there is no subvolume %s in group %s; `ceph fs subvolume ls %s "
                    "--group_name %s` lists them, and GROUP/SUBVOLUME@SNAPSHOT names one of "
                    "another group",
                    name->subvolume, group, w->id->fs_name, group);
    return NULL;
}

static VolumeBacking *dataset_backing(Work *w, const ProvisionRequest *r, gint64 *bytes,
                                      GError **error)
{
    const DatasetName *name = r->params->dataset;
    VolumeId source = *w->id;
    gint64 size = 0;
    source.name = name->subvolume;
    if (name->group)
        source.group = name->group;
    g_autofree char *path = dataset_path(w, &source, name, &size, error);
    if (path && size > 0 && r->range.required == 0 && r->range.limit == 0)
        *bytes = size;
    return path ? new_backing(w, &source, name->snapshot, path) : NULL;
}

VolumeBacking *shallow_backing(Work *w, const ProvisionRequest *r, gint64 *bytes, GError **error)
{
    g_autoptr(SnapshotRecord) snapshot = NULL;
    if (!check_can_show(w, error))
        return NULL;
    if (r->params->dataset)
        return dataset_backing(w, r, bytes, error);
    if (!work_find_snapshot(w, r->from_snapshot->name, &snapshot, error))
        return NULL;
    if (!snapshot) {
        hearth_fail(error, HEARTH_ERROR_NOT_FOUND, "the source %s does not exist", r->source);
        return NULL;
    }
    g_autoptr(VolumeId) source = provision_snapshot_source(r->from_snapshot, snapshot);
    g_autofree char *path = source_path(w, source, snapshot, error);
    return path ? new_backing(w, source, r->from_snapshot->name, path) : NULL;
}

gboolean shallow_release(Work *w, const VolumeRecord *record, GError **error)
{
    g_autofree char *key = snapshot_record_key(record->backing->snapshot);
    return w->ops->record_release(w->session, key, w->id->name, w->deadline_us, error);
}

static void set_missing(GError **error, const VolumeRecord *record)
{
    const VolumeBacking *b = record->backing;
    if (record->source)
        hearth_fail(error, HEARTH_ERROR_NOT_FOUND, "the source %s does not exist", record->source);
    else
        hearth_fail(error, HEARTH_ERROR_NOT_FOUND,
                    "dataset: snapshot %s of subvolume %s/%s does not exist any more", b->snapshot,
                    b->group, b->name);
}

/* *own: the snapshot has a record of ours, which the volume has to hold. */
static gboolean find_if_own(Work *w, const VolumeRecord *record, gboolean *own, GError **error)
{
    const VolumeId source = work_backing_source(w, record->backing);
    g_autoptr(SnapshotRecord) snapshot = NULL;
    *own = TRUE;
    if (record->source)
        return TRUE;
    if (!find_own(w, &source, record->backing->snapshot, &snapshot, error))
        return FALSE;
    *own = snapshot != NULL;
    return TRUE;
}

gboolean shallow_finish(Work *w, const VolumeRecord *record, BackendVolume **volume,
                        gboolean *spent, GError **error)
{
    g_autofree char *key = snapshot_record_key(record->backing->snapshot);
    g_autoptr(GError) cause = NULL;
    gboolean own, held = FALSE;
    if (!find_if_own(w, record, &own, error))
        return FALSE;
    if (own && !w->ops->record_hold(w->session, key, w->id->name, &held, w->deadline_us, &cause) &&
        !work_is_not_found(cause)) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    if (own && !cause && !held)
        return hearth_fail(error, HEARTH_ERROR_ABORTED,
                           "snapshot %s is being deleted; volume %s cannot be made from it",
                           record->backing->snapshot, w->id->name);
    if (!cause && !work_find_recorded(w, record, volume, error))
        return FALSE;
    if (*volume)
        return TRUE;
    *spent = cause || shallow_release(w, record, NULL);
    set_missing(error, record);
    return FALSE;
}

gboolean shallow_seal(Work *w, const char *snapshot, GError **error)
{
    if (!w->ops->record_seal)
        return TRUE;
    g_autofree char *key = snapshot_record_key(snapshot);
    g_autoptr(GError) cause = NULL;
    g_autoptr(GPtrArray) holders = w->ops->record_seal(w->session, key, w->deadline_us, &cause);
    if (!holders && work_is_not_found(cause))
        return TRUE; /* another deletion has just ended */
    if (!holders) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    if (holders->len == 0)
        return TRUE;
    shallow_unseal(w, snapshot);
    g_autoptr(GString) names = g_string_new(NULL);
    for (guint i = 0; i < MIN(holders->len, NAMED_HOLDERS); i++)
        g_string_append_printf(names, "%s%s", i ? ", " : "", (char *)holders->pdata[i]);
    if (holders->len > NAMED_HOLDERS)
        g_string_append_printf(names, " and %u more", holders->len - NAMED_HOLDERS);
    return hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                       "snapshot %s is in use: the volumes %s show it; delete them first", snapshot,
                       names->str);
}

/* A record that stays sealed after a crash or failure is being deleted, and the CO will ask again.
 */
void shallow_unseal(Work *w, const char *snapshot)
{
    g_autofree char *key = snapshot_record_key(snapshot);
    g_autoptr(GError) cause = NULL;
    if (w->ops->record_unseal && !w->ops->record_unseal(w->session, key, w->deadline_us, &cause))
        g_message("snapshot %s: %s", snapshot, cause->message);
}
