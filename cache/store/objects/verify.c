/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes are read with O_DIRECT where the file system has it, in pieces, so that the scrubber can
 * pause between them. The checksum is computed as at the fill: over the chunks' checksums.
 */
#include "cache/store/objects/verify.h"
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include "common/autofd.h"
#include "cache/store/objects/internal.h"

#define ALIGNMENT 4096
#define PIECE ((size_t)512 << 10)
#define LIST 64

/* The object, if it still looks like itself. */
static int open_to_verify(Store *store, const ObjectId *id, uint64_t size)
{
    struct stat st;
    hearth_autofd int fd = layout_open_object(&store->layout, id);
    if (fd == -ELOOP || fd == -ENXIO)
        return -EBADMSG;
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != size ||
        st.st_mtim.tv_sec != object_id_seal(id))
        return -EBADMSG;
    return hearth_steal_fd(&fd);
}

static size_t whole_blocks(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
}

/* The buffer has room for whole blocks. */
static int read_chunk(int fd, uint8_t *buf, size_t len, uint64_t off, const VerifyPace *pace)
{
    size_t room = whole_blocks(len);
    for (size_t done = 0; done < len;) {
        ssize_t n = pread(fd, buf + done, MIN(room - done, PIECE), (off_t)(off + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EBADMSG;
        if (pace && !pace->pause(pace->data, MIN((size_t)n, len - done)))
            return -ECANCELED;
        done += (size_t)n;
    }
    return 0;
}

static int verify_bytes(int fd, const Record *record, uint8_t *buf, const VerifyPace *pace)
{
    gboolean direct = fcntl(fd, F_SETFL, O_DIRECT) == 0;
    XXH3_state_t *state = XXH3_createState();
    XXH3_64bits_reset(state);
    uint64_t off = 0;
    int rc = 0;
    do {
        size_t len = (size_t)MIN(record->chunk_bytes, record->key.size - off);
        rc = read_chunk(fd, buf, len, off, pace);
        if (rc == -EINVAL && direct) { /* not on this file system, after all */
            direct = FALSE;
            fcntl(fd, F_SETFL, 0);
            continue;
        }
        if (!direct)
            posix_fadvise(fd, (off_t)off, (off_t)len, POSIX_FADV_DONTNEED);
        uint64_t hash = htole64(XXH3_64bits(buf, len));
        XXH3_64bits_update(state, &hash, sizeof(hash));
        off += len;
    } while (rc == 0 && off < record->key.size);
    if (rc == 0 && XXH3_64bits_digest(state) != record->data_checksum)
        rc = -EBADMSG;
    XXH3_freeState(state);
    return rc;
}

int store_verify(Store *store, const ObjectId *id, const VerifyPace *pace)
{
    Record record;
    void *buf;
    int rc = index_get(store->index, id, &record);
    if (rc < 0)
        return rc;
    hearth_autofd int fd = open_to_verify(store, id, record.key.size);
    if (fd < 0)
        return fd;
    if (record.anonymous || record.chunk_bytes == 0)
        return -ENODATA;
    size_t most = (size_t)MIN((uint64_t)record.chunk_bytes, MAX(record.key.size, 1));
    if (posix_memalign(&buf, ALIGNMENT, whole_blocks(most)) != 0)
        return -ENOMEM;
    rc = verify_bytes(fd, &record, buf, pace);
    free(buf);
    return rc;
}

int store_check(Store *store, const ObjectId *id, const VerifyPace *pace)
{
    int rc = store_verify(store, id, pace);
    if (rc == -EBADMSG) {
        atomic_fetch_add(&store->disk.errors, 1);
        store_drop(store, id);
    } else if (rc == -EIO || rc == -EUCLEAN) {
        store_report_bad(store, id, rc);
    } else {
        return rc;
    }
    char hex[OBJECT_ID_HEX + 1];
    object_id_hex(id, hex);
    g_warning("cache: object %s is damaged (%s): it is dropped, and fetched again when it is read",
              hex, g_strerror(-rc));
    atomic_fetch_add(&store->bad_objects, 1);
    return 1;
}

int store_verify_some(Store *store, const char *tag, StoreVerify *run, uint64_t max_bytes)
{
    TagId own;
    tag_id(tag, &own);
    uint64_t bytes = 0;
    int rc = run->started ? 0 : store_flush(store); /* what has no record is not listed */
    run->started = TRUE;
    while (rc == 0 && !run->end && bytes < max_bytes && run->bad < STORE_VERIFY_BAD_MAX) {
        IndexEntry entries[LIST];
        gboolean last;
        ssize_t n = index_by_id(store->index, &run->after, entries, LIST, &last);
        rc = n < 0 ? (int)n : 0;
        run->end = n == 0 && last;
        for (ssize_t i = 0; i < n && bytes < max_bytes && run->bad < STORE_VERIFY_BAD_MAX; i++) {
            const IndexEntry *entry = &entries[i];
            run->after = entry->id;
            run->end = last && i + 1 == n;
            gboolean wanted = !tag || memcmp(&entry->tag, &own, sizeof(own)) == 0;
            if (!wanted && !(run->wanted && run->wanted(run->data, &entry->id)))
                continue;
            int found = store_check(store, &entry->id, NULL);
            if (found == -ENOENT)
                continue;
            bytes += entry->size;
            run->objects++;
            run->unchecked += found == -ENODATA;
            if (found > 0)
                run->bad_ids[run->bad++] = entry->id;
        }
    }
    run->bytes += bytes;
    return rc;
}
