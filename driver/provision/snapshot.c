/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots, by the same rule as volumes: the record comes first and goes last. A snapshot outlives
 * its volume, so its record, not the volume's, leads to it.
 */
#include <string.h>
#include "driver/provision/internal.h"

gboolean work_find_snapshot(Work *w, const char *name, SnapshotRecord **record, GError **error)
{
    g_autoptr(GError) cause = NULL;
    gsize length;
    g_autofree char *key = snapshot_record_key(name);
    *record = NULL;
    g_autofree char *text = w->ops->record_read(w->session, key, &length, w->deadline_us, &cause);
    if (!text && work_is_not_found(cause))
        return TRUE;
    if (!text) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    *record = snapshot_record_decode(name, text, length, error);
    return *record != NULL;
}

gboolean work_remove_snapshot_record(Work *w, const char *name, GError **error)
{
    g_autofree char *key = snapshot_record_key(name);
    return w->ops->record_remove(w->session, key, w->deadline_us, error);
}

VolumeId *provision_snapshot_source(const VolumeId *snapshot, const SnapshotRecord *record)
{
    VolumeId *source = volume_id_copy(snapshot);
    g_free(source->group);
    g_free(source->name);
    source->group = *record->source_group ? g_strdup(record->source_group) : NULL;
    source->name = g_strdup(record->source_name);
    g_free(source->handle);
    source->handle = g_strdup(record->source_handle);
    source->adopted = source->handle != NULL;
    return source;
}

gboolean work_find_any_snapshot(Work *w, const VolumeId *snapshot, SnapshotRecord **record,
                                GError **error)
{
    return snapshot->handle ? adopted_find_snapshot(w, snapshot, record, error)
                            : work_find_snapshot(w, snapshot->name, record, error);
}

VolumeId *work_source_volume(const VolumeRecord *record)
{
    const char *source = record->source_at ? record->source_at : record->source;
    return source ? volume_id_decode(source, NULL) : NULL;
}

gboolean work_snapshot_there(Work *w, const VolumeId *source, const char *name, gboolean *there,
                             GError **error)
{
    g_autoptr(GError) cause = NULL;
    *there = w->ops->snapshot_look(w->session, source, name, w->deadline_us, &cause);
    if (*there || work_is_not_found(cause))
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&cause));
    return FALSE;
}

static gboolean check_can(const Work *w, GError **error)
{
    if (w->ops->snapshot_create)
        return TRUE;
    g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT, "type=%s has no snapshots",
                volume_type_name(w->id->type));
    return FALSE;
}

static gboolean check_same(const SnapshotRecord *record, const char *request_name,
                           const VolumeId *source, const char *name, GError **error)
{
    gboolean same = !record->group_snapshot && strcmp(record->request_name, request_name) == 0 &&
                    strcmp(record->source_group, source->group ? source->group : "") == 0 &&
                    strcmp(record->source_name, source->name) == 0;
    if (!same)
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_ALREADY_EXISTS,
                    "snapshot %s is of volume %s by the request \"%s\"; use another name", name,
                    record->source_name, record->request_name);
    return same;
}

/* Writes the record of a new name. */
static gboolean claim_name(Work *w, const VolumeId *snapshot, const char *request_name,
                           const VolumeId *source, GError **error)
{
    Work of = *w;
    of.id = source;
    g_autoptr(VolumeRecord) volume_record = NULL;
    g_autoptr(BackendVolume) volume = NULL;
    gboolean foreign, existed;
    if (!work_look(&of, &volume_record, &volume, error))
        return FALSE;
    if (volume_record->backing) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT,
                    "volume %s is the snapshot %s itself; use that one", source->name,
                    volume_record->backing->snapshot);
        return FALSE;
    }
    if (!work_snapshot_there(w, source, snapshot->name, &foreign, error))
        return FALSE;
    if (foreign) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_ALREADY_EXISTS,
                    "volume %s has a snapshot %s without a record of this driver: someone else "
                    "made it; choose another snapshotNamePrefix or remove it",
                    source->name, snapshot->name);
        return FALSE;
    }
    gint64 bytes = volume->bytes ? volume->bytes : volume_record->bytes;
    /* A subvolume of ceph-csi may have no quota; a record tells a size. */
    g_autofree char *text =
        snapshot_record_encode(request_name, source, volume->path, MAX(bytes, 1), NULL);
    g_autofree char *key = snapshot_record_key(snapshot->name);
    return w->ops->record_create(w->session, key, text, &existed, w->deadline_us, error);
}

