/* SPDX-License-Identifier: Apache-2.0 */
/* Object ids as text and as hash table keys; object_key_init() and object_key_id() are in store.h.
 */
#ifndef HEARTH_CACHE_STORE_INDEX_KEY_H
#define HEARTH_CACHE_STORE_INDEX_KEY_H

#include "cache/store/store.h"

#define OBJECT_ID_HEX 32

/* Writes 32 lower-case digits and a NUL. */
void object_id_hex(const ObjectId *id, char hex[OBJECT_ID_HEX + 1]);
/* The reverse; FALSE unless `hex` is exactly what object_id_hex() writes. */
gboolean object_id_parse(const char *hex, ObjectId *id);

/*
 * An object's modification time, in seconds since 1970, is made from its id. Whatever writes to a
 * complete object changes it, and so gives itself away to one fstat(2).
 */
int64_t object_id_seal(const ObjectId *id);

/* For GHashTable with ObjectId * keys. */
guint object_id_hash(gconstpointer id);
gboolean object_id_equal(gconstpointer a, gconstpointer b);

/* The 16 bytes a tag is recorded as; NULL counts as "". */
typedef struct TagId {
    uint8_t bytes[16];
} TagId;
void tag_id(const char *tag, TagId *id);

#endif
