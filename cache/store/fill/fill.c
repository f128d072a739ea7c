/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fill as its readers see it: joining or beginning it, reading, waiting. An object is fetched in
 * chunks, by whichever of three comes first: a worker for a reader that waits; a worker in
 * sequence; or, for the small files that most datasets consist of, the first reader on its own
 * thread.
 */
#include "cache/store/fill/internal.h"
#include <errno.h>
#include <gio/gio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* --- joining and beginning --- */

static gboolean is_in_parts(const Store *store, const FillRequest *request, gboolean ahead)
{
    const uint64_t whole = store->config.whole_bytes;
    return whole && request->key->size > whole && !request->node && !ahead;
}

static StoreFill *fill_new(Store *store, const FillRequest *request, const ObjectId *id,
                           gboolean ahead)
{
    const ObjectKey *key = request->key;
    const gboolean in_parts = is_in_parts(store, request, ahead);
    StoreFill *fill = g_new0(StoreFill, 1);
    fill->refs = 2; /* the caller's, and that of `live` */
    fill->store = store;
    fill->origin = request->origin;
    fill->key = *key;
    fill->id = *id;
    tag_id(request->tag, &fill->tag);
    fill->path = request->node ? NULL : g_strdup(request->path);
    fill->pace = pace_ref(request->pace);
    fill->partial.fd = fill->direct = -1;
    fill->parts = in_parts ? g_new0(FillParts, 1) : NULL;
    fill->chunk_bytes = in_parts ? fill_part_bytes(store, key->size) : store->config.chunk_bytes;
    fill->n_chunks = MAX(1, (key->size + fill->chunk_bytes - 1) / fill->chunk_bytes);
    fill->missing = in_parts ? 0 : fill->n_chunks;
    fill->ahead = ahead;
    fill->busy = 1; /* the beginner */
    TAILQ_INIT(&fill->waiters);
    cond_init_monotonic(&fill->changed);
    return fill;
}

/* Finds the object or makes ready to fetch it. 1: it is there already; 0; -errno. Unlocked. */
static int prepare(Store *store, StoreFill *fill, OriginNode *node, gboolean ahead)
{
    /* A fill of it may have ended since the caller checked. */
    int fd = store_open_present(store, &fill->id, fill->key.size);
    if (fd >= 0) {
        fill->partial.fd = fd;
        return 1;
    }
    const uint64_t first = fill->parts ? 0 : fill->key.size;
    if (!space_is_enough_for(store, record_charge(fill->key.size)))
        return -ENOSPC;
    if (!space_reserve(store, first, ahead) &&
        (!fill_drop_oldest_parked(store->fills) || !space_reserve(store, first, ahead)))
        return -ENOSPC;
    fill->reserved = record_charge(first);
    int rc = layout_partial_create(&store->layout, &fill->id, &fill->partial);
    if (rc == 0 && (ahead || fill->parts) && fill->n_chunks > 1 &&
        fill->chunk_bytes % FILL_ALIGN == 0) {
        /* Of one in parts each part is allocated when it comes. */
        const uint64_t now = fill->parts ? 0 : fill_aligned(fill->key.size);
        rc = layout_partial_direct(&fill->partial, now, &fill->direct);
    }
    if (rc == -ENOSPC || rc == -EDQUOT) {
        space_forget(store);
        wake_kick(&store->evictor);
        return rc;
    }
    if (rc < 0) {
        disk_failed(&store->disk, rc, monotonic_ms());
        return rc;
    }
    fill->chunks = g_malloc(fill->n_chunks);
    memset(fill->chunks, fill->parts ? CHUNK_UNREAD : CHUNK_MISSING, fill->n_chunks);
    fill->hashes = g_malloc0(fill->n_chunks * sizeof(uint64_t));
    if (node)
        fill->node = fill->origin->ops->get(fill->origin, node);
    return 0;
}

