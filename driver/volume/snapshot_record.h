/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of snapshots, "snap.<name>": created before the snapshot and removed after it, as a
 * volume's. A record says which volume the snapshot is of, which its ID does not, and its size and
 * time, of which CSI asks both and Ceph knows only a part. This is the content; backend/ does the
 * I/O.
 */
#ifndef HEARTH_DRIVER_VOLUME_SNAPSHOT_RECORD_H
#define HEARTH_DRIVER_VOLUME_SNAPSHOT_RECORD_H

#include <glib.h>
#include "driver/volume/id.h"

typedef struct SnapshotRecord {
    char *request_name;
    char *source_group, *source_name;
    char *source_handle;  /* of a volume of ceph-csi; else NULL */
    char *source_path;    /* the volume's, which outlives it in the snapshot; NULL: not recorded */
    char *group_snapshot; /* name of the group snapshot it is a member of; NULL: none */
    gint64 bytes;         /* of the volume at that time: the least size of one made from it */
    gint64 created; /* seconds since 1970, UTC: when the first attempt began, or a little before
                       the snapshot was taken */
} SnapshotRecord;

void snapshot_record_free(SnapshotRecord *record);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SnapshotRecord, snapshot_record_free)

/* "snap.<name>", the caller's; and the name in one, borrowed, NULL for other records. */
char *snapshot_record_key(const char *name);
const char *snapshot_record_key_name(const char *key);

/* The text to store, the caller's. `source_path` and
 * `group_snapshot` may be NULL. */
char *snapshot_record_encode(const char *request_name, const VolumeId *source,
                             const char *source_path, gint64 bytes, const char *group_snapshot);
/* INTERNAL: not a record; FAILED_PRECONDITION: of a later format. */
SnapshotRecord *snapshot_record_decode(const char *name, const char *text, gsize length,
                                       GError **error);

#endif
