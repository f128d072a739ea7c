/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of provisioning share: a session at work on one volume, and how it looks. */
#ifndef HEARTH_DRIVER_PROVISION_INTERNAL_H
#define HEARTH_DRIVER_PROVISION_INTERNAL_H

#include "driver/provision/provision.h"

/* The steps are short with the session, its backend and the deadline at hand. */
typedef struct Work {
    const BackendOps *ops;
    void *session;
    const VolumeId *id; /* of the volume, or only the place */
    gint64 deadline_us;
    gboolean borrowed; /* the session is another's, who closes it */
} Work;

gboolean work_open(Work *work, const Backend *backend, const VolumeId *id, const Secrets *secrets,
                   gint64 deadline_us, GError **error);
/* The same at the place of `id`, which is of the same cluster; in w's own session when that is its
 * place too, so that *other is closed before w. NOT_FOUND: there is no such place. */
gboolean work_open_beside(const Work *w, const VolumeId *id, Work *other, GError **error);
void work_close(Work *work);
#define work_auto __attribute__((cleanup(work_close)))

gboolean work_is_not_found(const GError *error);

/* adopted.c: what a record would say of a volume of ceph-csi. */
VolumeRecord *adopted_record(const VolumeId *id);
/* As provision_delete() and work_find_snapshot() and provision_snapshot_delete(), of ceph-csi's. */
gboolean adopted_delete(Work *w, GError **error);
gboolean adopted_find_snapshot(Work *w, const VolumeId *snapshot, SnapshotRecord **record,
                               GError **error);
gboolean adopted_delete_snapshot(Work *w, const VolumeId *snapshot, GError **error);
/* Whether a snapshot of the volume is ceph-csi's, and so may outlive it. FALSE only for failures.
 */
gboolean adopted_keeps_snapshot(Work *w, const char *snapshot, gboolean *keeps, GError **error);

/* FALSE only for failures; *record is NULL when there is none. */
gboolean work_find_record(Work *w, VolumeRecord **record, GError **error);
/* FALSE only for failures; *volume is NULL when there is none. */
gboolean work_find_volume(Work *w, BackendVolume **volume, GError **error);
/* As work_find_volume(), of a volume of that record: a shallow one is there when its snapshot is.
 */
gboolean work_find_recorded(Work *w, const VolumeRecord *record, BackendVolume **volume,
                            GError **error);
/* Both, complete and of one group; else NOT_FOUND. */
gboolean work_look(Work *w, VolumeRecord **record, BackendVolume **volume, GError **error);

/* Removes the volume; snapshots of ours stay, and outlive it. What is not there is fine. */
gboolean work_remove_volume(Work *w, GError **error);

/* FALSE only for failures; *record is NULL when there is none. `name` is a snapshot's. */
gboolean work_find_snapshot(Work *w, const char *name, SnapshotRecord **record, GError **error);

/* The same of a snapshot's ID, which may be ceph-csi's. */
gboolean work_find_any_snapshot(Work *w, const VolumeId *snapshot, SnapshotRecord **record,
                                GError **error);
/* The volume a record's volume starts as, to act upon; NULL: none, or a snapshot. The caller's. */
VolumeId *work_source_volume(const VolumeRecord *record);

/* snapshot.c. FALSE only for failures. */
gboolean work_snapshot_there(Work *w, const VolumeId *source, const char *name, gboolean *there,
                             GError **error);
gboolean work_remove_snapshot_record(Work *w, const char *name, GError **error);

/* copy.c: the least size of the request's volume. NOT_FOUND when the source is not there.
 */
gboolean copy_source_size(Work *w, const ProvisionRequest *request, gint64 *bytes, GError **error);
/*
 * Brings the copy on its way and waits a little for it. TRUE: *volume is complete and as large as
 * the record says. ABORTED: not yet. When it failed, everything but the record is removed and
 * *spent is TRUE.
 */
gboolean copy_finish(Work *w, const ProvisionRequest *request, const VolumeRecord *record,
                     BackendVolume **volume, gboolean *spent, GError **error);
/* Removes the snapshot a copy of a volume is made through. */
gboolean copy_clean(Work *w, const VolumeRecord *record, GError **error);

/* snapshot.c: whether each snapshot that a volume has is ours and may outlive it.
 * FAILED_PRECONDITION names one that is someone else's. What copies left is removed. */
gboolean snapshot_check_kept(Work *w, GError **error);

/*
 * shallow.c: where the snapshot of the request is, to be recorded. *bytes is the size of
 * the volume; for a dataset that of its subvolume when the request asks for none. NOT_FOUND.
 */
VolumeBacking *shallow_backing(Work *w, const ProvisionRequest *request, gint64 *bytes,
                               GError **error);
/*
 * Holds the snapshot for the volume. When it is gone there will never be a volume: *spent is TRUE.
 * ABORTED: it is being deleted.
 */
gboolean shallow_finish(Work *w, const VolumeRecord *record, BackendVolume **volume,
                        gboolean *spent, GError **error);
gboolean shallow_look(Work *w, const VolumeRecord *record, BackendVolume **volume, GError **error);
/* Lets go of the snapshot; then the record may go. */
gboolean shallow_release(Work *w, const VolumeRecord *record, GError **error);
/* Before a snapshot is removed: FAILED_PRECONDITION names the volumes that show it. After FALSE
 * nothing has changed, but for a crash: then the next deletion goes on. */
gboolean shallow_seal(Work *w, const char *snapshot, GError **error);
void shallow_unseal(Work *w, const char *snapshot);

/* modify.c: whether volumes of the type can have these mutable parameters.
 * INVALID_ARGUMENT. Then: puts the limits in force that the record of a volume of that size says.
 */
gboolean modify_check(const Work *w, const json_t *changes, GError **error);
gboolean modify_limit(Work *w, const VolumeRecord *record, gint64 bytes, GError **error);

/* The name of the snapshot of `source` through which the volume `target` is copied; the caller's.
 */
char *copy_snapshot_name(const VolumeId *source, const VolumeId *target);
/* The target that a snapshot of `source` is for, but for its group; NULL for others. The caller's.
 */
VolumeId *copy_snapshot_target(const VolumeId *source, const char *snapshot);
/* Whether a record is of a copy of that volume. */
gboolean copy_is_of(const VolumeRecord *record, const VolumeId *source);
/* What a copy to another place is answered there is of no concern: that place is gone, or not for
 * this user. */
gboolean copy_is_out_of_reach(const Work *at, const GError *error);

/* Sorts a GPtrArray of strings. */
gint work_compare_names(gconstpointer a, gconstpointer b);
/*
 * Whether a list that misses an element for this reason is none. Something half made or damaged is
 * left out instead: it must not hide the others.
 */
gboolean work_spoils_list(const GError *error);

#endif
