/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base of provisioning: a session with a backend, bound to one volume and a deadline, and the
 * lookups that every operation begins with. Each lookup tells "there is none" (TRUE, with NULL)
 * from "not known" (FALSE, with the error), because a step may be repeated only when it is known
 * which one comes next.
 */
#include <string.h>
#include "driver/provision/work.h"

void work_close(Work *work)
{
    if (work->session && !work->borrowed)
        work->ops->close(work->session);
}

gboolean work_open(Work *work, const ProvisionTarget *at, GError **error)
{
    work->ops = at->backend->ops;
    work->id = at->id;
    work->deadline_us = at->deadline_us;
    work->session = work->ops->open(at->backend->impl, at->id, at->secrets, at->deadline_us, error);
    return work->session != NULL;
}

gboolean work_open_beside(const Work *w, const VolumeId *id, Work *other, GError **error)
{
    *other = *w;
    other->id = id;
    other->borrowed = volume_id_same_location_within(w->id, id);
    if (other->borrowed)
        return TRUE;
    other->session = NULL;
    if (!w->ops->open_beside)
        return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                           "type=%s: copies stay within one location", volume_type_name(id->type));
    other->session = w->ops->open_beside(w->session, id, w->deadline_us, error);
    return other->session != NULL;
}

Work work_for(const Work *w, const VolumeId *id)
{
    Work other = *w;
    other.id = id;
    return other;
}

gboolean work_is_not_found(const GError *error)
{
    return g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND);
}

gboolean work_in_group(const char *group, const VolumeId *id)
{
    return strcmp(group, id->group ? id->group : "") == 0;
}

gboolean work_read_record(Work *w, const char *key, char **text, gsize *length, GError **error)
{
    g_autoptr(GError) cause = NULL;
    *text = w->ops->record_read(w->session, key, length, w->deadline_us, &cause);
    if (*text || work_is_not_found(cause))
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&cause));
    return FALSE;
}

/* The record that a volume of ceph-csi, which has none of ours, would have. */
static VolumeRecord *adopted_record(const VolumeId *id)
{
    VolumeRecord *record = g_new0(VolumeRecord, 1);
    record->name = g_strdup(id->name);
    record->request_name = g_strdup(id->name);
    record->group = g_strdup(id->group ? id->group : "");
    record->params = json_object();
    record->changes = json_object();
    return record;
}

gboolean work_find_record(Work *w, VolumeRecord **record, GError **error)
{
    *record = NULL;
    if (w->id->adopted) {
        *record = adopted_record(w->id);
        return TRUE;
    }
    gsize length;
    g_autofree char *text = NULL;
    g_autofree char *key = volume_record_key(w->id->name);
    if (!work_read_record(w, key, &text, &length, error))
        return FALSE;
    if (!text)
        return TRUE;
    *record = volume_record_decode(w->id->name, text, length, error);
    return *record != NULL;
}

gboolean work_remove_record(Work *w, GError **error)
{
    g_autofree char *key = volume_record_key(w->id->name);
    return w->ops->record_remove(w->session, key, w->deadline_us, error);
}

gboolean work_find_volume(Work *w, BackendVolume **volume, GError **error)
{
    g_autoptr(GError) cause = NULL;
    *volume = w->ops->volume_look(w->session, w->id, w->deadline_us, &cause);
    if (*volume || work_is_not_found(cause))
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&cause));
    return FALSE;
}

VolumeId work_backing_source(const Work *w, const VolumeBacking *backing)
{
    VolumeId source = *w->id;
    source.group = *backing->group ? backing->group : NULL;
    source.name = backing->name;
    return source;
}

/* A shallow volume is there when its snapshot is. */
static gboolean find_backing(Work *w, const VolumeBacking *backing, BackendVolume **volume,
                             GError **error)
{
    const VolumeId source = work_backing_source(w, backing);
    gboolean there;
    *volume = NULL;
    if (!work_snapshot_there(w, &source, backing->snapshot, &there, error))
        return FALSE;
    if (there) {
        *volume = g_new0(BackendVolume, 1);
        (*volume)->path = g_strdup(backing->path);
    }
    return TRUE;
}

gboolean work_find_recorded(Work *w, const VolumeRecord *record, BackendVolume **volume,
                            GError **error)
{
    return record && record->backing ? find_backing(w, record->backing, volume, error)
                                     : work_find_volume(w, volume, error);
}

gboolean work_look(Work *w, VolumeRecord **record, BackendVolume **volume, GError **error)
{
    g_autoptr(VolumeRecord) found = NULL;
    g_autoptr(BackendVolume) seen = NULL;
    if (!work_find_record(w, &found, error) || !work_find_recorded(w, found, &seen, error))
        return FALSE;
    if (!found || !seen || seen->incomplete || found->moved || !work_in_group(found->group, w->id))
        return hearth_fail(error, HEARTH_ERROR_NOT_FOUND, "volume %s does not exist", w->id->name);
    *record = g_steal_pointer(&found);
    *volume = g_steal_pointer(&seen);
    return TRUE;
}

gboolean work_find_snapshot(Work *w, const char *name, SnapshotRecord **record, GError **error)
{
    gsize length;
    g_autofree char *text = NULL;
    g_autofree char *key = snapshot_record_key(name);
    *record = NULL;
    if (!work_read_record(w, key, &text, &length, error))
        return FALSE;
    if (!text)
        return TRUE;
    *record = snapshot_record_decode(name, text, length, error);
    return *record != NULL;
}

gboolean work_is_snapshot_of(const SnapshotRecord *record, const VolumeId *source)
{
    return strcmp(record->source_name, source->name) == 0 &&
           work_in_group(record->source_group, source);
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

gint work_compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

gboolean work_spoils_list(const GError *error)
{
    return g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_UNAVAILABLE) ||
           g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_DEADLINE_EXCEEDED) ||
           g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_PERMISSION_DENIED);
}
