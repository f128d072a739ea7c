/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of provisioning that several of its files use, from the lowest file up. */
#ifndef HEARTH_DRIVER_PROVISION_INTERNAL_H
#define HEARTH_DRIVER_PROVISION_INTERNAL_H

#include "driver/provision/work.h"

/* adopted.c: ceph-csi's volumes and snapshots, found in its journal. */
/* The journal's entry for a handle. FALSE only for failures; *entry is NULL when there is none. */
gboolean adopted_find(Work *w, JournalKind kind, const char *handle, JournalEntry **entry,
                      GError **error);
/* The volume that has the data of such a snapshot. Its texts are borrowed. */
VolumeId adopted_snapshot_data(const VolumeId *snapshot, const JournalEntry *entry);
/* Whether a snapshot of the volume is ceph-csi's, and so may outlive it. FALSE only for failures.
 */
gboolean adopted_keeps_snapshot(Work *w, const char *snapshot, gboolean *keeps, GError **error);
/* As work_find_snapshot(), of a snapshot's ID, which may be ceph-csi's. */
gboolean adopted_or_own_snapshot(Work *w, const VolumeId *snapshot, SnapshotRecord **record,
                                 GError **error);

/* modify.c */
/* Whether volumes of the type can have these mutable parameters. INVALID_ARGUMENT. */
gboolean modify_check(const Work *w, const json_t *changes, GError **error);
/* Puts the limits of a record in force, for a volume of that size. */
gboolean modify_limit(Work *w, const VolumeRecord *record, gint64 bytes, GError **error);

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
/* Ends the hold; then the record may be removed. */
gboolean shallow_release(Work *w, const VolumeRecord *record, GError **error);
/* Before a snapshot is removed: FAILED_PRECONDITION names the volumes that show it. After FALSE
 * nothing has changed, but for a crash: then the next deletion goes on. */
gboolean shallow_seal(Work *w, const char *snapshot, GError **error);
void shallow_unseal(Work *w, const char *snapshot);

/*
 * group.c: whether the group is not known to be taken, or has no snapshot left. *created: when its
 * attempt began. FALSE only for failures.
 */
gboolean group_is_unfinished(Work *w, gboolean *unfinished, gint64 *created, GError **error);
/* Removes such a group. ABORTED: it is another one by now. */
gboolean group_remove_unfinished(Work *w, GError **error);

/* copy.c: the least size of the request's volume. NOT_FOUND when the source is not there. */
gboolean copy_source_size(Work *w, const ProvisionRequest *request, gint64 *bytes, GError **error);
/*
 * Starts or continues the copy and waits a little for it. TRUE: *volume is complete and as large as
 * the record says. ABORTED: not yet. When it failed, everything but the record is removed and
 * *spent is TRUE.
 */
gboolean copy_finish(Work *w, const ProvisionRequest *request, const VolumeRecord *record,
                     BackendVolume **volume, gboolean *spent, GError **error);
/*
 * moved.c: names of copies, where a removal may come late (BackendOps.removal_may_be_late).
 */
/* Gives up the name of a copy that failed: the next attempt has another. Before the copy is
 * removed. ABORTED: another controller has done so. */
gboolean moved_begin(Work *w, const VolumeRecord *record, GError **error);
/* Whether the request's name still leads to this volume. FALSE only for failures. */
gboolean moved_is_here(Work *w, const VolumeRecord *record, gboolean *here, GError **error);
/* The request's name leads nowhere from now on, if it has led to this volume. */
gboolean moved_forget(Work *w, const VolumeRecord *record, GError **error);
/* ABORTED: another controller copies to another name. Always FALSE. */
gboolean moved_fail(const char *name, GError **error);

/* Removes the snapshot a copy of a volume is made through. */
gboolean copy_clean(Work *w, const VolumeRecord *record, GError **error);
/* The name of the snapshot of `source` through which the volume `target` is copied; the caller's.
 */
char *copy_snapshot_name(const VolumeId *source, const VolumeId *target);
/* The target that a snapshot of `source` is for, but for its group; NULL for others. The caller's.
 */
VolumeId *copy_snapshot_target(const VolumeId *source, const char *snapshot);
/* Whether a record is of a copy of that volume. */
gboolean copy_is_of(const VolumeRecord *record, const VolumeId *source);
/* Whether the error of a copy's other location means that the location is gone, or not for this
 * user, so that nothing can be done there. */
gboolean copy_is_out_of_reach(const Work *at, const GError *error);

/* remove.c: removes the volume; snapshots of ours stay, and outlive it. A missing one is fine. */
gboolean remove_volume(Work *w, GError **error);
/* Removes what a copy has left at a name that it has given up, and gives the ID of the volume; the
 * caller's. */
VolumeId *remove_and_follow(Work *w, const VolumeRecord *record, GError **error);
/* As provision_snapshot_delete(), of ceph-csi's. */
gboolean remove_adopted_snapshot(Work *w, const VolumeId *snapshot, GError **error);

#endif
