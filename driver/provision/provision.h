/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Provisioning over any backend, repeatable after a crash at any step:
 *
 *     create   record, then volume      a record without a volume: the next create finishes it
 *     delete   volume, then record      the same state: the next delete finishes it
 *     shallow  record, a hold on the snapshot's record; deleting: release the hold, then the record
 *     copy     record, (a snapshot of the source volume,) the copy, its size, (remove the snapshot)
 *
 * A volume without a record was made by someone else: it is neither adopted nor deleted. The
 * caller holds the lock of the volume's name (Busy, common/busy.h).
 */
#ifndef HEARTH_DRIVER_PROVISION_PROVISION_H
#define HEARTH_DRIVER_PROVISION_PROVISION_H

#include "driver/backend/backend.h"
#include "driver/volume/group_record.h"
#include "driver/volume/record.h"
#include "driver/volume/snapshot_record.h"

/* What a call works on, and with what rights. Borrowed for the call. */
typedef struct ProvisionTarget {
    const Backend *backend;
    const VolumeId *id; /* of a volume, snapshot or group; of a location, the name is not read */
    const Secrets *secrets; /* NULL for a backend without */
    gint64 deadline_us;     /* of g_get_monotonic_time() */
} ProvisionTarget;

typedef struct ProvisionRequest {
    const char *name;
    const VolumeParams *params;
    CapacityRange range;
    /* The content that the volume starts with: one of the two, at a location that check_reach()
     * allows, or none. `source` is its ID as text. */
    const VolumeId *from_snapshot, *from_volume;
    const char *source;
    const char *source_at; /* the ID we would give it, when it is ceph-csi's; else NULL */
    /* The volume shows the snapshot, or the dataset of its parameters. It has no bytes of its own
     * and can only be read. */
    gboolean backing_snapshot;
    const json_t *changes; /* mutable parameters (volume/mutable.h); NULL: none */
} ProvisionRequest;

/*
 * A session is opened for each. On success *record and *volume are the caller's.
 * ALREADY_EXISTS: the name is taken by another request or by a volume of someone else.
 * The volume may have another name than asked for: record->name. NOT_FOUND: the source, or the
 * dataset, is not there. OUT_OF_RANGE: the range does not hold the
 * source. ABORTED: the copy is under way; ask again. A copy that failed is an error, and nothing of
 * it is left.
 */
gboolean provision_create(const ProvisionTarget *at, const ProvisionRequest *request,
                          VolumeRecord **record, BackendVolume **volume, GError **error);

/*
 * A volume that does not exist is deleted already. Snapshots of ours outlive their volume.
 * FAILED_PRECONDITION: a volume without a record, or snapshots of someone else. A volume of
 * ceph-csi is deleted with its entries in the journal; FAILED_PRECONDITION if only ceph-csi can
 * delete it.
 */
gboolean provision_delete(const ProvisionTarget *at, GError **error);

/* NOT_FOUND unless both the record and the complete volume are there. */
gboolean provision_look(const ProvisionTarget *at, VolumeRecord **record, BackendVolume **volume,
                        GError **error);

/* Whether there is a record of the volume's name, whether the volume exists or not. */
gboolean provision_recorded(const ProvisionTarget *at, gboolean *recorded, GError **error);

/* The record of a volume, and the volume: NULL when it is gone from Ceph. NOT_FOUND: there is no
 * record, or the volume is still being made. */
gboolean provision_inspect(const ProvisionTarget *at, VolumeRecord **record, BackendVolume **volume,
                           GError **error);

/*
 * Grows the volume to the size that the range asks for; *bytes is its size then. A volume that is
 * large enough keeps its size. OUT_OF_RANGE: it is larger than the range allows. NOT_FOUND.
 */
gboolean provision_expand(const ProvisionTarget *at, CapacityRange range, gint64 *bytes,
                          GError **error);

/* Stores texts with a volume, or with its snapshot unless that is NULL, by volume_describe(),
 * within a few seconds. A failure is only logged. */
void provision_describe(const ProvisionTarget *at, const char *snapshot, const json_t *texts);

