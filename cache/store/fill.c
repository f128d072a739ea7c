/*
 * What happens in a fill. An object is fetched in chunks, by whichever of three comes first: a
 * worker for a reader that waits; a worker in sequence; or, for the small files that most datasets
 * consist of, the first reader on its own thread, which saves two thread switches per file.
 *
 * Invariants, under Fills.lock:
 *   - a chunk goes MISSING -> BUSY -> DONE, and only the thread that made it BUSY fetches it;
 *   - `busy` counts threads that may use the origin; the origin's node and file are given back by
 *     whoever finds the fill terminal with busy == 0, and only then does it leave `live`;
 *   - the temporary file is never written once all chunks are DONE, so what gets linked is final.
 */
#include "cache/store/fill.h"
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <xxhash.h>
#include "cache/store/internal.h"

enum { CHUNK_MISSING, CHUNK_BUSY, CHUNK_DONE };
enum { FILL_ACTIVE, FILL_COMPLETE, FILL_FAILED };

/* A reader that waits; lives on its stack. */
typedef struct Waiter {
    uint64_t chunk;
    TAILQ_ENTRY(Waiter) link;
} Waiter;

struct StoreFill {
    atomic_uint refs;
    atomic_int state;
    Store *store;
    ObjectId id;
    ObjectKey key;
    TagId tag;
    Partial partial; /* set before `ready` */
    uint64_t chunk_bytes, n_chunks;

    /* Fills.lock: */
    Origin *origin; /* NULL once released */
    OriginNode *node;
    OriginFile *file;
    gboolean ready;   /* chunks may be fetched */
    gboolean opening; /* a thread opens `file`; the others wait on `changed` */
    gboolean releasing;
    gboolean reserved; /* room, to be given back */
    unsigned busy;
    int error;  /* of a failed fill: what readers get */
    int result; /* what store_fill_wait() returns */
    uint8_t *chunks;
    uint64_t *hashes;
    uint64_t missing, done, next;
    uint64_t not_before_ms; /* while deferred */
    gboolean in_wanted, in_running, in_deferred;
    TAILQ_HEAD(, Waiter) waiters;
    pthread_cond_t changed;
    TAILQ_ENTRY(StoreFill) wanted_link, run_link; /* run_link: running or deferred */
    LIST_ENTRY(StoreFill) live_link;
};

static int state_of(StoreFill *fill)
{
    return atomic_load_explicit(&fill->state, memory_order_acquire);
}

/* --- references --- */

StoreFill *store_fill_ref(StoreFill *fill)
{
    atomic_fetch_add(&fill->refs, 1);
    return fill;
}

static void promote_locked(Fills *fills, StoreFill *fill);

void store_fill_unref(StoreFill *fill)
{
    if (!fill)
        return;
    if (state_of(fill) == FILL_ACTIVE) {
        /* The reader that a small fill was left for is gone: let a worker do it. */
        Fills *fills = &fill->store->fills;
        pthread_mutex_lock(&fills->lock);
        promote_locked(fills, fill);
        pthread_mutex_unlock(&fills->lock);
    }
    if (atomic_fetch_sub(&fill->refs, 1) != 1)
        return;
    if (fill->partial.fd >= 0)
        close(fill->partial.fd);
    pthread_cond_destroy(&fill->changed);
    g_free(fill->chunks);
    g_free(fill->hashes);
    g_free(fill);
}

/* --- queues --- */

static void want_locked(Fills *fills, StoreFill *fill)
{
    if (!fill->ready || fill->in_wanted)
        return;
    TAILQ_INSERT_TAIL(&fills->wanted, fill, wanted_link);
    fill->in_wanted = TRUE;
    pthread_cond_signal(&fills->work);
}