/* A reader waits for this. */
static void ask_locked(Fills *fills, StoreFill *fill, const FillWait *wait)
{
    for (uint64_t chunk = wait->chunk; chunk <= wait->last; chunk++)
        fill_ask_locked(fills, fill, chunk);
    fill_want_next_locked(fills, fill);
}

static void enqueue_locked(Fills *fills, StoreFill *fill)
{
    fill_enqueue_locked(fills, fill);
    if (fill->parts && fill->parts->whole) /* wanted so meanwhile */
        fill_ask_rest_locked(fills, fill);
    FillWait *wait;
    TAILQ_FOREACH (wait, &fill->waiters, link)
        ask_locked(fills, fill, wait);
}

/* Fills of an origin that hangs leave room for those of others. */
static gboolean has_its_share(const Fills *fills, Origin *origin)
{
    const FillSource *source = g_hash_table_lookup(fills->sources, origin);
    return source && source->fills >= FILLS_MAX / 2;
}

static StoreFill *join_or_begin(Store *store, const FillRequest *request, gboolean ahead)
{
    const ObjectKey *key = request->key;
    Fills *fills = store->fills;
    ObjectId id;
    if (disk_state(&store->disk) == STORE_DISK_BYPASS ||
        key->size / store->config.chunk_bytes >= FILL_CHUNKS_MAX)
        return NULL;
    object_key_id(key, &id);

    pthread_mutex_lock(&fills->lock);
    StoreFill *fill = g_hash_table_lookup(fills->by_id, &id);
    if (!ahead)
        fills->reader_ms = monotonic_ms();
    if (fill && fill->parts && (ahead || fill->origin != request->origin)) {
        if (!fill->is_parked && fill->origin != request->origin) {
            fills_unlock(fills);
            return NULL;
        }
        if (fill->is_parked) {
            fill_drop_locked(fills, fill);
            fill = g_hash_table_lookup(fills->by_id, &id);
        }
    }
    if (fill || fills->stop || fills->n_live >= FILLS_MAX ||
        has_its_share(fills, request->origin)) {
        if (fill) {
            store_fill_ref(fill);
            fill_unpark_locked(fills, fill);
            if (ahead)
                fill_ask_rest_locked(fills, fill);
            else
                fill_need_locked(fills, fill);
        }
        fills_unlock(fills);
        return fill;
    }
    fill = fill_new(store, request, &id, ahead);
    g_hash_table_insert(fills->by_id, &fill->id, fill);
    LIST_INSERT_HEAD(&fills->live, fill, live_link);
    fills->n_live++;
    fill_source_join_locked(fills, fill);
    fills_unlock(fills);

    int rc = prepare(store, fill, request->node, ahead);

    pthread_mutex_lock(&fills->lock);
    if (rc < 0)
        fill_fail_locked(fills, fill, rc);
    else if (rc > 0)
        fill_complete_locked(fills, fill, 0);
    else if (fill_state(fill) == FILL_ACTIVE)
        enqueue_locked(fills, fill);
    fill->busy--;
    fill_release_if_idle_locked(fills, fill);
    fills_unlock(fills);
    if (rc >= 0)
        return fill;
    store_fill_unref(fill);
    return NULL;
}

StoreFill *store_fill(Store *store, Origin *origin, OriginNode *node, const ObjectKey *key,
                      const char *tag)
{
    const FillRequest request = {.origin = origin, .node = node, .key = key, .tag = tag};
    return join_or_begin(store, &request, FALSE);
}

StoreFill *store_fill_path(Store *store, Origin *origin, const char *path, const ObjectKey *key,
                           const char *tag)
{
    const FillRequest request = {.origin = origin, .path = path, .key = key, .tag = tag};
    return join_or_begin(store, &request, FALSE);
}

StoreFill *store_fill_ahead(Store *store, const FillRequest *request)
{
    return join_or_begin(store, request, TRUE);
}

