/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of this folder, from the bottom up: kept.c (what is kept of one image, and
 * whether it may be used), buffers.c (the bound on memory), space.c (the bound on the disk),
 * carrier.c (bytes on their way to the disk), clone.c (what a clone has from its parent), watch.c
 * (whether an image is still ours), fetch.c (reading from Ceph, and ahead), cached.c (an image over
 * another), images.c (all of them).
 *
 * Locks, in order: Kept.break_lock, held across a call to Ceph; ImageCache.lock;
 * ImageCache.wanting_lock; Flights.lock; Cached.lock, a leaf.
 */
#ifndef HEARTH_CACHE_BLOCK_INTERNAL_H
#define HEARTH_CACHE_BLOCK_INTERNAL_H

#include <stdatomic.h>
#include "cache/block/file.h"
#include "cache/block/in_flight.h"
#include "cache/block/images.h"
#include "cache/block/workers.h"
#include "common/wake.h"

#define DEFAULT_CHUNK_BYTES 65536u
/* The unit of eviction: a use of any block counts for its whole region. */
#define REGION_BYTES (4u << 20)
/* Longer reads, and reads ahead, are split at multiples of this. */
#define FETCH_UNIT_BYTES (1u << 20)
/* Buffers that wait for Ceph or the disk, without those of requests. */
#define BUFFERS_MAX_BYTES (64u << 20)

struct ImageCache {
    Store *store;
    uint32_t chunk_bytes;
    char *path; /* of images/ */
    int dir_fd; /* of it; -1: it could not be made */
    Workers *installers;
    atomic_ulong buffers; /* bytes */
    size_t buffers_max;
    pthread_mutex_t wanting_lock;
    GQueue wanting; /* wanting_lock: BufferWaiter */
    pthread_mutex_t lock;
    GHashTable *kept;       /* lock: name -> Kept */
    GQueue open;            /* lock: Cached */
    pthread_cond_t changed; /* lock: an image is no longer busy, or held */
    Wake keeper;
    pthread_t keeper_thread;
    atomic_ulong bytes, room; /* as last counted, and what was added since */
};

/* What is kept of one image. */
typedef struct Kept {
    ImageCache *cache;
    char *name;
    unsigned users, held;        /* ImageCache.lock: openings; holds of the keeper */
    gboolean busy;               /* ImageCache.lock: being opened or closed, which waits for Ceph */
    gboolean immutable, guarded; /* as of ImageContent */
    uint64_t version;            /* of one that is guarded */
    BlockFile *file;
    Flights flights;
    pthread_mutex_t break_lock; /* held while it is being broken */
    atomic_bool broken;         /* words may be wrong: not used any more */
    atomic_bool dirty;          /* words were written that may not be on the disk */
    struct Cached *writer;      /* flights.lock: the opening for writing; NULL: none */
    atomic_ulong bytes;         /* as last counted, and what was added since */
    atomic_ulong quota_bytes;
    _Atomic uint64_t end;  /* of the last whole block of the image */
    _Atomic uint8_t *used; /* of each region; of `regions` */
    uint64_t regions;
    _Atomic uint64_t hand;
} Kept;

/* Sequential reading; a hint alone. */
typedef struct Ahead {
    pthread_mutex_t lock;
    uint64_t end, run, asked; /* lock: of what was read, in a row; what was read ahead to */
} Ahead;

/* Whether kept blocks may be used (watch.c). */
typedef struct Watch {
    Wake wake;
    pthread_t thread;
    gboolean runs;           /* the thread does */
    atomic_bool lost;        /* another client has the image now: kept blocks are old */
    _Atomic int64_t good_ns; /* when the last check that was answered with 0 was sent */
    gboolean forget;   /* Cached.lock: another client may have written; the thread forgets all */
    gboolean checking; /* Cached.lock */
    int64_t sent_ns;   /* Cached.lock: of the check under way */
} Watch;

typedef struct Cached {
    Image base;
    Image *beneath;
    Kept *kept;
    Kept *parent;                /* of the snapshot it was cloned from; NULL: nothing is kept */
    _Atomic uint64_t parent_end; /* blocks before this may be the parent's */
    GList link;                  /* of ImageCache.open */
    Ahead ahead;
    pthread_mutex_t lock;
    pthread_cond_t idle;
    unsigned under_way; /* lock */
    Watch watch;
    atomic_ulong bytes_hit, bytes_fetched;
} Cached;

