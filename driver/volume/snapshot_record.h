/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Name records of snapshots, "snap.<name>": created before the snapshot and removed after it, as a
 * volume's. It says what the snapshot's ID does not, of which volume it is, and what CSI asks for
 * and Ceph tells only in part: its size, and when it was taken. Here is the content; backend/ does
 * the I/O.
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
    char *group_snapshot; /* name of the group snapshot it is of; NULL: it is on its own */
    gint64 bytes;         /* of the volume then: the least size of one made from it */
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
