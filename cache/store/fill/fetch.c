/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fetching a chunk: from the origin into a buffer, hashed, into the temporary file. After the last
 * chunk the object is kept, but only if the file is still the one that its key names.
 */
#include "cache/store/fill/internal.h"
#include "cache/store/objects/verity.h"
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

static uint64_t checksum_of(const StoreFill *fill)
{
    return XXH3_64bits(fill->hashes, fill->n_chunks * sizeof(uint64_t));
}

static gboolean is_key_of(const StoreFill *fill, Origin *origin, const OriginAttr *attr)
{
    ObjectKey now;
    ObjectId id;
    object_key_init(&now, origin, attr);
    object_key_id(&now, &id);
    return object_id_equal(&id, &fill->id);
}

/* All chunks are there: is it still the same file? Then keep it. Called with busy > 0, unlocked. */
static void finish_fill(StoreFill *fill, gboolean patient)
{
    Store *store = fill->store;
    Fills *fills = store->fills;
    Origin *origin = fill->origin;
    OriginAttr attr;
    int rc = origin->ops->getattr(origin, fill->node, &attr);
    if (rc == 0 && fill->direct >= 0 && ftruncate(fill->partial.fd, (off_t)fill->key.size) < 0)
        rc = -errno;
    if (rc == 0 && !is_key_of(fill, origin, &attr))
        rc = -ESTALE;
    if (rc == 0 && fill->direct >= 0)
        verity_stop_writing(fill->direct, O_DIRECT);
    /* A write that spoils it later begins after everything was read. */
    pthread_mutex_lock(&fills->lock);
    if (rc == 0 && fill->spoiled)
        rc = -ESTALE;
    fills_unlock(fills);
    if (rc < 0) {
        pthread_mutex_lock(&fills->lock);
        fill_fail_locked(fills, fill, rc);
        fills_unlock(fills);
        return;
    }
    Record record = {
        .key = fill->key,
        .chunk_bytes = (uint32_t)fill->chunk_bytes,
        .data_checksum = checksum_of(fill),
        .last_use_ms = store_wall_ms(store),
        .tag = fill->tag,
    };
    /* The bytes are right even if they cannot be kept: only store_fill_wait() returns the error. */
    rc = store_publish(store, &fill->partial, &record, patient);
    pthread_mutex_lock(&fills->lock);
    if (rc == 0)
        fill->reserved = 0;
    fill_complete_locked(fills, fill, rc == -EEXIST ? 0 : rc);
    fills_unlock(fills);
}

/* The node of a fill that knows only its path. */
static int find_node(StoreFill *fill, OriginNode **node)
{
    Origin *origin = fill->origin;
    OriginAttr attr;
    int rc = origin_find(origin, fill->path, node, &attr);
    if (rc == 0 && !is_key_of(fill, origin, &attr)) {
        origin->ops->put(origin, *node);
        *node = NULL;
        rc = -ESTALE;
    }
    return rc;
}

static int open_origin_file(Fills *fills, StoreFill *fill)
{
    pthread_mutex_lock(&fills->lock);
    while (fill->opening)
        fills_wait(fills, &fill->changed);
    int rc = fill->error;
    if (rc == 0 && !fill->file) {
        OriginFile *file = NULL;
        fill->opening = TRUE;
        fills_unlock(fills);
        Origin *origin = fill->origin;
        OriginNode *node = fill->node;
        rc = node ? 0 : find_node(fill, &node);
        if (rc == 0)
            rc = origin->ops->open(origin, node, O_RDONLY | O_DIRECT, &file);
        pthread_mutex_lock(&fills->lock);
        fill->node = node;
        fill->opening = FALSE;
        fill->file = rc == 0 ? file : NULL;
        if (rc < 0)
            fill_fail_locked(fills, fill, rc);
        pthread_cond_broadcast(&fill->changed);
    }
    fills_unlock(fills);
    return rc;
}

static int write_all(Store *store, int fd, const uint8_t *buf, size_t len, uint64_t off)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = store->hooks.pwrite ? store->hooks.pwrite(store->hooks.data, fd, buf + done,
                                                              len - done, (off_t)(off + done))
                                        : pwrite(fd, buf + done, len - done, (off_t)(off + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        done += (size_t)n;
    }
    return 0;
}

