/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fill, for the files that run it, from the bottom up: pace.c (a bound on bytes per second),
 * threads.c (starting and waking the threads that fetch), stuck.c (those that wait long for their
 * origin), queue.c (which chunk is fetched next), recent.c (what was fetched last), wait.c (readers
 * that wait), state.c (references and the end of a fill), fetch.c (fetching a chunk), worker.c
 * (what such a thread does), fill.c (joining and reading), fills.c (starting and stopping).
 *
 * Invariants, under Fills.lock:
 *   - a chunk goes [UNREAD <->] MISSING -> BUSY -> DONE, and only the thread that made it BUSY
 * fetches it;
 *   - `busy` counts threads that may use the origin; the origin's node and file are given back by
 *     the thread that finds the fill terminal with busy == 0; only then does it leave `live`;
 *   - the temporary file is never written once all chunks are DONE, so what gets linked is final.
 *
 * Files of many chunks that are fetched ahead or in parts bypass the page cache: their bytes would
 * drive out pages in use, only one thread at a time can fill the page cache of a file, and what a
 * reader reads is in the page cache already, as pages of the mount. Such a file is a multiple of
 * FILL_ALIGN long until the last step cuts it.
 */
#ifndef HEARTH_CACHE_STORE_FILL_INTERNAL_H
#define HEARTH_CACHE_STORE_FILL_INTERNAL_H

#include "cache/store/fill/fills.h"
#include "cache/store/fill/pace.h"

/* UNREAD: not to be fetched yet (parts.c). */
enum { CHUNK_MISSING, CHUNK_BUSY, CHUNK_DONE, CHUNK_UNREAD };
enum { FILL_ACTIVE, FILL_COMPLETE, FILL_FAILED };

#define FILL_ALIGN ((uint64_t)4096)

/* A worker that is woken under the lock would wait for it at once. */
static inline void fills_unlock(Fills *fills)
{
    const gboolean wakes = fills->wakes;
    fills->wakes = FALSE;
    pthread_mutex_unlock(&fills->lock);
    if (wakes)
        pthread_cond_signal(&fills->work);
}

static inline void fills_wait(Fills *fills, pthread_cond_t *changed)
{
    if (fills->wakes)
        pthread_cond_signal(&fills->work);
    fills->wakes = FALSE;
    pthread_cond_wait(changed, &fills->lock);
}

static inline uint64_t fill_aligned(uint64_t bytes)
{
    return (bytes + FILL_ALIGN - 1) & ~(FILL_ALIGN - 1);
}

/* Reads that follow one another. */
typedef struct ReadStream {
    uint64_t first, next; /* where it began, and where it goes on */
    uint64_t bytes;       /* that were read */
    uint64_t asked;       /* up to where the object is fetched */
    uint64_t used;        /* FillParts.reads then; 0: there is none */
} ReadStream;

#define FILL_STREAMS 32
typedef struct FillParts {
    ReadStream streams[FILL_STREAMS];
    uint64_t reads;
    gboolean whole; /* all of it is fetched, also after its readers have left */
} FillParts;

struct StoreFill {
    atomic_uint refs;
    atomic_int state;
    Store *store;
    ObjectId id;
    ObjectKey key;
    TagId tag;
    Partial partial; /* set before `ready` */
    int direct;      /* of the same file, past the page cache; -1: not for this one; as partial */
    uint64_t chunk_bytes, n_chunks;
    char *path;       /* from the root of the origin; used while `node` is NULL */
    FillParts *parts; /* NULL: it is fetched as a whole */

