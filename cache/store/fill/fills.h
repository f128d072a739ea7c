/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All fills of a store: the origins that they fetch from, the workers, starting and stopping. For
 * store.c, for the files of this folder and for tests.
 *
 * A fill is in `by_id` while others may join it, and in `live` until nothing of its origin is in
 * use. Workers are started when there is more to fetch than they can: StoreConfig.fill_threads, one
 * more for each that waits long for its origin, and one that sees that they do.
 */
#ifndef HEARTH_CACHE_STORE_FILL_FILLS_H
#define HEARTH_CACHE_STORE_FILL_FILLS_H

#include <sys/queue.h>
#include "cache/store/fill/fill.h"
#include "cache/store/objects/internal.h"

#define FILLS_MAX 1024
#define FILL_CHUNKS_MAX (1 << 20) /* 9 bytes of memory each */
/* Objects this small are fetched by a reader's own thread, within a common bound of memory. */
#define FILL_INLINE_MAX (1 << 20)
#define FILL_INLINE_TOTAL (16 << 20)

TAILQ_HEAD(FillQueue, StoreFill);
LIST_HEAD(FillList, StoreFill);
TAILQ_HEAD(FillPicks, FillPick);
/* Workers that wait long for their origins, at most (stuck.c). */
#define FILL_STUCK_MAX 256

/* Buffers that hold what was fetched last (recent.c), at most: as many as workers may be busy. */
#define FILL_RECENTS 16

typedef struct FillRecent {
    uint8_t *buf;
    StoreFill *fill; /* not a reference; NULL: it is free */
    uint64_t off, bytes;
    uint64_t left;   /* bytes that were not read yet, if none was read twice */
    uint64_t number; /* the oldest has the smallest */
    unsigned users;  /* that copy from it */
} FillRecent;

/* The fills from one origin. It exists while there are any. */
typedef struct FillSource {
    Origin *origin;
    unsigned fills;       /* of Fills.live */
    unsigned busy;        /* workers that fetch a chunk from it, but not those that are stuck */
    unsigned stuck, cost; /* of those: how many, and what they cost (stuck.c) */
    struct FillQueue wanted, running, deferred, ahead; /* queue.c */
    TAILQ_ENTRY(FillSource) turn;
} FillSource;

typedef struct Fills {
    pthread_mutex_t lock;    /* guards all below, but not what is atomic */
    pthread_cond_t work;     /* something to fetch, or stop */
    gboolean wakes;          /* one of `idle` is woken by who unlocks */
    pthread_cond_t released; /* a fill left `live` */
    GHashTable *by_id;       /* ObjectId * in the value -> StoreFill */
    struct FillList live;    /* holds a reference of each */
    unsigned n_live;
    struct FillQueue parked; /* the longest parked first */
    unsigned n_parked;
    GHashTable *sources; /* Origin -> FillSource */
    TAILQ_HEAD(, FillSource) turns;
    unsigned busy, ahead_busy; /* as FillSource.busy; those of them at chunks of `ahead` */
    unsigned stuck, cost;      /* likewise */
    struct FillPicks picks;    /* what the `busy` ones fetch, the oldest first */
    uint64_t reader_ms;        /* when a reader last joined or began a fill */
    uint64_t timing_ms;        /* until when a worker waits at least; 0: none does */
    gboolean stop;             /* no more work */
    size_t inline_bytes;       /* of FILL_INLINE_TOTAL */
    struct FillWorker *workers;
    void *(*run_worker)(void *worker); /* of a FillWorker */
    unsigned most;                     /* `busy` is at most this */
    unsigned n_threads, idle;          /* workers: started, and without work */
    gboolean scarce;                   /* no more workers could be made */
    uint8_t *buffers;                  /* one of chunk_bytes for each worker, and for `recents` */
    size_t buffers_bytes;
    FillRecent recents[FILL_RECENTS];
    unsigned n_recents;
    uint64_t recent_number;
    atomic_ulong started, completed, failed, origin_bytes;
} Fills;

/* Makes store->fills. */
void fills_init(Store *store);
gboolean fills_start(Store *store, GError **error);
/* Cancels all, waits until no origin is in use, joins the workers. */
void fills_stop(Store *store);
void fills_destroy(Store *store);

/* For tests: returns when a reader waits for a chunk of this fill. */
void store_fill_await_waiter(StoreFill *fill);

#endif
