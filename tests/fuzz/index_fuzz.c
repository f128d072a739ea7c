/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: index records, as read from the index or from an object's extended attribute. What
 * decodes must encode to the very same bytes, or a rebuilt index would differ from the one lost.
 */
#include "tests/fuzz/fuzz.h"
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <endian.h>
#include <string.h>
#include <xxhash.h>
#include "cache/store/disk/record.h"

static void check(const uint8_t *data, size_t size, const ObjectId *id)
{
    Record record;
    FormatRecord again;
    int rc = index_record_decode(data, size, id, &record);
    if (rc == 0) {
        index_record_encode(&record, &again);
        FormatRecord given;
        if (size != sizeof(given))
            abort();
        memcpy(&given, data, sizeof(given));
        given.used_again = htole32(given.used_again ? 1 : 0);
        if (memcmp(&given, &again, offsetof(FormatRecord, checksum)) != 0)
            abort();
        record_charge(record.key.size);
    } else if (rc != -EBADMSG && rc != -EPROTONOSUPPORT) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ObjectId id = {{0}};
    if (size < sizeof(id))
        return 0;
    memcpy(&id, data, sizeof(id));
    data += sizeof(id);
    size -= sizeof(id);
    check(data, size, &id);
    if (size != sizeof(FormatRecord))
        return 0;
    /* Past the checksum, and past the id, so that the fields are reached. */
    FormatRecord fixed;
    memcpy(&fixed, data, sizeof(fixed));
    fixed.version = FORMAT_RECORD_VERSION;
    fixed.checksum = XXH3_64bits(&fixed, offsetof(FormatRecord, checksum));
    check((const uint8_t *)&fixed, sizeof(fixed), &id);
    fixed.flags = FORMAT_RECORD_ANONYMOUS;
    fixed.checksum = XXH3_64bits(&fixed, offsetof(FormatRecord, checksum));
    check((const uint8_t *)&fixed, sizeof(fixed), &id);
    return 0;
}
