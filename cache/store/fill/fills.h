/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All fills of a store: the origins that they fetch from, the workers, starting and stopping. For
 * store.c, for the files of this folder and for tests.
 *
 * A fill is in `by_id` while others may join it, and in `live` until nothing of its origin is in
 * use. Workers are started when there is more to fetch than they can, up to
 * StoreConfig.fill_threads.
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

/* The fills from one origin. It exists while there are any. */
typedef struct FillSource {
    Origin *origin;
    unsigned fills;                                    /* of Fills.live */
    unsigned busy;                                     /* workers that fetch a chunk from it */
    struct FillQueue wanted, running, deferred, ahead; /* queue.c */
    TAILQ_ENTRY(FillSource) turn;
} FillSource;

typedef struct Fills {
    pthread_mutex_t lock;    /* guards all below, but not what is atomic */
    pthread_cond_t work;     /* something to fetch, or stop */
    pthread_cond_t released; /* a fill left `live` */
    GHashTable *by_id;       /* ObjectId * in the value -> StoreFill */
    struct FillList live;    /* holds a reference of each */
    unsigned n_live;
    struct FillQueue parked; /* the longest parked first */
    unsigned n_parked;
    GHashTable *sources; /* Origin -> FillSource */
    TAILQ_HEAD(, FillSource) turns;
    unsigned busy, ahead_busy; /* workers at chunks; those of them at chunks of `ahead` */
    uint64_t reader_ms;        /* when a reader last joined or began a fill */
    uint64_t timing_ms;        /* until when a worker waits at least; 0: none does */
    gboolean stop;             /* no more work */
    size_t inline_bytes;       /* of FILL_INLINE_TOTAL */
    pthread_t *threads;
    void *(*run_worker)(void *worker); /* of a FillWorker, which it frees */
    unsigned most, n_threads, idle;    /* workers: at most, started, and without work */
    uint8_t *buffers;                  /* one of chunk_bytes for each that may be started */
    size_t buffers_bytes;
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
