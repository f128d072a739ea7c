/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of objects: the key says what the content is, the id is a hash of the key. Also how ids are
 * written as text and used in hash tables, and how tags are recorded.
 */
#ifndef HEARTH_CACHE_STORE_DISK_KEY_H
#define HEARTH_CACHE_STORE_DISK_KEY_H

#include <glib.h>
#include <stdint.h>
#include "cache/origin/origin.h"

/* The first 128 bits of SHA-256 over the packed little-endian ObjectKey. */
typedef struct ObjectId {
    uint8_t bytes[16];
} ObjectId;

/*
 * Identity of content. Snapshots and live inodes of one version share an object. mtime and size
 * stand beside the version, because a client that dies with unflushed changes lets the next
 * writer reuse a version number.
 */
typedef struct ObjectKey {
    uint8_t space[24]; /* Origin.space */
    uint64_t ino;
    uint64_t version;
    uint64_t size;
    int64_t mtime_sec;
    uint32_t mtime_nsec;
} ObjectKey;

void object_key_init(ObjectKey *key, const Origin *origin, const OriginAttr *attr);
void object_key_id(const ObjectKey *key, ObjectId *id);

#define OBJECT_ID_HEX 32

/* Writes 32 lower-case digits and a NUL. */
void object_id_hex(const ObjectId *id, char hex[OBJECT_ID_HEX + 1]);
/* The reverse; FALSE unless `hex` is exactly what object_id_hex() writes. */
gboolean object_id_parse(const char *hex, ObjectId *id);

/*
 * An object's modification time, in seconds since 1970, is made from its id. A write to a complete
 * object changes the time, so one fstat(2) shows that the object was modified.
 */
int64_t object_id_seal(const ObjectId *id);

/* For GHashTable with ObjectId * keys. */
guint object_id_hash(gconstpointer id);
gboolean object_id_equal(gconstpointer a, gconstpointer b);

/* A tag names the owner of an object (a volume or a dataset). It is recorded as these 16 bytes. */
typedef struct TagId {
    uint8_t bytes[16];
} TagId;
/* NULL counts as "". */
void tag_id(const char *tag, TagId *id);

#endif
