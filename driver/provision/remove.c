/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deletion. The volume goes before its record, and for ceph-csi's before its entry in the journal,
 * so that a deletion that was cut short is found again by the same call. Snapshots of ours outlive
 * their volume; a snapshot that this driver has not made stops the deletion, and so does a volume
 * without a record. Of ceph-csi's, what ceph-csi has to undo elsewhere is refused: keys of
 * encrypted volumes, and the references of volumes that show a snapshot.
 */
#include <string.h>
#include "driver/provision/internal.h"

/* Keeps a snapshot that a copy is being made through, and removes one that a copy has left. FALSE
 * only for failures. */
static gboolean settle_copy_snapshot(Work *w, const char *snapshot, const VolumeId *target,
                                     GError **error)
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

/* Whether each snapshot of the volume is ours, or ceph-csi's, and so may outlive it.
 * FAILED_PRECONDITION names one that is not. */
static gboolean check_snapshots_kept(Work *w, GError **error)
{
    g_autoptr(GPtrArray) names = w->ops->snapshot_list(w->session, w->id, w->deadline_us, error);
    if (!names)
        return FALSE;
    for (guint i = 0; i < names->len; i++) {
        const char *name = names->pdata[i];
        g_autoptr(VolumeId) target = copy_snapshot_target(w->id, name);
        if (target) {
            if (!settle_copy_snapshot(w, name, target, error))
                return FALSE;
            continue;
        }
        g_autoptr(SnapshotRecord) record = NULL;
        if (!work_find_snapshot(w, name, &record, error))
            return FALSE;
        gboolean keeps = record && work_is_snapshot_of(record, w->id);
        if (!record && w->id->handle && !adopted_keeps_snapshot(w, name, &keeps, error))
            return FALSE;
        if (!keeps)
            return hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                               "volume %s has a snapshot %s that this driver has not made; remove "
                               "it first",
                               w->id->name, name);
    }
    return TRUE;
}

gboolean remove_volume(Work *w, GError **error)
{
    g_autoptr(GError) cause = NULL;
    if (w->ops->volume_remove(w->session, w->id, FALSE, w->deadline_us, &cause))
        return TRUE;
    if (!w->ops->snapshot_list ||
        !g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION)) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    return check_snapshots_kept(w, error) &&
           w->ops->volume_remove(w->session, w->id, TRUE, w->deadline_us, error);
}

VolumeId *remove_and_follow(Work *w, const VolumeRecord *record, GError **error)
{
    if (!remove_volume(w, error) || !copy_clean(w, record, error))
        return NULL;
    VolumeId *id = volume_id_copy(w->id);
    g_free(id->name);
    id->name = g_strdup(record->moved);
    return id;
}

static gboolean check_csi_may_lose(const JournalEntry *entry, const char *what, GError **error)
{
    const char *why = NULL;
    if (entry->encrypted)
        why = "is encrypted, and its key in the KMS goes with it";
    else if (entry->shows_snapshot)
        why = "shows a snapshot, which ceph-csi counts references to";
    else if (entry->shown)
        why = "is shown by volumes of ceph-csi, or was, which it counts";
    return !why ||
           hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                       "%s %s of ceph-csi %s: delete it by ceph-csi", what, entry->name, why);
}

/* A volume that the journal does not name: there must be none. */
static gboolean check_gone(Work *w, GError **error)
{
    g_autoptr(BackendVolume) foreign = NULL;
    if (!work_find_volume(w, &foreign, error))
        return FALSE;
    return !foreign ||
           hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                       "volume %s (%s) is not in ceph-csi's journal, so it is not known whose it "
                       "is; remove it by hand if its data is not needed",
                       w->id->name, foreign->path);
}

