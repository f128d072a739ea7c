/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volume IDs. An ID says by itself where a volume is, so that no call needs a look-up table:
 *
 *     h1~cephfs~CLUSTERID~FSNAME~GROUP~NAME
 *     h1~rbd~CLUSTERID~POOL~NAMESPACE~NAME       NAMESPACE is empty for the pool's default one
 *     h1~dir~NAME
 *
 * "h1" is the format's version. A byte outside [A-Za-z0-9._-] is written %XX (upper case), so an ID
 * is printable and has none of '/', ':' and ','. There is one spelling for a volume: a string that
 * decodes is exactly what encoding gives back, and locks may be keyed by it.
 */
#ifndef HEARTH_DRIVER_VOLUME_ID_H
#define HEARTH_DRIVER_VOLUME_ID_H

#include <glib.h>
#include "common/error.h"

/* The CSI limit on strings (spec, "Size Limits"). */
#define VOLUME_ID_MAX 128

typedef enum VolumeType { VOLUME_CEPHFS, VOLUME_RBD, VOLUME_DIR } VolumeType;

const char *volume_type_name(VolumeType type);
gboolean volume_type_parse(const char *name, VolumeType *type);

typedef struct VolumeId {
    VolumeType type;
    char *cluster_id;             /* NULL for VOLUME_DIR */
    char *fs_name, *group;        /* VOLUME_CEPHFS; NULL for others */
    char *pool, *rados_namespace; /* VOLUME_RBD; the namespace may be "" */
    char *name;                   /* what the backend calls it */
    gboolean adopted;             /* of ceph-csi (adopted_id.h): there is no record of ours */
    char *handle;                 /* of one that is: its ID, in place of ours; else NULL */
} VolumeId;

void volume_id_free(VolumeId *id);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(VolumeId, volume_id_free)

VolumeId *volume_id_copy(const VolumeId *id);

/*
 * Whether both are at one location, which shares records and a session (backend/backend.h): a
 * directory, a file system whatever the group, a pool's namespace. Names do not matter.
 */
gboolean volume_id_same_location(const VolumeId *a, const VolumeId *b);
/* The same of IDs that are of one cluster, though they may call it by different names. */
gboolean volume_id_same_location_within(const VolumeId *a, const VolumeId *b);
/* An order of locations within a type, by cluster, then file system, or pool and namespace. */
int volume_id_compare_locations(const VolumeId *a, const VolumeId *b);
/* The location in words, "file system cephfs of cluster c1"; the caller's. */
char *volume_id_location_text(const VolumeId *id);

/* The caller's string; its handle for one of ceph-csi. INVALID_ARGUMENT when it is longer than
 * VOLUME_ID_MAX, naming the parts. */
char *volume_id_encode(const VolumeId *id, GError **error);

/*
 * INVALID_ARGUMENT: empty. NOT_FOUND: no ID of this driver, hence no volume of ours.
 * FAILED_PRECONDITION: of a later version of it, whose volume may well exist.
 */
VolumeId *volume_id_decode(const char *text, GError **error);

/*
 * Snapshot IDs: h1~snap~cephfs~CLUSTERID~FSNAME~NAME and h1~snap~rbd~CLUSTERID~POOL~NAMESPACE~NAME,
 * where NAME is what the backend calls the snapshot. Its record says of which volume it is, so that
 * the ID stays within the limit. As a VolumeId it has no group. Errors as for volumes.
 */
char *snapshot_id_encode(const VolumeId *snapshot, GError **error);
VolumeId *snapshot_id_decode(const char *text, GError **error);
gsize snapshot_id_room(const VolumeId *snapshot);

/* Group snapshot IDs: h1~group~rbd~CLUSTERID~POOL~NAMESPACE~NAME. As for snapshots. */
char *group_id_encode(const VolumeId *group, GError **error);
VolumeId *group_id_decode(const char *text, GError **error);
gsize group_id_room(const VolumeId *group);

/* Bytes an ID leaves for the name, which may be none; `id->name` is not looked at. */
gsize volume_id_room(const VolumeId *id);

#endif
