/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies that begin again under another name. Ceph removes a subvolume by its name, whatever has
 * that name by then. A controller that is frozen just before it removes a copy that failed, and
 * goes on when another has made the volume, would remove that. So a name at which a copy has failed
 * is never used again: the record under the request's name says where the volume is now ("moved"),
 * and is replaced by compare-and-swap. The volume has a record under its own name, too, as all
 * volumes have, with the request's name ("first").
 */
#include <string.h>
#include "driver/provision/internal.h"

/* "-01234567" */
#define SUFFIX_LENGTH 9

/* The end of the name is left out where the ID has no room for it. */
static char *next_name(const VolumeId *id, const char *first)
{
    gsize room = volume_id_room(id);
    int length = (int)MIN(strlen(first), room > SUFFIX_LENGTH ? room - SUFFIX_LENGTH : 1);
    return g_strdup_printf("%.*s-%08x", length, first, g_random_int());
}

gboolean moved_fail(const char *name, GError **error)
{
    return hearth_fail(error, HEARTH_ERROR_ABORTED,
                       "volume %s is being copied by another controller; try again", name);
}

/* The record of the request's name and its text, the caller's; NULL when it is gone. */
static gboolean find_first(Work *w, const char *first, VolumeRecord **record, char **text,
                           GError **error)
{
    gsize length;
    g_autofree char *key = volume_record_key(first);
    *record = NULL;
    if (!work_read_record(w, key, text, &length, error))
        return FALSE;
    if (!*text)
        return TRUE;
    *record = volume_record_decode(first, *text, length, error);
    return *record != NULL;
}

/* Whether the record of the request's name leads to the volume of `w`; NULL: there is none. */
static gboolean leads_here(const Work *w, const VolumeRecord *record)
{
    const char *name = record && record->moved ? record->moved : record ? record->name : NULL;
    return g_strcmp0(name, w->id->name) == 0;
}

static gboolean replace(Work *w, const RecordChange *change, gboolean *same, GError **error)
{
    g_autoptr(GError) cause = NULL;
    *same = FALSE;
    if (w->ops->record_replace(w->session, change, same, w->deadline_us, &cause) ||
        work_is_not_found(cause))
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&cause));
    return FALSE;
}

gboolean moved_begin(Work *w, const VolumeRecord *record, GError **error)
{
    const char *first = record->first ? record->first : w->id->name;
    g_autoptr(VolumeRecord) now = NULL;
    g_autofree char *text = NULL;
    gboolean same;
    if (!find_first(w, first, &now, &text, error))
        return FALSE;
    if (!leads_here(w, now))
        return moved_fail(first, error);
    g_autofree char *key = volume_record_key(first);
    g_autofree char *name = next_name(w->id, first);
    g_autofree char *changed = volume_record_move(first, text, name, error);
    const RecordChange change = {.name = key, .expected = text, .text = changed};
    return changed && replace(w, &change, &same, error) && (same || moved_fail(first, error));
}

gboolean moved_is_here(Work *w, const VolumeRecord *record, gboolean *here, GError **error)
{
    g_autoptr(VolumeRecord) now = NULL;
    g_autofree char *text = NULL;
    *here = TRUE;
    if (!w->ops->removal_may_be_late)
        return TRUE;
    if (!find_first(w, record->first ? record->first : w->id->name, &now, &text, error))
        return FALSE;
    *here = leads_here(w, now);
    return TRUE;
}

gboolean moved_forget(Work *w, const VolumeRecord *record, GError **error)
{
    if (!record->first)
        return TRUE;
    g_autoptr(VolumeRecord) now = NULL;
    g_autofree char *text = NULL;
    gboolean same;
    if (!find_first(w, record->first, &now, &text, error))
        return FALSE;
    if (!leads_here(w, now))
        return TRUE;
    g_autofree char *key = volume_record_key(record->first);
    const RecordChange change = {.name = key, .expected = text};
    return replace(w, &change, &same, error);
}