    /* Fills.lock: */
    Origin *origin;     /* NULL once released */
    FillSource *source; /* likewise */
    OriginNode *node;   /* NULL until fetching begins for one that is known by its number */
    OriginFile *file;
    gboolean ready;   /* chunks may be fetched */
    gint64 began_us;  /* since when they may */
    gboolean opening; /* a thread opens `file`; the others wait on `changed` */
    gboolean releasing;
    uint64_t reserved; /* bytes of space that must be given back */
    uint64_t written;  /* how many of them the file has, of a fill in parts */
    unsigned busy;
    int error;  /* of a failed fill: what readers get */
    int result; /* what store_fill_wait() returns */
    uint8_t *chunks;
    uint64_t *hashes;
    uint64_t missing, done, next;
    uint64_t not_before_ms; /* while deferred */
    gboolean in_wanted, in_running, in_deferred;
    gboolean spoiled; /* not to be kept: store_spoil_fills() */
    gboolean ahead;   /* no reader needs it: `running` is then the queue `ahead` */
    StorePace *pace;  /* while it is */
    gboolean is_parked;
    TAILQ_HEAD(, FillWait) waiters;
    pthread_cond_t changed;
    TAILQ_ENTRY(StoreFill) wanted_link, run_link; /* run_link: running or deferred */
    TAILQ_ENTRY(StoreFill) parked_link;
    LIST_ENTRY(StoreFill) live_link;
};

static inline int fill_state(StoreFill *fill)
{
    return atomic_load_explicit(&fill->state, memory_order_acquire);
}

/* --- wait.c; with Fills.lock held --- */
/* A chunk is there, chunks may be fetched, or it has ended: tells its readers. */
void fill_changed_locked(StoreFill *fill);
/* 0: all that it waits for is there; -EINPROGRESS; or what a failed fill gives. */
int fill_progress_locked(const StoreFill *fill, FillWait *wait);

/* --- state.c; all with Fills.lock held --- */
void fill_fail_locked(Fills *fills, StoreFill *fill, int error);
/* `result` is for store_fill_wait(): readers are served in any case. */
void fill_complete_locked(Fills *fills, StoreFill *fill, int result);
/*
 * Gives back what a terminal fill has of its origin, and the reference of `live`. Drops the lock
 * meanwhile; the fill may be gone then.
 */
void fill_release_if_idle_locked(Fills *fills, StoreFill *fill);
/* A parked one is used again, or ends. */
void fill_unpark_locked(Fills *fills, StoreFill *fill);
/* For the one who gave back the last reference. */
void fill_free(StoreFill *fill);

/* --- queue.c; all with Fills.lock held --- */
/* Gives a fill that is ready to the threads. */
void fill_enqueue_locked(Fills *fills, StoreFill *fill);
/* A reader waits for a chunk of it. */
void fill_want_locked(Fills *fills, StoreFill *fill);
/* Asks for the chunk that a reader waits for, if there is one that no thread fetches yet. */
void fill_want_next_locked(Fills *fills, StoreFill *fill);
/* Does not leave it to a reader any longer. */
void fill_promote_locked(Fills *fills, StoreFill *fill);
/* A reader has joined a fill that no reader needed before. */
void fill_need_locked(Fills *fills, StoreFill *fill);
void fill_leave_queues_locked(StoreFill *fill);
/* More chunks of it are missing. */
void fill_run_more_locked(Fills *fills, StoreFill *fill);
/* Makes n missing chunks the caller's to fetch. */
void fill_claim_locked(StoreFill *fill, uint64_t chunk, uint64_t n);
/* Chunks for a worker. It counts in the `busy` of Fills and FillSource, and if it is `ahead` in
 * Fills.ahead_busy, or in `stuck`, until fill_picked_done_locked(). */
typedef struct FillPick {
    StoreFill *fill;
    FillSource *source;
    uint64_t chunk, n;
    gboolean ahead;
    uint8_t *buf; /* for its bytes */
    uint64_t bytes, began_ms;
    unsigned cost;              /* of one that is stuck; 0: it is not */
    gboolean answered;          /* by the origin; the disk may still be written */
    TAILQ_ENTRY(FillPick) link; /* Fills.picks, of one that is neither */
} FillPick;
/* Chooses and claims, for a worker with that buffer. FALSE: nothing to do before *wait_until_ms (0:
 * no such time). */
gboolean fill_pick_locked(const Store *store, uint8_t *buf, FillPick *pick,
                          uint64_t *wait_until_ms);
