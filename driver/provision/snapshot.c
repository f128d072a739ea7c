/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots, by the same rule as volumes: the record is created first and removed last. A snapshot
 * outlives its volume, so its own record, not the volume's, leads to it. The Controller service
 * calls this with the snapshot's ID locked.
 */
#include <string.h>
#include "driver/provision/internal.h"

static gboolean check_has_snapshots(const Work *w, GError **error)
{
    if (w->ops->snapshot_create)
        return TRUE;
    return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT, "type=%s has no snapshots",
                       volume_type_name(w->id->type));
}

static gboolean check_same_request(const SnapshotRecord *record, const char *request_name,
                                   const VolumeId *source, const char *name, GError **error)
{
    gboolean same = !record->group_snapshot && strcmp(record->request_name, request_name) == 0 &&
                    work_is_snapshot_of(record, source);
    if (!same)
        hearth_fail(error, HEARTH_ERROR_ALREADY_EXISTS,
                    "snapshot %s is of volume %s by the request \"%s\"; use another name", name,
                    record->source_name, record->request_name);
    return same;
}

/* Creates the record of a new name. */
static gboolean create_record(Work *w, const VolumeId *snapshot, const char *request_name,
                              const VolumeId *source, GError **error)
{
    Work of = work_for(w, source);
    g_autoptr(VolumeRecord) volume_record = NULL;
    g_autoptr(BackendVolume) volume = NULL;
    gboolean foreign, existed;
    if (!work_look(&of, &volume_record, &volume, error))
        return FALSE;
    if (volume_record->backing)
        return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                           "volume %s is the snapshot %s itself; use that one", source->name,
                           volume_record->backing->snapshot);
    if (!work_snapshot_there(w, source, snapshot->name, &foreign, error))
        return FALSE;
    if (foreign)
        return hearth_fail(
            error, HEARTH_ERROR_ALREADY_EXISTS,
            "volume %s has a snapshot %s without a record of this driver: someone else "
            "made it; choose another snapshotNamePrefix or remove it",
            source->name, snapshot->name);
    gint64 bytes = volume->bytes ? volume->bytes : volume_record->bytes;
    /* A subvolume of ceph-csi may have no quota, but a record must have a size. */
    g_autofree char *text =
        snapshot_record_encode(request_name, source, volume->path, MAX(bytes, 1), NULL);
    g_autofree char *key = snapshot_record_key(snapshot->name);
    return w->ops->record_create(w->session, key, text, &existed, w->deadline_us, error);
}

gboolean provision_snapshot_create(const ProvisionTarget *at, const char *request_name,
                                   const VolumeId *source, SnapshotRecord **record, GError **error)
{
    work_auto Work w = {0};
    const char *name = at->id->name;
    g_autoptr(SnapshotRecord) found = NULL;
    if (!work_open(&w, at, error))
        return FALSE;
    if (!check_has_snapshots(&w, error) || !work_find_snapshot(&w, name, &found, error))
        return FALSE;
    if (!found) {
        if (!create_record(&w, at->id, request_name, source, error) ||
            !work_find_snapshot(&w, name, &found, error))
            return FALSE;
        if (!found)
            return hearth_fail(error, HEARTH_ERROR_ABORTED,
                               "snapshot %s is being deleted by another controller; try again",
                               name);
    }
    gboolean there = FALSE;
    if (!check_same_request(found, request_name, source, name, error) ||
        !work_snapshot_there(&w, source, name, &there, error))
        return FALSE;
    GError *cause = NULL;
    if (!there && !w.ops->snapshot_create(w.session, source, name, at->deadline_us, &cause)) {
        /* The volume is gone by now: there will never be a snapshot. */
        if (work_is_not_found(cause))
            work_remove_snapshot_record(&w, name, NULL);
        g_propagate_error(error, cause);
        return FALSE;
    }
    *record = g_steal_pointer(&found);
    return TRUE;
}