/* Of a fill in parts, whose beginning has reserved a block. */
static int reserve(StoreFill *fill, uint64_t off, size_t len)
{
    Store *store = fill->store;
    uint64_t bytes = fill_aligned(len);
    if (off + len == fill->key.size)
        bytes -= record_charge(0);
    gboolean fits = space_reserve_more(store, bytes);
    while (!fits && fill_drop_oldest_parked(store->fills))
        fits = space_reserve_more(store, bytes);
    if (!fits)
        return -ENOSPC;
    pthread_mutex_lock(&store->fills->lock);
    fill->reserved += bytes;
    fills_unlock(store->fills);
    return 0;
}

static void hash_chunks(StoreFill *fill, uint64_t chunk, const uint8_t *buf, size_t len)
{
    for (size_t done = 0; done < len || done == 0; done += fill->chunk_bytes) {
        const size_t size = MIN(fill->chunk_bytes, len - done);
        fill->hashes[chunk++] = htole64(XXH3_64bits(buf + done, size));
    }
}

/* The bytes are in its buffer. A disk that is slow then is not an origin that hangs. */
static void is_answered(StoreFill *fill, FillPick *pick)
{
    Fills *fills = fill->store->fills;
    if (fill->direct < 0) /* the page cache does not let it wait */
        return;
    pthread_mutex_lock(&fills->lock);
    fill_pick_answered_locked(fills, pick);
    fills_unlock(fills);
}

static int fetch(StoreFill *fill, FillPick *pick)
{
    Store *store = fill->store;
    Origin *origin = fill->origin;
    uint8_t *buf = pick->buf;
    uint64_t off = pick->chunk * fill->chunk_bytes;
    size_t len = (size_t)MIN(pick->n * fill->chunk_bytes, fill->key.size - off);
    int rc = fill->parts ? reserve(fill, off, len) : 0;
    if (rc == 0 && len)
        rc = open_origin_file(store->fills, fill);
    for (size_t done = 0; rc == 0 && done < len;) {
        if (fill_state(fill) == FILL_FAILED)
            return -ECANCELED;
        const gint64 began_us = g_get_monotonic_time();
        ssize_t n = origin->ops->read(origin, fill->file, buf + done, len - done, off + done);
        if (n == -EINTR)
            continue;
        histogram_add(&store->times.reads, g_get_monotonic_time() - began_us);
        if (n < 0)
            atomic_fetch_add(&store->times.failed_reads, 1);
        if (n <= 0) /* shorter than its attributes said: it was truncated */
            return n < 0 ? (int)n : -ESTALE;
        atomic_fetch_add(&store->fills->origin_bytes, (uint64_t)n);
        done += (size_t)n;
    }
    if (rc < 0)
        return rc;
    is_answered(fill, pick);
    hash_chunks(fill, pick->chunk, buf, len);
    if (fill->direct >= 0) {
        size_t blocks = (size_t)fill_aligned(len);
        memset(buf + len, 0, blocks - len);
        rc = fill->parts ? layout_partial_allocate(&fill->partial, off, blocks) : 0;
        if (rc == 0)
            rc = write_all(store, fill->direct, buf, blocks, off);
        if (rc == -EINVAL) /* it wants larger blocks */
            rc = write_all(store, fill->partial.fd, buf, blocks, off);
    } else {
        rc = write_all(store, fill->partial.fd, buf, len, off);
    }
    if (rc == -ENOSPC || rc == -EDQUOT) {
        space_forget(store);
        wake_kick(&store->evictor);
    } else if (rc < 0) {
        disk_failed(&store->disk, rc, monotonic_ms());
    }
    return rc;
}

static void count_written_locked(StoreFill *fill, uint64_t n_chunks)
{
    if (!fill->parts)
        return;
    const uint64_t bytes = MIN(n_chunks * fill->chunk_bytes, fill->reserved - fill->written);
    fill->written += bytes;
    ledger_written(&fill->store->ledger, (int64_t)bytes);
}

void fill_fetch_claimed_locked(Fills *fills, FillPick *pick, gboolean patient)
{
    StoreFill *fill = pick->fill;
    fills_unlock(fills);
    int rc = fetch(fill, pick);
    pthread_mutex_lock(&fills->lock);
    if (rc < 0) {
        fill_fail_locked(fills, fill, rc);
    } else {
        memset(fill->chunks + pick->chunk, CHUNK_DONE, pick->n);
        fill->done += pick->n;
        count_written_locked(fill, pick->n);
        fill_recent_leave_locked(fills, pick);
        fill_changed_locked(fill);
        fill_want_next_locked(fills, fill);
        if (fill->done == fill->n_chunks && fill_state(fill) == FILL_ACTIVE) {
            fills_unlock(fills);
            finish_fill(fill, patient);
            pthread_mutex_lock(&fills->lock);
        }
    }
    fill->busy--;
    fill_put_origin_locked(fills, fill);
}