void store_fill_unref(StoreFill *fill)
{
    if (!fill)
        return;
    if (fill->parts && fill_state(fill) == FILL_ACTIVE) {
        fill_left(fill);
        return;
    }
    if (fill_state(fill) == FILL_ACTIVE) {
        /* The reader that a small fill was left for is gone: let a fill_worker do it. */
        Fills *fills = fill->store->fills;
        pthread_mutex_lock(&fills->lock);
        fill_promote_locked(fills, fill);
        fills_unlock(fills);
    }
    if (atomic_fetch_sub(&fill->refs, 1) == 1)
        fill_free(fill);
}

void store_fill_abandon(StoreFill *fill)
{
    Fills *fills = fill->store->fills;
    pthread_mutex_lock(&fills->lock);
    /* Two: ours and that of `live`. A joiner would need the lock. */
    if (fill->ahead && fill_state(fill) == FILL_ACTIVE && atomic_load(&fill->refs) == 2) {
        fill_fail_locked(fills, fill, -ECANCELED);
        fill_release_if_idle_locked(fills, fill);
    }
    fills_unlock(fills);
    store_fill_unref(fill);
}

/* --- readers --- */

/* Fetches a one-chunk object on the reader's thread if no other has begun. Drops the lock inside.
 */
static gboolean fetch_inline_locked(Fills *fills, StoreFill *fill)
{
    size_t size = MAX((size_t)fill->key.size, 1);
    if (!fill->ready || fill->n_chunks != 1 || fill->chunks[0] != CHUNK_MISSING ||
        size > FILL_INLINE_MAX || fills->inline_bytes + size > FILL_INLINE_TOTAL)
        return FALSE;
    FillPick pick = {.fill = fill, .n = 1};
    fill_claim_locked(fill, 0, 1);
    fills->inline_bytes += size;
    fills_unlock(fills);
    pick.buf = g_malloc(size);
    pthread_mutex_lock(&fills->lock);
    fill_fetch_claimed_locked(fills, &pick, FALSE);
    fills_unlock(fills);
    g_free(pick.buf);
    pthread_mutex_lock(&fills->lock);
    fills->inline_bytes -= size;
    return TRUE;
}

/* A small object may be fetched here. */
static int wait_chunk_locked(Fills *fills, StoreFill *fill, uint64_t chunk)
{
    FillWait waiter = {.chunk = chunk, .last = chunk};
    gboolean waiting = FALSE;
    while (fill_state(fill) == FILL_ACTIVE && !(fill->ready && fill->chunks[chunk] == CHUNK_DONE)) {
        if (fetch_inline_locked(fills, fill))
            continue;
        fill_ask_locked(fills, fill, chunk);
        if (!waiting) {
            TAILQ_INSERT_TAIL(&fill->waiters, &waiter, link);
            waiting = TRUE;
            pthread_cond_broadcast(&fill->changed);
        }
        if (fill->ready && fill->chunks[chunk] == CHUNK_MISSING)
            fill_want_locked(fills, fill);
        fills_wait(fills, &fill->changed);
    }
    if (waiting)
        TAILQ_REMOVE(&fill->waiters, &waiter, link);
    return fill_state(fill) == FILL_FAILED ? fill->error : 0;
}

