/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixes what the audit found, by the steps that a repeated call would take. A controller may repeat
 * that call at the same moment, because no lock reaches it; so after a record is removed its volume
 * is looked up again, and when the volume has appeared, the record is put back.
 */
#include "driver/provision/audit.h"
#include <string.h>
#include "driver/provision/internal.h"

/* The record's text and name. */
static char *read_text(Work *w, const AuditFinding *f, char **key, GError **error)
{
    gsize length;
    *key = f->snapshot ? snapshot_record_key(f->snapshot) : volume_record_key(w->id->name);
    return w->ops->record_read(w->session, *key, &length, w->deadline_us, error);
}

/* Whether the volume or snapshot exists. FALSE also for failures, which set the error. */
static gboolean is_there(Work *w, const AuditFinding *f, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autoptr(BackendVolume) volume = NULL;
    gboolean there;
    if (f->snapshot) {
        there = w->ops->snapshot_look(w->session, w->id, f->snapshot, w->deadline_us, &cause);
    } else {
        volume = w->ops->volume_look(w->session, w->id, w->deadline_us, &cause);
        there = volume != NULL;
    }
    if (!there && !work_is_not_found(cause))
        g_propagate_error(error, g_steal_pointer(&cause));
    return there;
}

static gboolean fail_came_back(const AuditFinding *f, GError **error)
{
    g_autofree char *name = audit_finding_name(f);
    return hearth_fail(error, HEARTH_ERROR_ABORTED,
                       "%s has come meanwhile: a call is under way; audit again", name);
}

static gboolean drop_record(Work *w, const AuditFinding *f, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autofree char *key = NULL;
    g_autofree char *text = read_text(w, f, &key, &cause);
    if (!text) {
        if (work_is_not_found(cause))
            return TRUE;
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    if (is_there(w, f, &cause))
        return fail_came_back(f, error);
    gboolean existed;
    if (cause || !w->ops->record_remove(w->session, key, w->deadline_us, &cause)) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    if (!is_there(w, f, &cause) && !cause)
        return TRUE;
    /* If in doubt, put the record back: a volume without one could not be deleted. */
    if (!w->ops->record_create(w->session, key, text, &existed, w->deadline_us, error))
        return FALSE;
    if (!cause)
        return fail_came_back(f, error);
    g_propagate_error(error, g_steal_pointer(&cause));
    return FALSE;
}

static gboolean drop_incomplete(Work *w, const AuditFinding *f, GError **error)
{
    g_autoptr(VolumeRecord) record = NULL;
    g_autoptr(BackendVolume) volume = NULL;
    if (!work_find_record(w, &record, error) || !work_find_volume(w, &volume, error))
        return FALSE;
    if (!record)
        return TRUE;
    if (record->moved) {
        g_autoptr(VolumeId) moved = remove_and_follow(w, record, error);
        return moved != NULL;
    }
    if (volume && (!volume->incomplete || volume->copying))
        return fail_came_back(f, error);
    return remove_volume(w, error) && copy_clean(w, record, error) &&
           moved_forget(w, record, error) && drop_record(w, f, error);
}

static gboolean finish_copy(Work *w, GError **error)
{
    g_autoptr(VolumeRecord) record = NULL;
    g_autoptr(BackendVolume) volume = NULL;
    if (!work_look(w, &record, &volume, error))
        return FALSE;
    if (volume->bytes < record->bytes &&
        !w->ops->volume_resize(w->session, w->id, record->bytes, w->deadline_us, error))
        return FALSE;
    return copy_clean(w, record, error);
}

/*
 * Removes a record whose volume is missing, with the steps of DeleteVolume, because half a volume
 * may still take the name. A shallow volume releases its snapshot.
 */
static gboolean drop_volume_record(Work *w, const AuditFinding *f, GError **error)
{
    g_autoptr(VolumeRecord) record = NULL;
    g_autoptr(GError) cause = NULL;
    if (!work_find_record(w, &record, error))
        return FALSE;
    if (!record)
        return TRUE;
    if (record->backing)
        return shallow_release(w, record, error) && drop_record(w, f, error);
    if (is_there(w, f, &cause))
        return fail_came_back(f, error);
    if (cause) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    return remove_volume(w, error) && copy_clean(w, record, error) &&
           moved_forget(w, record, error) && drop_record(w, f, error);
}

static gboolean fix_finding(Work *w, const AuditFinding *f, GError **error)
{
    switch (f->kind) {
    case AUDIT_RECORD_WITHOUT_VOLUME:
        return drop_volume_record(w, f, error);
    case AUDIT_RECORD_WITHOUT_SNAPSHOT:
        return drop_record(w, f, error);
    case AUDIT_VOLUME_INCOMPLETE:
    case AUDIT_COPY_FAILED:
        return drop_incomplete(w, f, error);
    case AUDIT_COPY_UNFINISHED:
        return finish_copy(w, error);
    case AUDIT_COPY_SNAPSHOT:
    case AUDIT_SNAPSHOT_WITHOUT_RECORD:
        return w->ops->snapshot_remove(w->session, w->id, f->snapshot, w->deadline_us, error);
    case AUDIT_VOLUME_WITHOUT_RECORD:
        return w->ops->volume_remove(w->session, w->id, FALSE, w->deadline_us, error);
    case AUDIT_GROUP_UNFINISHED:
        return group_remove_unfinished(w, error);
    case AUDIT_LEFTOVER:
        return w->ops->leftover_remove(w->session, w->id->name, w->deadline_us, error);
    case AUDIT_RECORD_DAMAGED:
        break;
    }
    g_assert_not_reached();
}

/* Whether it may be fixed in this way. */
static gboolean check_allowed(const AuditFinding *f, gint64 min_age_seconds, gboolean named,
                              GError **error)
{
    const AuditText *text = audit_text(f->kind);
    gint64 age = g_get_real_time() / G_USEC_PER_SEC - f->created;
    const char *why = NULL;
    if (text->fix == AUDIT_FIX_BY_HAND)
        why = "it can only be fixed by hand";
    else if (text->fix == AUDIT_FIX_BY_NAME && !named)
        why = "it may hold data: name it with --remove";
    else if (text->fix == AUDIT_FIX_SAFE && f->created && age < min_age_seconds)
        why = "it is young, a call may be under way; see --min-age";
    if (why)
        hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION, "%s", why);
    return !why;
}

gboolean provision_repair(const ProvisionTarget *at, const AuditFinding *f, gint64 min_age_seconds,
                          gboolean named, GError **error)
{
    work_auto Work w = {0};
    if (!check_allowed(f, min_age_seconds, named, error) || !work_open(&w, at, error))
        return FALSE;
    return fix_finding(&w, f, error);
}
