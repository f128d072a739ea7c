/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All fills of a store: the queues, the workers, starting and stopping. For store.c, for the files
 * of this folder and for tests.
 *
 * A fill is in `by_id` while others may join it, and in `live` until nothing of its origin is in
 * use.
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

typedef struct Fills {
    pthread_mutex_t lock;
    pthread_cond_t work;     /* something to fetch, or stop */
    pthread_cond_t released; /* a fill left `live` */
    GHashTable *by_id;       /* lock: ObjectId * in the value -> StoreFill */
    struct FillList live;    /* lock: holds a reference of each */
    unsigned n_live;         /* lock */
    struct FillQueue wanted, running, deferred, ahead; /* lock: see fill_pick_locked() */
    unsigned ahead_busy;                               /* lock: workers at chunks of `ahead` */
    uint64_t reader_ms;    /* lock: when a reader last joined or began a fill */
    gboolean timing, stop; /* lock: a worker waits with a deadline; no more work */
    size_t inline_bytes;   /* lock: of FILL_INLINE_TOTAL */
    pthread_t *threads;
    uint8_t *buffers; /* one of chunk_bytes for each worker */
    size_t buffers_bytes;
    unsigned n_buffers; /* lock: taken by workers */
    unsigned n_threads;
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
