/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of volumes: a JSON object under the volume's name, with everything that the backend
 * itself cannot store. It is created before the volume and removed after it, so a record without a
 * volume is an unfinished creation, and a volume without a record is not ours to delete. This is
 * the content of records; backend/ does the I/O.
 */
#ifndef HEARTH_DRIVER_VOLUME_RECORD_H
#define HEARTH_DRIVER_VOLUME_RECORD_H

#include <glib.h>
#include <jansson.h>
#include "driver/volume/capacity.h"
#include "driver/volume/id.h"
#include "driver/volume/mutable.h"
#include "driver/volume/params.h"

/* Records are small; a larger object is no record. */
#define RECORD_MAX 16384

/* The snapshot that a volume without bytes of its own shows. It is the record's source, or without
 * one the dataset of its class, which may belong to anyone. */
typedef struct VolumeBacking {
    char *group, *name, *snapshot; /* of the volume the snapshot is of, and its own */
    char *path;                    /* to mount */
} VolumeBacking;

void volume_backing_free(VolumeBacking *backing);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(VolumeBacking, volume_backing_free)

typedef struct VolumeRecord {
    char *name; /* of the volume in the backend, by which the record was read */
    char *request_name;
    char *moved;  /* the name that the volume has, because a copy to this one failed; else NULL */
    char *first;  /* the name whose record leads here in that way; else NULL */
    char *group;  /* "" for VOLUME_DIR */
    char *source; /* the ID of the snapshot or volume it was made from; NULL: it started empty */
    char *source_at;            /* that of ceph-csi, in the form of our own IDs; else NULL */
    gint64 bytes;               /* as created; expanding changes the volume, not the record */
    gint64 created;             /* seconds since 1970, when the first attempt began; 0: not known */
    json_t *params;             /* params_to_json() */
    json_t *changes;            /* mutable parameters, an object (mutable.h) */
    VolumeBacking *backing;     /* NULL: the volume has bytes of its own */
    char *pv, *pvc, *namespace; /* whom it was made for; NULL: not told */
} VolumeRecord;

void volume_record_free(VolumeRecord *record);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(VolumeRecord, volume_record_free)

/* The name of the record of a volume, "vol.<name>"; the caller's. */
char *volume_record_key(const char *name);
/* The volume's name in the name of its record, borrowed; NULL for other records. */
const char *volume_record_key_name(const char *key);

/* A request for a volume, as far as the record keeps it. */
typedef struct VolumeRequest {
    const char *name;
    const VolumeParams *params;
    const VolumeId *id;             /* with its name */
    const char *source, *source_at; /* as in VolumeRecord, as is `first` */
    const char *first;
    const json_t *changes; /* mutable parameters, or NULL */
} VolumeRequest;

/* The text to store; the caller's. `backing` may be NULL. */
char *volume_record_encode(const VolumeRequest *request, const VolumeBacking *backing,
                           gint64 bytes);
/* The text of a record with mutable parameters set; the caller's. Errors as for decoding. */
char *volume_record_change(const char *name, const char *text, gsize length, const json_t *changes,
                           GError **error);
/* The text of a record that says that its volume has moved; the caller's. Releases that do not know
 * such records refuse them. */
char *volume_record_move(const char *name, const char *text, const char *to, GError **error);
/* INTERNAL: not a record; FAILED_PRECONDITION: of a later format. */
VolumeRecord *volume_record_decode(const char *name, const char *text, gsize length,
                                   GError **error);

/* Checks that the request is the recorded one: ALREADY_EXISTS says which part differs. `changes`
 * NULL: mutable parameters are not compared. */
gboolean volume_record_check_same(const VolumeRecord *record, const VolumeRequest *request,
                                  CapacityRange range, GError **error);

#endif
