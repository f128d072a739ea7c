/*
 * Verification of an object's bytes against the checksum taken when they came from the origin.
 * Reads all of it, so it is no part of opening: there, length and seal (object_id_seal()) are
 * checked.
 */
#include <endian.h>
#include <errno.h>
#include <unistd.h>
#include <xxhash.h>
#include "cache/autofd.h"
#include "cache/store/internal.h"

int store_verify(Store *store, const ObjectId *id)
{
    Record record;
    int rc = index_get(store->index, id, &record);
    if (rc < 0)
        return rc;
    hearth_autofd int fd = store_open_present(store, id, record.key.size);
    if (fd < 0)
        return fd;
    if (record.anonymous || record.chunk_bytes == 0)
        return 0; /* nothing to compare with */
    g_autofree uint8_t *buf = g_malloc(record.chunk_bytes);
    XXH3_state_t *state = XXH3_createState();
    XXH3_64bits_reset(state);
    uint64_t off = 0;
    do {
        size_t len = (size_t)MIN(record.chunk_bytes, record.key.size - off);
        ssize_t n = pread(fd, buf, len, (off_t)off);
        if (n < 0 || (size_t)n != len)
            rc = n < 0 ? -errno : -EBADMSG;
        uint64_t hash = htole64(XXH3_64bits(buf, len));
        XXH3_64bits_update(state, &hash, sizeof(hash));
        off += len;
    } while (rc == 0 && off < record.key.size);
    if (rc == 0 && XXH3_64bits_digest(state) != record.data_checksum)
        rc = -EBADMSG;
    XXH3_freeState(state);
    return rc;
}