gboolean provision_snapshot_delete(const ProvisionTarget *at, GError **error)
{
    const VolumeId *snapshot = at->id;
    work_auto Work w = {0};
    g_autoptr(SnapshotRecord) record = NULL;
    if (!work_open(&w, at, error))
        return FALSE;
    if (snapshot->handle)
        return remove_adopted_snapshot(&w, snapshot, error);
    if (!work_find_snapshot(&w, snapshot->name, &record, error))
        return FALSE;
    /* Only the record says which volume the snapshot is of. */
    if (!record)
        return TRUE;
    if (!check_has_snapshots(&w, error))
        return FALSE;
    if (record->group_snapshot)
        return hearth_fail(
            error, HEARTH_ERROR_INVALID_ARGUMENT,
            "snapshot %s is of group snapshot %s; delete that, which deletes all of them",
            snapshot->name, record->group_snapshot);
    g_autoptr(VolumeId) source = provision_snapshot_source(snapshot, record);
    if (!shallow_seal(&w, snapshot->name, error))
        return FALSE;
    if (w.ops->snapshot_remove(w.session, source, snapshot->name, at->deadline_us, error))
        return work_remove_snapshot_record(&w, snapshot->name, error);
    shallow_unseal(&w, snapshot->name);
    return FALSE;
}

/* NULL without an error when there is no such snapshot. */
static SnapshotRecord *find_complete(Work *w, const VolumeId *snapshot, GError **error)
{
    g_autoptr(SnapshotRecord) record = NULL;
    gboolean there = FALSE;
    if (!adopted_or_own_snapshot(w, snapshot, &record, error) || !record)
        return NULL;
    g_autoptr(VolumeId) source = provision_snapshot_source(snapshot, record);
    if (!work_snapshot_there(w, source, snapshot->name, &there, error) || !there)
        return NULL;
    return g_steal_pointer(&record);
}

gboolean provision_snapshot_look(const ProvisionTarget *at, SnapshotRecord **record, GError **error)
{
    work_auto Work w = {0};
    g_autoptr(GError) cause = NULL;
    if (!work_open(&w, at, error) || !check_has_snapshots(&w, error))
        return FALSE;
    *record = find_complete(&w, at->id, &cause);
    if (*record)
        return TRUE;
    if (cause)
        g_propagate_error(error, g_steal_pointer(&cause));
    else
        hearth_fail(error, HEARTH_ERROR_NOT_FOUND, "snapshot %s does not exist", at->id->name);
    return FALSE;
}

void provision_snapshot_free(gpointer data)
{
    ProvisionSnapshot *snapshot = data;
    if (!snapshot)
        return;
    volume_id_free(snapshot->id);
    snapshot_record_free(snapshot->record);
    g_free(snapshot);
}

GPtrArray *provision_snapshot_list(const ProvisionTarget *location, const VolumeId *source,
                                   const char *after, guint max, gboolean *more, GError **error)
{
    work_auto Work w = {0};
    *more = FALSE;
    if (!work_open(&w, location, error))
        return NULL;
    g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func(provision_snapshot_free);
    if (!w.ops->snapshot_look)
        return g_steal_pointer(&list);
    g_autoptr(GPtrArray) keys = w.ops->record_list(w.session, w.deadline_us, error);
    if (!keys)
        return NULL;
    g_ptr_array_sort(keys, work_compare_names);
    for (guint i = 0; i < keys->len; i++) {
        const char *name = snapshot_record_key_name(keys->pdata[i]);
        if (!name || (after && strcmp(name, after) <= 0))
            continue;
        VolumeId id = *location->id;
        id.group = NULL;
        id.name = (char *)name;
        g_autoptr(GError) cause = NULL;
        g_autoptr(SnapshotRecord) record = find_complete(&w, &id, &cause);
        if (cause && work_spoils_list(cause)) {
            g_propagate_error(error, g_steal_pointer(&cause));
            return NULL;
        }
        if (!record || (source && !work_is_snapshot_of(record, source)))
            continue;
        if (list->len == max) {
            *more = TRUE;
            break;
        }
        ProvisionSnapshot *entry = g_new0(ProvisionSnapshot, 1);
        entry->id = volume_id_copy(&id);
        entry->record = g_steal_pointer(&record);
        g_ptr_array_add(list, entry);
    }
    return g_steal_pointer(&list);
}