/* Sets mutable parameters. NOT_FOUND. INVALID_ARGUMENT: volumes of the type have none. */
gboolean provision_modify(const ProvisionTarget *at, const json_t *changes, GError **error);
/* The mutable parameters that are set; a new reference. For nodes, whose user may only read.
 * NOT_FOUND. */
json_t *provision_read_mutable(const ProvisionTarget *at, GError **error);

/* One volume of a list; `id` has its group and name. */
typedef struct ProvisionEntry {
    VolumeId *id;
    VolumeRecord *record;
    BackendVolume *volume;
} ProvisionEntry;

void provision_entry_free(gpointer entry);

/*
 * The complete volumes of a location in the order of their names, from the first after `after`
 * (NULL: from the start), `max` at most; ProvisionEntry*, owned by the array. *more: further ones
 * follow.
 */
GPtrArray *provision_list(const ProvisionTarget *location, const char *after, guint max,
                          gboolean *more, GError **error);

/*
 * Snapshots. The target is a snapshot's ID (volume/id.h), at the location of its volume. Creation:
 * record, then snapshot; deletion: snapshot, then record; each rolls forward as a volume's.
 * ALREADY_EXISTS: the name is another request's, another volume's or someone else's snapshot.
 * NOT_FOUND: the volume is not there.
 */
gboolean provision_snapshot_create(const ProvisionTarget *at, const char *request_name,
                                   const VolumeId *source, SnapshotRecord **record, GError **error);
/* A snapshot that does not exist is deleted already. FAILED_PRECONDITION: a volume is being copied
 * from it, or volumes show it. INVALID_ARGUMENT: it is a member of a group snapshot, and is deleted
 * only with that. */
gboolean provision_snapshot_delete(const ProvisionTarget *at, GError **error);
/* NOT_FOUND. */
gboolean provision_snapshot_look(const ProvisionTarget *at, SnapshotRecord **record,
                                 GError **error);

/* Looks up the handle of an adopted ID in ceph-csi's journal: *name is the name it leads to, the
 * caller's, or NULL when the journal has no such handle. */
gboolean provision_adopted_known(const ProvisionTarget *at, JournalKind kind, char **name,
                                 GError **error);

typedef struct ProvisionSnapshot {
    VolumeId *id;
    SnapshotRecord *record;
} ProvisionSnapshot;
void provision_snapshot_free(gpointer snapshot);

/* As provision_list(); of one volume unless `source` is NULL. ProvisionSnapshot*. */
GPtrArray *provision_snapshot_list(const ProvisionTarget *location, const VolumeId *source,
                                   const char *after, guint max, gboolean *more, GError **error);

/* The ID of the volume that a snapshot was taken of; the caller's. */
VolumeId *provision_snapshot_source(const VolumeId *snapshot, const SnapshotRecord *record);

/*
 * Group snapshots: one moment of several volumes of a location. The target is a group snapshot's
 * ID, `sources` VolumeId*. Creation: the group's record, the members' records, the snapshots at
 * once; deletion in reverse. A retry that finds only some of the snapshots removes them first,
 * because they would not be of one moment. ALREADY_EXISTS: the name is another request's or of
 * other volumes. FAILED_PRECONDITION: these volumes have no common moment. NOT_FOUND: one is not
 * there.
 */
gboolean provision_group_create(const ProvisionTarget *at, const char *request_name,
                                const GPtrArray *sources, GroupRecord **record, GError **error);
/* A group snapshot that does not exist is deleted already. `snapshots`: the names that the caller
 * has for the members, or NULL; INVALID_ARGUMENT when they are not the members.
 * FAILED_PRECONDITION: volumes show one of them. */
gboolean provision_group_delete(const ProvisionTarget *at, const GPtrArray *snapshots,
                                GError **error);
/* NOT_FOUND unless the record and all its snapshots exist. */
gboolean provision_group_look(const ProvisionTarget *at, const GPtrArray *snapshots,
                              GroupRecord **record, GError **error);

/* Bytes that the location can still store; `pool` NULL: in its own pool. */
gboolean provision_capacity(const ProvisionTarget *location, const char *pool, gint64 *available,
                            GError **error);

#endif