static void leave_queues_locked(Fills *fills, StoreFill *fill)
{
    if (fill->in_wanted)
        TAILQ_REMOVE(&fills->wanted, fill, wanted_link);
    if (fill->in_running)
        TAILQ_REMOVE(&fills->running, fill, run_link);
    if (fill->in_deferred)
        TAILQ_REMOVE(&fills->deferred, fill, run_link);
    fill->in_wanted = fill->in_running = fill->in_deferred = FALSE;
}

static void run_locked(Fills *fills, StoreFill *fill)
{
    if (fill->in_deferred)
        TAILQ_REMOVE(&fills->deferred, fill, run_link);
    fill->in_deferred = FALSE;
    TAILQ_INSERT_TAIL(&fills->running, fill, run_link);
    fill->in_running = TRUE;
}

static void promote_locked(Fills *fills, StoreFill *fill)
{
    if (!fill->in_deferred)
        return;
    run_locked(fills, fill);
    pthread_cond_signal(&fills->work);
}

static void claim_locked(Fills *fills, StoreFill *fill, uint64_t chunk)
{
    fill->chunks[chunk] = CHUNK_BUSY;
    fill->busy++;
    fill->next = chunk + 1;
    if (--fill->missing == 0)
        leave_queues_locked(fills, fill);
}

static uint64_t next_missing(const StoreFill *fill)
{
    const uint8_t *from = fill->chunks + fill->next, *end = fill->chunks + fill->n_chunks;
    const uint8_t *found = memchr(from, CHUNK_MISSING, (size_t)(end - from));
    if (!found)
        found = memchr(fill->chunks, CHUNK_MISSING, fill->n_chunks);
    return (uint64_t)(found - fill->chunks);
}

/*
 * Chooses what to fetch next. Fills take turns within each queue: `wanted` have readers waiting,
 * `running` have chunks missing, `deferred` are left to a reader until their time has come.
 */
static StoreFill *pick_locked(Fills *fills, uint64_t *chunk, uint64_t *wait_until_ms)
{
    StoreFill *fill;
    while ((fill = TAILQ_FIRST(&fills->wanted))) {
        TAILQ_REMOVE(&fills->wanted, fill, wanted_link);
        fill->in_wanted = FALSE;
        Waiter *waiter;
        TAILQ_FOREACH(waiter, &fill->waiters, link)
        if (fill->chunks[waiter->chunk] == CHUNK_MISSING)
            break;
        if (!waiter)
            continue;
        *chunk = waiter->chunk;
        TAILQ_INSERT_TAIL(&fills->wanted, fill, wanted_link);
        fill->in_wanted = TRUE;
        claim_locked(fills, fill, *chunk);
        return fill;
    }
    uint64_t now = store_mono_ms();
    while ((fill = TAILQ_FIRST(&fills->deferred)) && fill->not_before_ms <= now)
        run_locked(fills, fill);
    *wait_until_ms = fill ? fill->not_before_ms : 0;
    fill = TAILQ_FIRST(&fills->running);
    if (!fill)
        return NULL;
    TAILQ_REMOVE(&fills->running, fill, run_link);
    TAILQ_INSERT_TAIL(&fills->running, fill, run_link);
    *chunk = next_missing(fill);
    claim_locked(fills, fill, *chunk);
    return fill;
}

/* --- ends of a fill --- */

static void fail_locked(Fills *fills, StoreFill *fill, int error)
{
    if (state_of(fill) != FILL_ACTIVE)
        return;
    fill->error = fill->result = error;
    atomic_store_explicit(&fill->state, FILL_FAILED, memory_order_release);
    leave_queues_locked(fills, fill);
    if (g_hash_table_lookup(fills->by_id, &fill->id) == fill)
        g_hash_table_remove(fills->by_id, &fill->id);
    if (fill->ready)
        atomic_fetch_add(&fills->failed, 1);
    pthread_cond_broadcast(&fill->changed);
}

