/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Provisioning over any backend, repeatable after a crash at any step:
 *
 *     create   record, then volume      a record without a volume: the next create finishes it
 *     delete   volume, then record      the same state: the next delete finishes it
 *     shallow  record, a hold on the snapshot's record; deleting: the hold away, record
 *     copy     record, (a snapshot of the source volume,) the copy, its size, (the snapshot away)
 *
 * A volume without a record was made by someone else: it is neither adopted nor deleted. The
 * caller holds the lock of the volume's name (service/locks.h).
 */
#ifndef HEARTH_DRIVER_PROVISION_PROVISION_H
#define HEARTH_DRIVER_PROVISION_PROVISION_H

#include "driver/backend/backend.h"
#include "driver/volume/group_record.h"
#include "driver/volume/record.h"
#include "driver/volume/snapshot_record.h"

typedef struct ProvisionRequest {
    const VolumeId *id;
    const char *name;
    const VolumeParams *params;
    CapacityRange range;
    /* What the volume starts as: one of them, at a place that check_reach() allows, or none; and
     * its ID as text. */
    const VolumeId *from_snapshot, *from_volume;
    const char *source;
    const char *source_at; /* the ID we would give it, when it is ceph-csi's; else NULL */
    /* It shows the snapshot, or the dataset of its parameters, and has no bytes of its own, to be
     * read only. */
    gboolean backing_snapshot;
    const json_t *changes; /* mutable parameters (volume/mutable.h); NULL: none */
} ProvisionRequest;

/*
 * A session is opened for each. On success *record and *volume are the caller's.
 * ALREADY_EXISTS: the name is taken by another request or by a volume of someone else.
 * NOT_FOUND: the source, or the dataset, is not there. OUT_OF_RANGE: the range does not hold the
 * source. ABORTED: it is being copied; ask again. A copy that failed is an error, and nothing of it
 * is left.
 */
gboolean provision_create(const Backend *backend, const ProvisionRequest *request,
                          const Secrets *secrets, gint64 deadline_us, VolumeRecord **record,
                          BackendVolume **volume, GError **error);

/*
 * What is not there is deleted already. Snapshots of ours outlive their volume.
 * FAILED_PRECONDITION: a volume without a record, or snapshots of someone else. One of ceph-csi
 * goes with what its journal has of it; FAILED_PRECONDITION for what only ceph-csi can delete.
 */
gboolean provision_delete(const Backend *backend, const VolumeId *id, const Secrets *secrets,
                          gint64 deadline_us, GError **error);

/* NOT_FOUND unless both the record and the complete volume are there. */
gboolean provision_look(const Backend *backend, const VolumeId *id, const Secrets *secrets,
                        gint64 deadline_us, VolumeRecord **record, BackendVolume **volume,
                        GError **error);

/* Whether there is a record of the volume's name, of a volume that is there or not. */
gboolean provision_recorded(const Backend *backend, const VolumeId *id, const Secrets *secrets,
                            gint64 deadline_us, gboolean *recorded, GError **error);

/* What there is of a volume that has a record: *volume is NULL when what it stands for is gone.
 * NOT_FOUND: there is no record, or the volume is still being made. */
gboolean provision_inspect(const Backend *backend, const VolumeId *id, const Secrets *secrets,
                           gint64 deadline_us, VolumeRecord **record, BackendVolume **volume,
                           GError **error);

/*
 * Makes the volume as large as the range asks; *bytes is its size then. A volume that is large
 * enough stays as it is. OUT_OF_RANGE: it is larger than the range allows. NOT_FOUND.
 */
gboolean provision_expand(const Backend *backend, const VolumeId *id, CapacityRange range,
                          const Secrets *secrets, gint64 deadline_us, gint64 *bytes,
                          GError **error);

/* Keeps texts with a volume, or a snapshot of it unless that is NULL, as volume_describe() does, in
 * a few seconds. What fails is told in the log. */
void provision_describe(const Backend *backend, const VolumeId *id, const char *snapshot,
                        const json_t *texts, const Secrets *secrets, gint64 deadline_us);

/* Sets mutable parameters. NOT_FOUND. INVALID_ARGUMENT: volumes of the type have none. */
gboolean provision_modify(const Backend *backend, const VolumeId *id, const json_t *changes,
                          const Secrets *secrets, gint64 deadline_us, GError **error);
/* Those that are set, a new reference. For nodes: it takes only reading. NOT_FOUND. */
json_t *provision_read_mutable(const Backend *backend, const VolumeId *id, const Secrets *secrets,
                               gint64 deadline_us, GError **error);

