/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lookups of ceph-csi's volumes and snapshots. ceph-csi's journal takes the role of our records: a
 * handle leads to an entry, and the entry to the image, subvolume or snapshot. Deleting them is in
 * remove.c.
 */
#include <string.h>
#include "driver/provision/internal.h"

/* ceph-csi's names are a prefix and the UUID of the handle. Another name is of other data, which a
 * tenant that may write to the journal wants to have read or deleted. */
static gboolean is_name_of(const char *name, const char *handle)
{
    for (const char *c = name; *c; c++) {
        if (*c == '/' || *c == '@' || g_ascii_iscntrl(*c))
            return FALSE;
    }
    return strlen(handle) > ADOPTED_UUID_LENGTH &&
           g_str_has_suffix(name, handle + strlen(handle) - ADOPTED_UUID_LENGTH);
}

gboolean adopted_find(Work *w, JournalKind kind, const char *handle, JournalEntry **entry,
                      GError **error)
{
    *entry = NULL;
    if (!w->ops->journal_find)
        return TRUE;
    if (!w->ops->journal_find(w->session, kind, handle, entry, w->deadline_us, error))
        return FALSE;
    if (!*entry || is_name_of((*entry)->name, handle))
        return TRUE;
    hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                "ceph-csi's journal leads from %s to \"%.100s\", which is not its name: ceph-csi's "
                "names end with the last %d characters of the handle; see who has changed the "
                "journal, and correct csi.imagename there",
                handle, (*entry)->name, ADOPTED_UUID_LENGTH);
    g_clear_pointer(entry, journal_entry_free);
    return FALSE;
}

/* The handle of the volume or snapshot `name`, which is at the location of `handle`; NULL when the
 * name does not end with a UUID. */
static char *handle_beside(const char *handle, const char *name)
{
    gsize length = name ? strlen(name) : 0;
    if (length < ADOPTED_UUID_LENGTH)
        return NULL;
    g_autofree char *start = g_strndup(handle, strlen(handle) - ADOPTED_UUID_LENGTH);
    char *beside = g_strconcat(start, name + length - ADOPTED_UUID_LENGTH, NULL);
    g_autoptr(AdoptedId) valid = adopted_id_decode(beside);
    if (!valid)
        g_clear_pointer(&beside, g_free);
    return beside;
}

gboolean adopted_keeps_snapshot(Work *w, const char *snapshot, gboolean *keeps, GError **error)
{
    g_autofree char *handle = handle_beside(w->id->handle, snapshot);
    g_autoptr(JournalEntry) entry = NULL;
    if (handle && !adopted_find(w, JOURNAL_SNAPSHOT, handle, &entry, error))
        return FALSE;
    *keeps = entry && g_strcmp0(entry->source, w->id->name) == 0;
    return TRUE;
}

/* ceph-csi's snapshot of an image is an image with a snapshot, both of its name. */
VolumeId adopted_snapshot_data(const VolumeId *snapshot, const JournalEntry *entry)
{
    VolumeId data = *snapshot;
    data.name = snapshot->type == VOLUME_RBD ? entry->name : entry->source;
    return data;
}

static SnapshotRecord *snapshot_record_of(const VolumeId *snapshot, const JournalEntry *entry,
                                          const BackendVolume *volume)
{
    const VolumeId data = adopted_snapshot_data(snapshot, entry);
    SnapshotRecord *record = g_new0(SnapshotRecord, 1);
    record->request_name = g_strdup(entry->request_name ? entry->request_name : entry->name);
    record->source_group = g_strdup(data.group ? data.group : "");
    record->source_name = g_strdup(data.name);
    record->source_handle = handle_beside(snapshot->handle, entry->source);
    record->bytes = volume ? volume->bytes : 0;
    record->created = volume ? volume->created : 0;
    return record;
}

static gboolean find_adopted_snapshot(Work *w, const VolumeId *snapshot, SnapshotRecord **record,
                                      GError **error)
{
    g_autoptr(JournalEntry) entry = NULL;
    g_autoptr(BackendVolume) volume = NULL;
    *record = NULL;
    if (!adopted_find(w, JOURNAL_SNAPSHOT, snapshot->handle, &entry, error))
        return FALSE;
    if (!entry || !entry->source)
        return TRUE;
    if (entry->encrypted)
        return hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                           "snapshot %s of ceph-csi is encrypted, which this driver cannot read: "
                           "restore it by ceph-csi",
                           entry->name);
    VolumeId data = adopted_snapshot_data(snapshot, entry);
    Work of = work_for(w, &data);
    if (!work_find_volume(&of, &volume, error))
        return FALSE;
    *record = snapshot_record_of(snapshot, entry, volume);
    return TRUE;
}

gboolean provision_adopted_known(const ProvisionTarget *at, JournalKind kind, char **name,
                                 GError **error)
{
    work_auto Work w = {0};
    g_autoptr(GError) cause = NULL;
    g_autoptr(JournalEntry) entry = NULL;
    *name = NULL;
    gboolean found =
        work_open(&w, at, &cause) && adopted_find(&w, kind, at->id->handle, &entry, &cause);
    if (found && entry)
        *name = g_strdup(entry->name);
    /* A user of images may have no right to the journal of a file system with the pool's number. */
    if (found || g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_PERMISSION_DENIED))
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&cause));
    return FALSE;
}

gboolean adopted_or_own_snapshot(Work *w, const VolumeId *snapshot, SnapshotRecord **record,
                                 GError **error)
{
    return snapshot->handle ? find_adopted_snapshot(w, snapshot, record, error)
                            : work_find_snapshot(w, snapshot->name, record, error);
}
