/* SPDX-License-Identifier: Apache-2.0 */
/* The base of provisioning: a session that works on one volume, and lookups (work.c). */
#ifndef HEARTH_DRIVER_PROVISION_WORK_H
#define HEARTH_DRIVER_PROVISION_WORK_H

#include "driver/provision/provision.h"

/* A session with its backend, volume and deadline: what each step needs. */
typedef struct Work {
    const BackendOps *ops;
    void *session;
    const VolumeId *id; /* of the volume, or only the location */
    gint64 deadline_us;
    gboolean borrowed; /* another Work owns the session and closes it */
} Work;

gboolean work_open(Work *work, const ProvisionTarget *at, GError **error);
/*
 * Opens the location of `id`, which is in the same cluster. When that is w's location too, it is
 * w's own session, so close *other before w. NOT_FOUND: there is no such location.
 */
gboolean work_open_beside(const Work *w, const VolumeId *id, Work *other, GError **error);
void work_close(Work *work);
#define work_auto __attribute__((cleanup(work_close)))
/* The same session for another volume of its location. Not to be closed. */
Work work_for(const Work *w, const VolumeId *id);

gboolean work_is_not_found(const GError *error);
/* Whether a record's group ("" for none) is that of the ID. */
gboolean work_in_group(const char *group, const VolumeId *id);

/*
 * Lookups: FALSE only for failures; the result is NULL when there is none.
 */
/* The text of any record. */
gboolean work_read_record(Work *w, const char *key, char **text, gsize *length, GError **error);
gboolean work_find_record(Work *w, VolumeRecord **record, GError **error);
gboolean work_find_volume(Work *w, BackendVolume **volume, GError **error);
/* The volume of that record: a shallow one is there when its snapshot is. */
gboolean work_find_recorded(Work *w, const VolumeRecord *record, BackendVolume **volume,
                            GError **error);
/* `name` is a snapshot's. */
gboolean work_find_snapshot(Work *w, const char *name, SnapshotRecord **record, GError **error);
gboolean work_snapshot_there(Work *w, const VolumeId *source, const char *name, gboolean *there,
                             GError **error);

/* Both the record and the complete volume, in the ID's group; else NOT_FOUND. */
gboolean work_look(Work *w, VolumeRecord **record, BackendVolume **volume, GError **error);

gboolean work_remove_record(Work *w, GError **error);
gboolean work_remove_snapshot_record(Work *w, const char *name, GError **error);

/* The volume whose snapshot a shallow volume shows. Its texts are borrowed. */
VolumeId work_backing_source(const Work *w, const VolumeBacking *backing);
/* Whether a record is of a snapshot of that volume. */
gboolean work_is_snapshot_of(const SnapshotRecord *record, const VolumeId *source);
/* The source of a record's volume, as an ID to act upon; the caller's. NULL: the volume starts
 * empty, or from a snapshot. */
VolumeId *work_source_volume(const VolumeRecord *record);

/* Sorts a GPtrArray of strings. */
gint work_compare_names(gconstpointer a, gconstpointer b);
/*
 * Whether this error, met at one element, fails the whole list. An element that is half made or
 * damaged is left out instead, because it must not hide the others.
 */
gboolean work_spoils_list(const GError *error);

#endif