/* One volume of a list; `id` is whole. */
typedef struct ProvisionEntry {
    VolumeId *id;
    VolumeRecord *record;
    BackendVolume *volume;
} ProvisionEntry;

void provision_entry_free(gpointer entry);

/*
 * The complete volumes of a place in the order of their names, from the first after `after` (NULL:
 * from the start), `max` at most; ProvisionEntry*, owned by the array. *more: there are others.
 */
GPtrArray *provision_list(const Backend *backend, const VolumeId *place, const char *after,
                          guint max, const Secrets *secrets, gint64 deadline_us, gboolean *more,
                          GError **error);

/*
 * Snapshots. `snapshot` is a snapshot's ID (volume/id.h), at the place of its volume. Creation:
 * record, then snapshot; deletion: snapshot, then record; each rolls forward as a volume's.
 * ALREADY_EXISTS: the name is another request's, another volume's or someone else's snapshot.
 * NOT_FOUND: the volume is not there.
 */
gboolean provision_snapshot_create(const Backend *backend, const VolumeId *snapshot,
                                   const char *request_name, const VolumeId *source,
                                   const Secrets *secrets, gint64 deadline_us,
                                   SnapshotRecord **record, GError **error);
/* What is not there is deleted already. FAILED_PRECONDITION: it is being copied from, or volumes
 * show it. INVALID_ARGUMENT: it is of a group snapshot, and goes only with it. */
gboolean provision_snapshot_delete(const Backend *backend, const VolumeId *snapshot,
                                   const Secrets *secrets, gint64 deadline_us, GError **error);
/* NOT_FOUND. */
gboolean provision_snapshot_look(const Backend *backend, const VolumeId *snapshot,
                                 const Secrets *secrets, gint64 deadline_us,
                                 SnapshotRecord **record, GError **error);

/* Whether ceph-csi's journal knows the handle of an adopted ID: *name is what it leads to, the
 * caller's, or NULL. */
gboolean provision_adopted_known(const Backend *backend, const VolumeId *id, JournalKind kind,
                                 const Secrets *secrets, gint64 deadline_us, char **name,
                                 GError **error);

typedef struct ProvisionSnapshot {
    VolumeId *id;
    SnapshotRecord *record;
} ProvisionSnapshot;
void provision_snapshot_free(gpointer snapshot);

/* As provision_list(); of one volume unless `source` is NULL. ProvisionSnapshot*. */
GPtrArray *provision_snapshot_list(const Backend *backend, const VolumeId *place,
                                   const VolumeId *source, const char *after, guint max,
                                   const Secrets *secrets, gint64 deadline_us, gboolean *more,
                                   GError **error);

/* The volume a snapshot is of; the caller's. */
VolumeId *provision_snapshot_source(const VolumeId *snapshot, const SnapshotRecord *record);

/*
 * Group snapshots: one moment of several volumes of a place. `group` is a group snapshot's ID,
 * `sources` VolumeId*. Creation: the group's record, the members' records, the snapshots at once;
 * deletion in reverse. A retry that finds some of the snapshots, which were then not of one moment,
 * removes them first. ALREADY_EXISTS: the name is another request's or of other volumes.
 * FAILED_PRECONDITION: these volumes have no common moment. NOT_FOUND: one is not there.
 */
gboolean provision_group_create(const Backend *backend, const VolumeId *group,
                                const char *request_name, const GPtrArray *sources,
                                const Secrets *secrets, gint64 deadline_us, GroupRecord **record,
                                GError **error);
/* What is not there is deleted already. `snapshots`: names the caller takes for the members, or
 * NULL; INVALID_ARGUMENT when they are not. FAILED_PRECONDITION: volumes show one of them. */
gboolean provision_group_delete(const Backend *backend, const VolumeId *group,
                                const GPtrArray *snapshots, const Secrets *secrets,
                                gint64 deadline_us, GError **error);
/* NOT_FOUND unless all of it is there. */
gboolean provision_group_look(const Backend *backend, const VolumeId *group,
                              const GPtrArray *snapshots, const Secrets *secrets,
                              gint64 deadline_us, GroupRecord **record, GError **error);

/* Bytes that new data of such volumes can take at the place. */
gboolean provision_capacity(const Backend *backend, const VolumeId *place, const char *pool,
                            const Secrets *secrets, gint64 deadline_us, gint64 *available,
                            GError **error);

#endif