static gboolean remove_adopted_volume(Work *w, GError **error)
{
    g_autoptr(JournalEntry) entry = NULL;
    if (!adopted_find(w, JOURNAL_VOLUME, w->id->handle, &entry, error))
        return FALSE;
    if (!entry)
        return check_gone(w, error);
    if (!check_csi_may_lose(entry, "volume", error))
        return FALSE;
    VolumeId id = *w->id;
    Work of = work_for(w, &id);
    id.name = entry->name;
    if (!remove_volume(&of, error))
        return FALSE;
    g_autofree char *temporary = g_strconcat(entry->name, ADOPTED_TEMPORARY, NULL);
    id.name = temporary;
    if (id.type == VOLUME_RBD &&
        !w->ops->volume_remove(w->session, &id, FALSE, w->deadline_us, error))
        return FALSE;
    return w->ops->journal_forget(w->session, JOURNAL_VOLUME, w->id->handle, entry, w->deadline_us,
                                  error);
}

gboolean remove_adopted_snapshot(Work *w, const VolumeId *snapshot, GError **error)
{
    g_autoptr(JournalEntry) entry = NULL;
    if (!adopted_find(w, JOURNAL_SNAPSHOT, snapshot->handle, &entry, error))
        return FALSE;
    if (!entry)
        return TRUE; /* only the entry says which volume it is of */
    if (!check_csi_may_lose(entry, "snapshot", error))
        return FALSE;
    VolumeId data = adopted_snapshot_data(snapshot, entry);
    gint64 deadline_us = w->deadline_us;
    if (data.name && !w->ops->snapshot_remove(w->session, &data, entry->name, deadline_us, error))
        return FALSE;
    if (data.type == VOLUME_RBD &&
        !w->ops->volume_remove(w->session, &data, FALSE, deadline_us, error))
        return FALSE;
    return w->ops->journal_forget(w->session, JOURNAL_SNAPSHOT, snapshot->handle, entry,
                                  deadline_us, error);
}

/* A volume without a record was made by someone else: there must be none. */
static gboolean check_no_foreign(Work *w, GError **error)
{
    g_autoptr(BackendVolume) foreign = NULL;
    if (!work_find_volume(w, &foreign, error))
        return FALSE;
    return !foreign ||
           hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                       "volume %s (%s) has no record of this driver, which therefore does not "
                       "delete it; remove it by hand if its data is not needed",
                       w->id->name, foreign->path);
}

/* *moved: where the volume is that has given up this name, for the caller; NULL: there is none. */
static gboolean follow(Work *w, const VolumeRecord *record, VolumeId **moved, GError **error)
{
    g_autoptr(VolumeId) id = remove_and_follow(w, record, error);
    g_autoptr(VolumeRecord) there = NULL;
    if (!id)
        return FALSE;
    Work of = work_for(w, id);
    if (!work_find_record(&of, &there, error))
        return FALSE;
    *moved = there ? g_steal_pointer(&id) : NULL;
    return TRUE;
}

gboolean provision_delete(const ProvisionTarget *at, GError **error)
{
    work_auto Work w = {0};
    g_autoptr(VolumeRecord) record = NULL;
    if (!work_open(&w, at, error) || !work_find_record(&w, &record, error))
        return FALSE;
    /* A record of another group is of another volume, which has this one's name. */
    if (record && !work_in_group(record->group, at->id))
        g_clear_pointer(&record, volume_record_free);
    if (at->id->adopted)
        return remove_adopted_volume(&w, error);
    if (!record)
        return check_no_foreign(&w, error);
    if (record->moved) {
        g_autoptr(VolumeId) moved = NULL;
        if (!follow(&w, record, &moved, error))
            return FALSE;
        const ProvisionTarget there = {at->backend, moved, at->secrets, at->deadline_us};
        return moved ? provision_delete(&there, error) : work_remove_record(&w, error);
    }
    if (record->backing)
        return shallow_release(&w, record, error) && work_remove_record(&w, error);
    return remove_volume(&w, error) && copy_clean(&w, record, error) &&
           moved_forget(&w, record, error) && work_remove_record(&w, error);
}