void fill_picked_done_locked(Fills *fills, FillPick *pick);
gboolean fill_queues_empty_locked(const Fills *fills);
/* A fill begins, and ends, to use its origin. */
void fill_source_join_locked(Fills *fills, StoreFill *fill);
void fill_source_leave_locked(Fills *fills, StoreFill *fill);

/* --- parts.c; those that end in _locked with Fills.lock held --- */
/* The size of a chunk of an object that is fetched in parts. */
uint64_t fill_part_bytes(const Store *store, uint64_t size);
/* A reader reads: this is fetched, and what it will read next. */
void fill_read_locked(Fills *fills, StoreFill *fill, uint64_t off, uint64_t len);
/* A reader waits for this chunk. */
void fill_ask_locked(Fills *fills, StoreFill *fill, uint64_t chunk);
/* Fetches all of it, also after its readers have left. */
void fill_ask_rest_locked(Fills *fills, StoreFill *fill);
/* Gives back a reference to a fill in parts. */
void fill_left(StoreFill *fill);
/* Ends a fill: what it has is lost. */
void fill_drop_locked(Fills *fills, StoreFill *fill);
/* Gives back what a parked fill without workers, or a terminal one, has of its origin. Drops the
 * lock meanwhile; the fill may be gone then. */
void fill_put_origin_locked(Fills *fills, StoreFill *fill);
/* Makes space. FALSE: none is parked. */
gboolean fill_drop_oldest_parked(Fills *fills);

/* --- recent.c --- */
/* After a fetch: leaves the pick's buffer with its bytes to readers, and takes another one. */
void fill_recent_leave_locked(Fills *fills, FillPick *pick);
/* Bytes at `off`, as many as there are of at most `len`; without the lock. */
size_t fill_recent_read(StoreFill *fill, void *buf, size_t len, uint64_t off);
/* The fill has no reader. */
void fill_recent_forget_locked(Fills *fills, const StoreFill *fill);
void fill_recent_forget(const StoreFill *fill);

/* --- fetch.c --- */
/*
 * Fetches chunks that were claimed into the pick's buffer and the file; the last one also ends the
 * fill. Enters and leaves with the lock held; the fill may be gone then, unless the caller has a
 * reference.
 */
void fill_fetch_claimed_locked(Fills *fills, FillPick *pick, gboolean patient);

/* --- stuck.c; with Fills.lock held --- */
/* A worker takes the pick. */
void fill_pick_begins_locked(Fills *fills, FillPick *pick, uint64_t now);
/* It waits for its origin no more. */
void fill_pick_answered_locked(Fills *fills, FillPick *pick);
void fill_pick_ends_locked(Fills *fills, FillPick *pick);
/* Finds workers that are stuck now; 0, or when another one will be. */
uint64_t fill_find_stuck_locked(Fills *fills, const Store *store, uint64_t now);

/* --- threads.c; those that end in _locked with Fills.lock held --- */
typedef struct FillWorker {
    Store *store;
    uint8_t *buf; /* of chunk_bytes */
    pthread_t thread;
    gboolean runs, ended; /* Fills.lock; ended: to be joined */
} FillWorker;
/* 0 or an errno. */
int fill_workers_init(Fills *fills, Store *store);
/* There is something to fetch: wakes a worker, or starts one more. */
void fill_wake_worker_locked(Fills *fills);
/* Starts the first one. */
int fill_start_worker_locked(Fills *fills);
/* Whether no more than one has nothing to do; or none. */
gboolean fill_one_worker_left_locked(const Fills *fills);
/* Before something is picked: starts one, if that leaves too few, or threads are scarce. */
void fill_more_workers_locked(Fills *fills);
/* Whether there are more than are needed, of which the caller is one; it ends then. */
gboolean fill_worker_may_end_locked(Fills *fills, FillWorker *worker);
/* After Fills.stop is set. */
void fill_workers_join(Fills *fills);
void fill_workers_clear(Fills *fills);

/* --- worker.c --- */
void *fill_worker(void *worker);

#endif