/* Bytes under way that will be installed. */
typedef struct Carrier {
    Flight flight; /* first */
    Cached *cached;
    Kept *kept; /* where: its own, or its parent's */
    uint64_t off;
    uint64_t len; /* to install: whole blocks; 0: none */
    char *buf;    /* NULL: zeros */
    char *owned;  /* buf, if it must be freed */
    size_t buffered;
} Carrier;

/* A read that waits for buffers. Embedded in the reader's own structure. */
typedef struct BufferWaiter {
    /* How many it needs now. Under ImageCache.wanting_lock. */
    size_t (*bytes_needed)(const struct BufferWaiter *waiter);
    /* What was counted for it in the end, and is to be given back. Under the same lock until it
     * begins. */
    size_t taken;
    /* Begins the read; the buffers are taken. No lock is held. */
    void (*begin)(struct BufferWaiter *waiter);
} BufferWaiter;

static inline uint64_t block_floor(uint64_t off)
{
    return off - off % BLOCK_BYTES;
}

static inline uint64_t block_ceil(uint64_t off)
{
    return block_floor(off + BLOCK_BYTES - 1);
}

/* --- kept.c --- */
gboolean kept_is_usable(const Kept *kept);
/*
 * The words could not be written: what is kept is not used again, in a later run either. A second
 * caller waits for the first, because only then may its write continue. Blocks on Ceph.
 */
void kept_break(Kept *kept, int error);
/* Notes a use of the range. */
void kept_use(Kept *kept, uint64_t off, uint64_t len);
/* Makes and opens the directory of images. -1: errno says why. */
int kept_open_dir(const ImageCache *cache);
/*
 * What is kept of the content, shared with other openings or begun. `beneath` may be NULL for a
 * snapshot. NULL: nothing is kept.
 */
Kept *kept_join(ImageCache *cache, const ImageContent *content, Image *beneath, uint64_t bytes,
                uint64_t quota_bytes);
/* What all clones of the image's parent share on this node; NULL: nothing. */
Kept *kept_join_parent(ImageCache *cache, Image *beneath, uint64_t quota_bytes);
/* Releases what image_cache_open() took: the image is not used any more. Frees `cached`. */
void kept_leave(Cached *cached);

/* --- buffers.c --- */
/* Counts `bytes` of buffers; FALSE: too many. Those for reading ahead leave room for others. */
gboolean buffers_take(ImageCache *cache, size_t bytes);
gboolean buffers_take_ahead(ImageCache *cache, size_t bytes);
/* Begins the waiter, now or when there are enough buffers. */
void buffers_wait(ImageCache *cache, BufferWaiter *waiter);
/* Gives them back, and begins waiters. */
void buffers_give(ImageCache *cache, size_t bytes);

/* --- space.c --- */
/* Whether `len` more may be kept; if so they are counted. */
gboolean block_space_take(Kept *kept, uint64_t len);
void *block_space_keeper(void *cache);

/* --- carrier.c --- */
/* A request on the image is under way: the image is not closed meanwhile. */
void cached_use(Cached *cached);
void cached_unuse(Cached *cached);
void carrier_begin_locked(Carrier *carrier);
/* Ceph has answered: unless spoilt, it is installed on a thread of the pool. Frees it, then. */
void carrier_landed(Carrier *carrier, gboolean good);
void carrier_install(void *carrier, void *unused);

/* --- clone.c --- */
/* Who keeps the range: the parent if all of it is the parent's. */
Kept *cached_kept_of(Cached *cached, uint64_t off, uint64_t len);
/* The range becomes the clone's own. Call it before Ceph gets the change. */
void cached_note_owned(Cached *cached, uint64_t off, uint64_t len);
/* Forgets all that is kept of the image; of a clone also what it has from its parent. */
void cached_forget(Cached *cached);

/* --- watch.c --- */
void watch_begin(Cached *cached);
/* Ends its thread. A check may still be under way. */
void watch_stop(Cached *cached);
void watch_destroy(Cached *cached);
/* Whether a hit may be answered. */
gboolean watch_is_good(const Cached *cached);
/* Checks an answer of Ceph: the image may be another client's by now. */
void watch_note(Cached *cached, ssize_t result);

/* --- fetch.c --- */
/* A read of whole blocks within the end that are not all kept. */
void fetch_read(Cached *cached, void *buf, size_t len, uint64_t off, ImageDone done, void *data);
/* Notes a read, and reads ahead if it is sequential. */
void fetch_ahead(Cached *cached, uint64_t off, size_t len);

/* --- cached.c --- */
Cached *cached_new(Kept *kept, Kept *parent, Image *beneath);

#endif