gboolean provision_snapshot_create(const Backend *backend, const VolumeId *snapshot,
                                   const char *request_name, const VolumeId *source,
                                   const Secrets *secrets, gint64 deadline_us,
                                   SnapshotRecord **record, GError **error)
{
    work_auto Work w = {0};
    const char *name = snapshot->name;
    g_autoptr(SnapshotRecord) found = NULL;
    if (!work_open(&w, backend, snapshot, secrets, deadline_us, error) || !check_can(&w, error) ||
        !work_find_snapshot(&w, name, &found, error))
        return FALSE;
    if (!found) {
        if (!claim_name(&w, snapshot, request_name, source, error) ||
            !work_find_snapshot(&w, name, &found, error))
            return FALSE;
        if (!found) {
            g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_ABORTED,
                        "snapshot %s is being deleted by another controller; try again", name);
            return FALSE;
        }
    }
    gboolean there = FALSE;
    if (!check_same(found, request_name, source, name, error) ||
        !work_snapshot_there(&w, source, name, &there, error))
        return FALSE;
    GError *cause = NULL;
    if (!there && !w.ops->snapshot_create(w.session, source, name, deadline_us, &cause)) {
        /* The volume went meanwhile: there will never be a snapshot. */
        if (work_is_not_found(cause))
            work_remove_snapshot_record(&w, name, NULL);
        g_propagate_error(error, cause);
        return FALSE;
    }
    *record = g_steal_pointer(&found);
    return TRUE;
}

gboolean provision_snapshot_delete(const Backend *backend, const VolumeId *snapshot,
                                   const Secrets *secrets, gint64 deadline_us, GError **error)
{
    work_auto Work w = {0};
    g_autoptr(SnapshotRecord) record = NULL;
    if (!work_open(&w, backend, snapshot, secrets, deadline_us, error))
        return FALSE;
    if (snapshot->handle)
        return adopted_delete_snapshot(&w, snapshot, error);
    if (!work_find_snapshot(&w, snapshot->name, &record, error))
        return FALSE;
    /* Without a record there is no telling of which volume it would be. */
    if (!record)
        return TRUE;
    if (!check_can(&w, error))
        return FALSE;
    if (record->group_snapshot) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT,
                    "snapshot %s is of group snapshot %s; delete that, which deletes all of them",
                    snapshot->name, record->group_snapshot);
        return FALSE;
    }
    g_autoptr(VolumeId) source = provision_snapshot_source(snapshot, record);
    if (!shallow_seal(&w, snapshot->name, error))
        return FALSE;
    if (w.ops->snapshot_remove(w.session, source, snapshot->name, deadline_us, error))
        return work_remove_snapshot_record(&w, snapshot->name, error);
    shallow_unseal(&w, snapshot->name);
    return FALSE;
}

/* NULL without an error for what is no snapshot. */
static SnapshotRecord *look(Work *w, const VolumeId *snapshot, GError **error)
{
    g_autoptr(SnapshotRecord) record = NULL;
    gboolean there = FALSE;
    if (!work_find_any_snapshot(w, snapshot, &record, error) || !record)
        return NULL;
    g_autoptr(VolumeId) source = provision_snapshot_source(snapshot, record);
    if (!work_snapshot_there(w, source, snapshot->name, &there, error) || !there)
        return NULL;
    return g_steal_pointer(&record);
}

