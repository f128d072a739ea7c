/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coding of index records. A record that does not prove itself (length, version, checksum, the id
 * that its key makes) is never used: a lost object is fetched again, a wrong one would go
 * unnoticed.
 */
#include "cache/store/disk/record.h"
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <xxhash.h>

static uint64_t checksum_of(const FormatRecord *r)
{
    return XXH3_64bits(r, offsetof(FormatRecord, checksum));
}

void index_record_encode(const Record *record, FormatRecord *out)
{
    *out = (FormatRecord){
        .version = htole16(FORMAT_RECORD_VERSION),
        .flags = htole16(record->anonymous ? FORMAT_RECORD_ANONYMOUS : 0),
        .chunk_bytes = htole32(record->chunk_bytes),
        .size = htole64(record->key.size),
        .data_checksum = htole64(record->data_checksum),
        .last_use_ms = htole64(record->last_use_ms),
        .ino = htole64(record->key.ino),
        .inode_version = htole64(record->key.version),
        .mtime_sec = htole64((uint64_t)record->key.mtime_sec),
        .mtime_nsec = htole32(record->key.mtime_nsec),
        .used_again = htole32(record->used_again ? 1 : 0),
    };
    memcpy(out->tag, record->tag.bytes, sizeof(out->tag));
    memcpy(out->space, record->key.space, sizeof(out->space));
    out->checksum = htole64(checksum_of(out));
}

int index_record_decode(const void *data, size_t len, const ObjectId *id, Record *record)
{
    FormatRecord r;
    uint16_t version;

    if (len < sizeof(version))
        return -EBADMSG;
    memcpy(&version, data, sizeof(version));
    if (le16toh(version) != FORMAT_RECORD_VERSION)
        return -EPROTONOSUPPORT;
    if (len != sizeof(r))
        return -EBADMSG;
    memcpy(&r, data, sizeof(r));
    if (le64toh(r.checksum) != checksum_of(&r))
        return -EBADMSG;
    if (le16toh(r.flags) & ~FORMAT_RECORD_ANONYMOUS)
        return -EPROTONOSUPPORT;

    memset(record, 0, sizeof(*record));
    record->anonymous = (le16toh(r.flags) & FORMAT_RECORD_ANONYMOUS) != 0;
    record->chunk_bytes = le32toh(r.chunk_bytes);
    record->data_checksum = le64toh(r.data_checksum);
    record->last_use_ms = le64toh(r.last_use_ms);
    record->used_again = le32toh(r.used_again) != 0;
    memcpy(record->tag.bytes, r.tag, sizeof(r.tag));
    memcpy(record->key.space, r.space, sizeof(r.space));
    record->key.ino = le64toh(r.ino);
    record->key.version = le64toh(r.inode_version);
    record->key.size = le64toh(r.size);
    record->key.mtime_sec = (int64_t)le64toh(r.mtime_sec);
    record->key.mtime_nsec = le32toh(r.mtime_nsec);
    if (!record->anonymous) {
        ObjectId made;
        object_key_id(&record->key, &made);
        if (!object_id_equal(&made, id))
            return -EBADMSG;
    }
    return 0;
}
