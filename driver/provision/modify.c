/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutable parameters of a volume. Its record is replaced as a whole, and only if it is still the
 * text that was read: two changes at once both count, and a crash leaves the old record or the new
 * one. Limits are put in force after it, and again by every repeated call.
 */
#include <string.h>
#include "driver/provision/internal.h"
#include "driver/volume/qos.h"

#define TRIES 20

gboolean modify_check(const Work *w, const json_t *changes, GError **error)
{
    if (mutable_has_limits(changes) && !w->ops->volume_limit)
        return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                           "limits: nothing enforces them for type=%s; leave them out",
                           volume_type_name(w->id->type));
    if (json_object_size(changes) > 0 && !w->ops->record_replace)
        return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                           "volumes of type=%s have no mutable parameters",
                           volume_type_name(w->id->type));
    return TRUE;
}

static gboolean check_modifiable(const Work *w, const json_t *changes, GError **error)
{
    if (!w->id->adopted)
        return modify_check(w, changes, error);
    return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                       "volume %s is ceph-csi's: there is no record of it to change", w->id->name);
}

/* *done FALSE: another call has changed the record meanwhile. */
static gboolean replace_record(Work *w, const json_t *changes, gboolean *done, GError **error)
{
    gsize length;
    g_autofree char *key = volume_record_key(w->id->name);
    g_autofree char *text = w->ops->record_read(w->session, key, &length, w->deadline_us, error);
    g_autofree char *changed =
        text ? volume_record_change(w->id->name, text, length, changes, error) : NULL;
    if (!changed)
        return FALSE;
    *done = strcmp(text, changed) == 0;
    const RecordChange change = {.name = key, .expected = text, .text = changed};
    return *done || w->ops->record_replace(w->session, &change, done, w->deadline_us, error);
}

gboolean modify_limit(Work *w, const VolumeRecord *record, gint64 bytes, GError **error)
{
    json_auto_t *limits = qos_limits(record->params, record->changes, bytes);
    return !limits || w->ops->volume_limit(w->session, w->id, limits, w->deadline_us, error);
}

/* Applies the record as it is now, because another call may have changed it meanwhile. */
static gboolean limit_again(Work *w, const json_t *changes, gint64 bytes, GError **error)
{
    g_autoptr(VolumeRecord) record = NULL;
    if (!mutable_has_limits(changes))
        return TRUE;
    if (!work_find_record(w, &record, error))
        return FALSE;
    return !record || modify_limit(w, record, bytes, error);
}

gboolean provision_modify(const ProvisionTarget *at, const json_t *changes, GError **error)
{
    work_auto Work w = {0};
    g_autoptr(VolumeRecord) record = NULL;
    g_autoptr(BackendVolume) volume = NULL;
    gboolean done = FALSE;
    if (!work_open(&w, at, error))
        return FALSE;
    if (!check_modifiable(&w, changes, error) || !work_look(&w, &record, &volume, error))
        return FALSE;
    for (int i = 0; i < TRIES && !done; i++) {
        if (!replace_record(&w, changes, &done, error))
            return FALSE;
    }
    if (!done)
        return hearth_fail(error, HEARTH_ERROR_ABORTED,
                           "volume %s is being changed by others; try again", at->id->name);
    return limit_again(&w, changes, volume->bytes, error);
}

json_t *provision_read_mutable(const ProvisionTarget *at, GError **error)
{
    work_auto Work w = {0};
    g_autoptr(VolumeRecord) record = NULL;
    if (!work_open(&w, at, error) || !work_find_record(&w, &record, error))
        return NULL;
    if (!record)
        hearth_fail(error, HEARTH_ERROR_NOT_FOUND, "volume %s has no record", at->id->name);
    return record ? json_incref(record->changes) : NULL;
}