static void complete_locked(Fills *fills, StoreFill *fill, int result)
{
    if (state_of(fill) != FILL_ACTIVE)
        return;
    fill->result = result;
    atomic_store_explicit(&fill->state, FILL_COMPLETE, memory_order_release);
    if (g_hash_table_lookup(fills->by_id, &fill->id) == fill)
        g_hash_table_remove(fills->by_id, &fill->id);
    if (fill->ready)
        atomic_fetch_add(result == 0 ? &fills->completed : &fills->failed, 1);
    pthread_cond_broadcast(&fill->changed);
}

/* Gives back what a terminal fill has of its origin. Drops the lock meanwhile, and its reference.
 */
static void release_if_idle_locked(Fills *fills, StoreFill *fill)
{
    Store *store = fill->store;
    if (state_of(fill) == FILL_ACTIVE || fill->busy > 0 || fill->releasing)
        return;
    fill->releasing = TRUE;
    Origin *origin = fill->origin;
    OriginNode *node = fill->node;
    OriginFile *file = fill->file;
    gboolean reserved = fill->reserved;
    fill->reserved = FALSE;
    pthread_mutex_unlock(&fills->lock);
    if (file)
        origin->ops->close(origin, file);
    if (node)
        origin->ops->put(origin, node);
    layout_partial_forget(&store->layout, &fill->partial);
    if (reserved)
        ledger_unreserve(&store->ledger, record_charge(fill->key.size));
    pthread_mutex_lock(&fills->lock);
    fill->origin = NULL;
    fill->node = NULL;
    fill->file = NULL;
    LIST_REMOVE(fill, live_link);
    fills->n_live--;
    pthread_cond_broadcast(&fills->released);
    pthread_mutex_unlock(&fills->lock);
    store_fill_unref(fill);
    pthread_mutex_lock(&fills->lock);
}

static uint64_t checksum_of(const StoreFill *fill)
{
    return XXH3_64bits(fill->hashes, fill->n_chunks * sizeof(uint64_t));
}

/* All chunks are there: is it still the same file? Then keep it. Called with busy > 0, unlocked. */
static void finish(StoreFill *fill, gboolean patient)
{
    Store *store = fill->store;
    Fills *fills = &store->fills;
    Origin *origin = fill->origin;
    OriginAttr attr;
    int rc = origin->ops->getattr(origin, fill->node, &attr);
    if (rc == 0) {
        ObjectKey now;
        ObjectId id;
        object_key_init(&now, origin, &attr);
        object_key_id(&now, &id);
        if (!object_id_equal(&id, &fill->id))
            rc = -ESTALE;
    }
    if (rc < 0) {
        pthread_mutex_lock(&fills->lock);
        fail_locked(fills, fill, rc);
        pthread_mutex_unlock(&fills->lock);
        return;
    }
    Record record = {
        .key = fill->key,
        .chunk_bytes = (uint32_t)fill->chunk_bytes,
        .data_checksum = checksum_of(fill),
        .last_use_ms = store_wall_ms(store),
        .tag = fill->tag,
    };
    /* What is read is right even if it cannot be kept: only store_fill_wait() tells. */
    rc = store_publish(store, &fill->partial, &record, patient);
    pthread_mutex_lock(&fills->lock);
    if (rc == 0)
        fill->reserved = FALSE;
    complete_locked(fills, fill, rc == -EEXIST ? 0 : rc);
    pthread_mutex_unlock(&fills->lock);
}

/* --- fetching --- */