ssize_t store_fill_read_now(StoreFill *fill, void *buf, size_t len, uint64_t off)
{
    Fills *fills = fill->store->fills;
    gboolean refused = FALSE; /* direct I/O: the file system wants larger blocks */
    len = off >= fill->key.size ? 0 : MIN(len, fill->key.size - off);
    for (size_t done = 0; done < len;) {
        const size_t recent = fill_recent_read(fill, (char *)buf + done, len - done, off + done);
        done += recent;
        if (recent)
            continue;
        /* Whole blocks into a buffer of blocks. */
        size_t blocks = (len - done) & ~(FILL_ALIGN - 1);
        gboolean direct = fill->direct >= 0 && !refused && blocks &&
                          (((uintptr_t)buf + done) | (off + done)) % FILL_ALIGN == 0;
        int fd = direct ? fill->direct : fill->partial.fd;
        size_t size = direct ? blocks : len - done;
        ssize_t n = pread(fd, (char *)buf + done, size, (off_t)(off + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EINVAL && direct) {
            refused = TRUE;
            continue;
        }
        if (n <= 0) {
            int rc = n < 0 ? -errno : -EIO;
            disk_failed(&fill->store->disk, rc, monotonic_ms());
            pthread_mutex_lock(&fills->lock);
            fill_fail_locked(fills, fill, rc);
            fill_release_if_idle_locked(fills, fill);
            fills_unlock(fills);
            return rc;
        }
        done += (size_t)n;
    }
    return (ssize_t)len;
}

ssize_t store_fill_read(StoreFill *fill, void *buf, size_t len, uint64_t off)
{
    Fills *fills = fill->store->fills;
    int rc = 0;
    len = off >= fill->key.size ? 0 : MIN(len, fill->key.size - off);
    if (len && fill_state(fill) != FILL_COMPLETE) {
        uint64_t last = (off + len - 1) / fill->chunk_bytes;
        pthread_mutex_lock(&fills->lock);
        fill_read_locked(fills, fill, off, len);
        for (uint64_t chunk = off / fill->chunk_bytes; rc == 0 && chunk <= last; chunk++)
            rc = wait_chunk_locked(fills, fill, chunk);
        fills_unlock(fills);
    }
    return rc < 0 ? rc : store_fill_read_now(fill, buf, len, off);
}

int store_fill_begin_read(StoreFill *fill, FillWait *wait, size_t len, uint64_t off)
{
    Fills *fills = fill->store->fills;
    if (len == 0 || off >= fill->key.size || fill_state(fill) == FILL_COMPLETE)
        return 0;
    len = MIN(len, fill->key.size - off);
    wait->fill = fill;
    wait->chunk = off / fill->chunk_bytes;
    wait->last = (off + len - 1) / fill->chunk_bytes;
    pthread_mutex_lock(&fills->lock);
    fill_read_locked(fills, fill, off, len);
    fill_promote_locked(fills, fill);
    const int rc = fill_progress_locked(fill, wait);
    if (rc == -EINPROGRESS) {
        TAILQ_INSERT_TAIL(&fill->waiters, wait, link);
        wait->waits = TRUE;
        if (fill->ready)
            ask_locked(fills, fill, wait);
        pthread_cond_broadcast(&fill->changed); /* for store_fill_await_waiter() */
    }
    fills_unlock(fills);
    return rc;
}

int store_fill_wait(StoreFill *fill)
{
    Fills *fills = fill->store->fills;
    pthread_mutex_lock(&fills->lock);
    fill_promote_locked(fills, fill);
    fill_ask_rest_locked(fills, fill);
    while (fill_state(fill) == FILL_ACTIVE)
        fills_wait(fills, &fill->changed);
    int rc = fill->result;
    fills_unlock(fills);
    return rc;
}

int store_fill_await(StoreFill *fill, uint64_t off, unsigned timeout_ms)
{
    Fills *fills = fill->store->fills;
    const struct timespec deadline = deadline_after_ms(timeout_ms);
    uint64_t chunk = off / fill->chunk_bytes;
    int rc = 0;
    pthread_mutex_lock(&fills->lock);
    while (rc == 0 && fill_state(fill) == FILL_ACTIVE &&
           !(fill->ready && fill->chunks[chunk] == CHUNK_DONE))
        if (pthread_cond_timedwait(&fill->changed, &fills->lock, &deadline) == ETIMEDOUT)
            rc = -ETIMEDOUT;
    if (fill_state(fill) != FILL_ACTIVE)
        rc = fill_state(fill) == FILL_FAILED ? fill->error : 0;
    fills_unlock(fills);
    return rc;
}

void store_fill_await_waiter(StoreFill *fill)
{
    Fills *fills = fill->store->fills;
    pthread_mutex_lock(&fills->lock);
    while (TAILQ_EMPTY(&fill->waiters))
        fills_wait(fills, &fill->changed);
    fills_unlock(fills);
}