gboolean provision_snapshot_look(const Backend *backend, const VolumeId *snapshot,
                                 const Secrets *secrets, gint64 deadline_us,
                                 SnapshotRecord **record, GError **error)
{
    work_auto Work w = {0};
    g_autoptr(GError) cause = NULL;
    if (!work_open(&w, backend, snapshot, secrets, deadline_us, error) || !check_can(&w, error))
        return FALSE;
    *record = look(&w, snapshot, &cause);
    if (*record)
        return TRUE;
    if (cause)
        g_propagate_error(error, g_steal_pointer(&cause));
    else
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND, "snapshot %s does not exist",
                    snapshot->name);
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

static gboolean is_of(const SnapshotRecord *record, const VolumeId *source)
{
    return !source || (strcmp(record->source_name, source->name) == 0 &&
                       strcmp(record->source_group, source->group ? source->group : "") == 0);
}

GPtrArray *provision_snapshot_list(const Backend *backend, const VolumeId *place,
                                   const VolumeId *source, const char *after, guint max,
                                   const Secrets *secrets, gint64 deadline_us, gboolean *more,
                                   GError **error)
{
    work_auto Work w = {0};
    *more = FALSE;
    if (!work_open(&w, backend, place, secrets, deadline_us, error))
        return NULL;
    g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func(provision_snapshot_free);
    if (!w.ops->snapshot_look)
        return g_steal_pointer(&list);
    g_autoptr(GPtrArray) keys = w.ops->record_list(w.session, deadline_us, error);
    if (!keys)
        return NULL;
    g_ptr_array_sort(keys, work_compare_names);
    for (guint i = 0; i < keys->len; i++) {
        const char *name = snapshot_record_key_name(keys->pdata[i]);
        if (!name || (after && strcmp(name, after) <= 0))
            continue;
        VolumeId id = *place;
        id.group = NULL;
        id.name = (char *)name;
        g_autoptr(GError) cause = NULL;
        g_autoptr(SnapshotRecord) record = look(&w, &id, &cause);
        if (cause && work_spoils_list(cause)) {
            g_propagate_error(error, g_steal_pointer(&cause));
            return NULL;
        }
        if (!record || !is_of(record, source))
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

/* What a copy is being made through stays; what one left goes. FALSE only for failures. */
static gboolean settle_copy(Work *w, const char *snapshot, const VolumeId *target, GError **error)
{
    work_auto Work at = {0};
    g_autoptr(VolumeRecord) record = NULL;
    g_autoptr(GError) cause = NULL;
    if (!work_open_beside(w, target, &at, &cause) || !work_find_record(&at, &record, &cause)) {
        if (!copy_is_out_of_reach(&at, cause)) {
            g_propagate_error(error, g_steal_pointer(&cause));
            return FALSE;
        }
        if (!work_is_not_found(cause))
            return TRUE; /* not known; the copy's own end removes it */
    }
    return copy_is_of(record, w->id) ||
           w->ops->snapshot_remove(w->session, w->id, snapshot, w->deadline_us, error);
}

gboolean snapshot_check_kept(Work *w, GError **error)
{
    g_autoptr(GPtrArray) names = w->ops->snapshot_list(w->session, w->id, w->deadline_us, error);
    if (!names)
        return FALSE;
    for (guint i = 0; i < names->len; i++) {
        const char *name = names->pdata[i];
        g_autoptr(VolumeId) target = copy_snapshot_target(w->id, name);
        if (target) {
            if (!settle_copy(w, name, target, error))
                return FALSE;
            continue;
        }
        g_autoptr(SnapshotRecord) record = NULL;
        if (!work_find_snapshot(w, name, &record, error))
            return FALSE;
        gboolean keeps = record && is_of(record, w->id);
        if (!record && w->id->handle && !adopted_keeps_snapshot(w, name, &keeps, error))
            return FALSE;
        if (!keeps) {
            g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION,
                        "volume %s has a snapshot %s that this driver has not made; remove it "
                        "first",
                        w->id->name, name);
            return FALSE;
        }
    }
    return TRUE;
}
