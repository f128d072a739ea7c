/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations on volumes that exist: expand, list, and free space. A list goes through the records,
 * because they say which volumes are ours, and shows only complete volumes: a CO could not use one
 * that is half created.
 */
#include "driver/provision/internal.h"
#include <string.h>

gboolean provision_expand(const ProvisionTarget *at, CapacityRange range, gint64 *bytes,
                          GError **error)
{
    const VolumeId *id = at->id;
    work_auto Work w = {0};
    g_autoptr(VolumeRecord) record = NULL;
    g_autoptr(BackendVolume) volume = NULL;
    gint64 wanted;
    if (!capacity_choose(range, id->type, &wanted, error))
        return FALSE;
    if (!work_open(&w, at, error) || !work_look(&w, &record, &volume, error))
        return FALSE;
    if (!w.ops->volume_resize)
        return hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                           "type=%s keeps no sizes: the volume can grow as it is",
                           volume_type_name(id->type));
    if (record->backing)
        return hearth_fail(
            error, HEARTH_ERROR_INVALID_ARGUMENT,
            "volume %s is a snapshot itself, for reading only: it cannot grow; make a "
            "volume from the snapshot with backingSnapshot: \"false\"",
            id->name);
    *bytes = volume->bytes;
    if (range.limit && volume->bytes > range.limit)
        return hearth_fail(error, HEARTH_ERROR_OUT_OF_RANGE,
                           "volume %s has %" G_GINT64_FORMAT
                           " bytes, more than limit_bytes %" G_GINT64_FORMAT
                           "; volumes are not shrunk",
                           id->name, volume->bytes, range.limit);
    if (volume->bytes < range.required) {
        *bytes = wanted;
        if (!w.ops->volume_resize(w.session, id, wanted, at->deadline_us, error))
            return FALSE;
    }
    /* Always, because an earlier attempt may have ended after resizing. */
    return modify_limit(&w, record, *bytes, error);
}

void provision_entry_free(gpointer data)
{
    ProvisionEntry *entry = data;
    if (!entry)
        return;
    volume_id_free(entry->id);
    volume_record_free(entry->record);
    backend_volume_free(entry->volume);
    g_free(entry);
}

/* NULL without an error when there is no complete volume of the name. */
static ProvisionEntry *entry_of(const Work *location, const char *name, GError **error)
{
    VolumeId id = *location->id;
    id.name = (char *)name;
    Work w = *location;
    w.id = &id;
    g_autoptr(VolumeRecord) record = NULL;
    g_autoptr(BackendVolume) volume = NULL;
    if (!work_find_record(&w, &record, error) || !record)
        return NULL;
    if (*record->group)
        id.group = record->group;
    if (record->moved || !work_find_recorded(&w, record, &volume, error) || !volume ||
        volume->incomplete)
        return NULL;
    ProvisionEntry *entry = g_new0(ProvisionEntry, 1);
    entry->id = volume_id_copy(&id);
    entry->record = g_steal_pointer(&record);
    entry->volume = g_steal_pointer(&volume);
    return entry;
}

GPtrArray *provision_list(const ProvisionTarget *location, const char *after, guint max,
                          gboolean *more, GError **error)
{
    work_auto Work w = {0};
    if (!work_open(&w, location, error))
        return NULL;
    g_autoptr(GPtrArray) keys = w.ops->record_list(w.session, w.deadline_us, error);
    if (!keys)
        return NULL;
    g_ptr_array_sort(keys, work_compare_names);
    g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func(provision_entry_free);
    *more = FALSE;
    for (guint i = 0; i < keys->len; i++) {
        const char *name = volume_record_key_name(keys->pdata[i]);
        if (!name || (after && strcmp(name, after) <= 0))
            continue;
        if (list->len == max) {
            *more = TRUE;
            break;
        }
        g_autoptr(GError) cause = NULL;
        ProvisionEntry *entry = entry_of(&w, name, &cause);
        if (entry)
            g_ptr_array_add(list, entry);
        if (cause && work_spoils_list(cause)) {
            g_propagate_error(error, g_steal_pointer(&cause));
            return NULL;
        }
    }
    return g_steal_pointer(&list);
}

gboolean provision_capacity(const ProvisionTarget *location, const char *pool, gint64 *available,
                            GError **error)
{
    work_auto Work w = {0};
    return work_open(&w, location, error) &&
           w.ops->capacity(w.session, pool, available, w.deadline_us, error);
}
