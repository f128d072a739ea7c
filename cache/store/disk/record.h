/* SPDX-License-Identifier: Apache-2.0 */
/* What the index keeps of an object, and its form on disk (FormatRecord). */
#ifndef HEARTH_CACHE_STORE_DISK_RECORD_H
#define HEARTH_CACHE_STORE_DISK_RECORD_H

#include "cache/store/disk/format.h"
#include "cache/store/disk/key.h"

typedef struct Record {
    ObjectKey key;
    gboolean anonymous; /* of key, only the size is known */
    uint32_t chunk_bytes;
    uint64_t data_checksum;
    uint64_t last_use_ms;
    gboolean used_again; /* since it was fetched */
    TagId tag;
} Record;

/* What an object of this many bytes is charged: file systems give whole blocks. Never 0. */
static inline uint64_t record_charge(uint64_t size)
{
    if (size == 0)
        return 4096;
    return size > UINT64_MAX - 4095 ? UINT64_MAX & ~4095ULL : (size + 4095) & ~4095ULL;
}

void index_record_encode(const Record *record, FormatRecord *out);
/*
 * Reads what index_record_encode() wrote for object `id`. -EBADMSG: damaged, or the record of
 * another object; -EPROTONOSUPPORT: of a version this program does not know.
 */
int index_record_decode(const void *data, size_t len, const ObjectId *id, Record *record);

#endif