static int open_origin_file(Fills *fills, StoreFill *fill)
{
    pthread_mutex_lock(&fills->lock);
    while (fill->opening)
        pthread_cond_wait(&fill->changed, &fills->lock);
    int rc = fill->error;
    if (rc == 0 && !fill->file) {
        OriginFile *file = NULL;
        fill->opening = TRUE;
        pthread_mutex_unlock(&fills->lock);
        rc = fill->origin->ops->open(fill->origin, fill->node, O_RDONLY | O_DIRECT, &file);
        pthread_mutex_lock(&fills->lock);
        fill->opening = FALSE;
        fill->file = rc == 0 ? file : NULL;
        if (rc < 0)
            fail_locked(fills, fill, rc);
        pthread_cond_broadcast(&fill->changed);
    }
    pthread_mutex_unlock(&fills->lock);
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

static int fetch(StoreFill *fill, uint64_t chunk, uint8_t *buf)
{
    Store *store = fill->store;
    Origin *origin = fill->origin;
    uint64_t off = chunk * fill->chunk_bytes;
    size_t len = (size_t)MIN(fill->chunk_bytes, fill->key.size - off);
    int rc = len ? open_origin_file(&store->fills, fill) : 0;
    for (size_t done = 0; rc == 0 && done < len;) {
        if (state_of(fill) == FILL_FAILED)
            return -ECANCELED;
        ssize_t n = origin->ops->read(origin, fill->file, buf + done, len - done, off + done);
        if (n == -EINTR)
            continue;
        if (n <= 0) /* shorter than its attributes said: it was truncated */
            return n < 0 ? (int)n : -ESTALE;
        atomic_fetch_add(&store->fills.origin_bytes, (uint64_t)n);
        done += (size_t)n;
    }
    if (rc < 0)
        return rc;
    fill->hashes[chunk] = htole64(XXH3_64bits(buf, len));
    rc = write_all(store, fill->partial.fd, buf, len, off);
    if (rc == -ENOSPC || rc == -EDQUOT) {
        room_forget(store);
        wake_kick(&store->evictor);
    } else if (rc < 0) {
        disk_failed(&store->disk, rc, store_mono_ms());
    }
    return rc;
}

/* Fetches a chunk that was claimed. Enters and leaves with the lock held; the fill may be gone
 * then. */
static void fetch_claimed_locked(Fills *fills, StoreFill *fill, uint64_t chunk, uint8_t *buf,
                                 gboolean patient)
{
    pthread_mutex_unlock(&fills->lock);
    int rc = fetch(fill, chunk, buf);
    pthread_mutex_lock(&fills->lock);
    if (rc < 0) {
        fail_locked(fills, fill, rc);
    } else {
        fill->chunks[chunk] = CHUNK_DONE;
        fill->done++;
        pthread_cond_broadcast(&fill->changed);
        if (fill->done == fill->n_chunks && state_of(fill) == FILL_ACTIVE) {
            pthread_mutex_unlock(&fills->lock);
            finish(fill, patient);
            pthread_mutex_lock(&fills->lock);
        }
    }
    fill->busy--;
    release_if_idle_locked(fills, fill);
}

static void *worker(void *data)
{
    Store *store = data;
    Fills *fills = &store->fills;
    size_t size = store->config.chunk_bytes;
    gboolean dirty = FALSE;
    pthread_mutex_lock(&fills->lock);
    uint8_t *buf = fills->buffers + size * fills->n_buffers++;
    while (!fills->stop) {
        uint64_t chunk, until = 0;
        StoreFill *fill = pick_locked(fills, &chunk, &until);
        if (fill) {
            dirty = TRUE;
            /* One signal wakes one worker; where there is more to do, that one wakes the next. */
            if (!TAILQ_EMPTY(&fills->wanted) || !TAILQ_EMPTY(&fills->running) ||
                (!TAILQ_EMPTY(&fills->deferred) && !fills->timing))
                pthread_cond_signal(&fills->work);
            fetch_claimed_locked(fills, fill, chunk, buf, TRUE);
            continue;
        }
        if (dirty) { /* idle: the kernel may have the memory when it needs it */
            dirty = FALSE;
            madvise(buf, size, MADV_FREE);
        }
        if (until && !fills->timing) {
            uint64_t now = store_mono_ms();
            struct timespec deadline = deadline_after_ms(until > now ? until - now : 0);
            fills->timing = TRUE;
            pthread_cond_timedwait(&fills->work, &fills->lock, &deadline);
            fills->timing = FALSE;
        } else {
            pthread_cond_wait(&fills->work, &fills->lock);
        }
    }
    pthread_mutex_unlock(&fills->lock);
    return NULL;
}

/* --- joining and beginning --- */

static StoreFill *fill_new(Store *store, Origin *origin, const ObjectKey *key, const ObjectId *id,
                           const char *tag)
{
    StoreFill *fill = g_new0(StoreFill, 1);
    fill->refs = 2; /* the caller's, and that of `live` */
    fill->store = store;
    fill->origin = origin;
    fill->key = *key;
    fill->id = *id;
    tag_id(tag, &fill->tag);
    fill->partial.fd = -1;
    fill->chunk_bytes = store->config.chunk_bytes;
    fill->n_chunks = MAX(1, (key->size + fill->chunk_bytes - 1) / fill->chunk_bytes);
    fill->missing = fill->n_chunks;
    fill->busy = 1; /* the beginner */
    TAILQ_INIT(&fill->waiters);
    pthread_cond_init(&fill->changed, NULL);
    return fill;
}

/* Finds the object or makes ready to fetch it. 1: it is there already; 0; -errno. Unlocked. */
static int prepare(Store *store, StoreFill *fill, OriginNode *node)
{
    /* A fill of it may have ended between the caller's look and this one. */
    int fd = store_open_present(store, &fill->id, fill->key.size);
    if (fd >= 0) {
        fill->partial.fd = fd;
        return 1;
    }
    if (!room_reserve(store, fill->key.size))
        return -ENOSPC;
    fill->reserved = TRUE;
    int rc = layout_partial_create(&store->layout, &fill->partial);
    if (rc < 0) {
        disk_failed(&store->disk, rc, store_mono_ms());
        return rc;
    }
    fill->chunks = g_malloc0(fill->n_chunks);
    fill->hashes = g_malloc0(fill->n_chunks * sizeof(uint64_t));
    fill->node = fill->origin->ops->get(fill->origin, node);
    return 0;
}

static void make_ready_locked(Fills *fills, StoreFill *fill)
{
    fill->ready = TRUE;
    atomic_fetch_add(&fills->started, 1);
    if (fill->n_chunks > 1 || !TAILQ_EMPTY(&fill->waiters)) {
        TAILQ_INSERT_TAIL(&fills->running, fill, run_link);
        fill->in_running = TRUE;
        if (!TAILQ_EMPTY(&fill->waiters))
            want_locked(fills, fill);
        pthread_cond_signal(&fills->work);
    } else {
        fill->not_before_ms = store_mono_ms() + fill->store->hooks.grace_ms;
        TAILQ_INSERT_TAIL(&fills->deferred, fill, run_link);
        fill->in_deferred = TRUE;
        if (!fills->timing)
            pthread_cond_signal(&fills->work);
    }
}

StoreFill *store_fill(Store *store, Origin *origin, OriginNode *node, const ObjectKey *key,
                      const char *tag)
{
    Fills *fills = &store->fills;
    ObjectId id;
    if (disk_state(&store->disk) == STORE_DISK_BYPASS ||
        key->size / store->config.chunk_bytes >= FILL_CHUNKS_MAX)
        return NULL;
    object_key_id(key, &id);

    pthread_mutex_lock(&fills->lock);
    StoreFill *fill = g_hash_table_lookup(fills->by_id, &id);
    if (fill || fills->stop || fills->n_live >= FILLS_MAX) {
        if (fill)
            store_fill_ref(fill);
        pthread_mutex_unlock(&fills->lock);
        return fill;
    }
    fill = fill_new(store, origin, key, &id, tag);
    g_hash_table_insert(fills->by_id, &fill->id, fill);
    LIST_INSERT_HEAD(&fills->live, fill, live_link);
    fills->n_live++;
    pthread_mutex_unlock(&fills->lock);

    int rc = prepare(store, fill, node);

    pthread_mutex_lock(&fills->lock);
    if (rc < 0)
        fail_locked(fills, fill, rc);
    else if (rc > 0)
        complete_locked(fills, fill, 0);
    else if (state_of(fill) == FILL_ACTIVE)
        make_ready_locked(fills, fill);
    fill->busy--;
    release_if_idle_locked(fills, fill);
    pthread_mutex_unlock(&fills->lock);
    if (rc >= 0)
        return fill;
    store_fill_unref(fill);
    return NULL;
}

/* --- readers --- */

/* Fetches a one-chunk object on the reader's thread if nobody has begun. Lock held; dropped inside.
 */
static gboolean fetch_inline_locked(Fills *fills, StoreFill *fill)
{
    size_t size = MAX((size_t)fill->key.size, 1);
    if (!fill->ready || fill->n_chunks != 1 || fill->chunks[0] != CHUNK_MISSING ||
        size > FILL_INLINE_MAX || fills->inline_bytes + size > FILL_INLINE_TOTAL)
        return FALSE;
    claim_locked(fills, fill, 0);
    fills->inline_bytes += size;
    pthread_mutex_unlock(&fills->lock);
    uint8_t *buf = g_malloc(size);
    pthread_mutex_lock(&fills->lock);
    fetch_claimed_locked(fills, fill, 0, buf, FALSE);
    pthread_mutex_unlock(&fills->lock);
    g_free(buf);
    pthread_mutex_lock(&fills->lock);
    fills->inline_bytes -= size;
    return TRUE;
}

static int wait_chunk_locked(Fills *fills, StoreFill *fill, uint64_t chunk)
{
    Waiter waiter = {.chunk = chunk};
    gboolean waiting = FALSE;
    while (state_of(fill) == FILL_ACTIVE && !(fill->ready && fill->chunks[chunk] == CHUNK_DONE)) {
        if (fetch_inline_locked(fills, fill))
            continue;
        if (!waiting) {
            TAILQ_INSERT_TAIL(&fill->waiters, &waiter, link);
            waiting = TRUE;
            pthread_cond_broadcast(&fill->changed);
        }
        if (fill->ready && fill->chunks[chunk] == CHUNK_MISSING)
            want_locked(fills, fill);
        pthread_cond_wait(&fill->changed, &fills->lock);
    }
    if (waiting)
        TAILQ_REMOVE(&fill->waiters, &waiter, link);
    return state_of(fill) == FILL_FAILED ? fill->error : 0;
}

ssize_t store_fill_read(StoreFill *fill, void *buf, size_t len, uint64_t off)
{
    Fills *fills = &fill->store->fills;
    int rc = 0;
    if (off >= fill->key.size)
        len = 0;
    else
        len = MIN(len, fill->key.size - off);
    if (state_of(fill) != FILL_COMPLETE) {
        uint64_t last = len ? (off + len - 1) / fill->chunk_bytes : 0;
        pthread_mutex_lock(&fills->lock);
        for (uint64_t chunk = off / fill->chunk_bytes; len && rc == 0 && chunk <= last; chunk++)
            rc = wait_chunk_locked(fills, fill, chunk);
        pthread_mutex_unlock(&fills->lock);
    }
    if (rc < 0)
        return rc;
    for (size_t done = 0; done < len;) {
        ssize_t n = pread(fill->partial.fd, (char *)buf + done, len - done, (off_t)(off + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            rc = n < 0 ? -errno : -EIO;
            disk_failed(&fill->store->disk, rc, store_mono_ms());
            return rc;
        }
        done += (size_t)n;
    }
    return (ssize_t)len;
}

int store_fill_wait(StoreFill *fill)
{
    Fills *fills = &fill->store->fills;
    pthread_mutex_lock(&fills->lock);
    promote_locked(fills, fill);
    while (state_of(fill) == FILL_ACTIVE)
        pthread_cond_wait(&fill->changed, &fills->lock);
    int rc = fill->result;
    pthread_mutex_unlock(&fills->lock);
    return rc;
}

void store_fill_await_waiter(StoreFill *fill)
{
    Fills *fills = &fill->store->fills;
    pthread_mutex_lock(&fills->lock);
    while (TAILQ_EMPTY(&fill->waiters))
        pthread_cond_wait(&fill->changed, &fills->lock);
    pthread_mutex_unlock(&fills->lock);
}

/* --- stopping --- */

static StoreFill *find_live_locked(Fills *fills, const Origin *origin)
{
    StoreFill *fill;
    LIST_FOREACH(fill, &fills->live, live_link)
    if (!origin || fill->origin == origin)
        break;
    return fill;
}

static void cancel_locked(Fills *fills, Origin *origin)
{
    for (;;) {
        StoreFill *fill, *idle = NULL;
        LIST_FOREACH(fill, &fills->live, live_link)
        {
            if (origin && fill->origin != origin)
                continue;
            fail_locked(fills, fill, -ECANCELED);
            if (fill->busy == 0 && !fill->releasing)
                idle = fill;
        }
        if (idle)
            release_if_idle_locked(fills, idle);
        else if (find_live_locked(fills, origin))
            pthread_cond_wait(&fills->released, &fills->lock);
        else
            return;
    }
}

void store_cancel_fills(Store *store, Origin *origin)
{
    pthread_mutex_lock(&store->fills.lock);
    cancel_locked(&store->fills, origin);
    pthread_mutex_unlock(&store->fills.lock);
}

void fills_init(Store *store)
{
    Fills *fills = &store->fills;
    pthread_mutex_init(&fills->lock, NULL);
    cond_init_monotonic(&fills->work);
    pthread_cond_init(&fills->released, NULL);
    fills->by_id = g_hash_table_new(object_id_hash, object_id_equal);
    LIST_INIT(&fills->live);
    TAILQ_INIT(&fills->wanted);
    TAILQ_INIT(&fills->running);
    TAILQ_INIT(&fills->deferred);
}

gboolean fills_start(Store *store, GError **error)
{
    Fills *fills = &store->fills;
    /* Address space until it is used. */
    fills->buffers_bytes = store->config.chunk_bytes * store->config.fill_threads;
    void *buffers = mmap(NULL, fills->buffers_bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buffers == MAP_FAILED) {
        g_set_error(error, G_IO_ERROR, g_io_error_from_errno(errno),
                    "cache: %u fill buffers of %zu bytes: %s", store->config.fill_threads,
                    store->config.chunk_bytes, g_strerror(errno));
        return FALSE;
    }
    fills->buffers = buffers;
    fills->threads = g_new0(pthread_t, store->config.fill_threads);
    for (unsigned i = 0; i < store->config.fill_threads; i++) {
        int rc = pthread_create(&fills->threads[i], NULL, worker, store);
        if (rc != 0) {
            g_set_error(error, G_IO_ERROR, g_io_error_from_errno(rc),
                        "cache: starting fill thread %u of %u: %s", i + 1,
                        store->config.fill_threads, g_strerror(rc));
            return FALSE;
        }
        fills->n_threads++;
    }
    return TRUE;
}

void fills_stop(Store *store)
{
    Fills *fills = &store->fills;
    pthread_mutex_lock(&fills->lock);
    fills->stop = TRUE;
    cancel_locked(fills, NULL);
    pthread_cond_broadcast(&fills->work);
    pthread_mutex_unlock(&fills->lock);
    for (unsigned i = 0; i < fills->n_threads; i++)
        pthread_join(fills->threads[i], NULL);
    fills->n_threads = 0;
}

void fills_destroy(Store *store)
{
    Fills *fills = &store->fills;
    g_hash_table_destroy(fills->by_id);
    g_free(fills->threads);
    if (fills->buffers)
        munmap(fills->buffers, fills->buffers_bytes);
    pthread_cond_destroy(&fills->work);
    pthread_cond_destroy(&fills->released);
    pthread_mutex_destroy(&fills->lock);
}
