/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads that fetch chunks. One is started when there is something to fetch and all others
 * fetch already, up to StoreConfig.fill_threads; they stay until the store is closed.
 */
#include <errno.h>
#include <sys/mman.h>
#include "cache/store/fill/internal.h"

/* A worker without work for this long gives back its memory. */
#define IDLE_MS 1000

/* Waits for work, until then at most (0: no such time). FALSE: nothing came in IDLE_MS. */
static gboolean wait_for_work_locked(Fills *fills, uint64_t until_ms, gboolean dirty)
{
    int rc = 0;
    fills->idle++;
    if (until_ms && !fills->timing) {
        const uint64_t now = monotonic_ms();
        const struct timespec deadline = deadline_after_ms(until_ms > now ? until_ms - now : 0);
        fills->timing = TRUE;
        pthread_cond_timedwait(&fills->work, &fills->lock, &deadline);
        fills->timing = FALSE;
    } else if (dirty) {
        const struct timespec deadline = deadline_after_ms(IDLE_MS);
        rc = pthread_cond_timedwait(&fills->work, &fills->lock, &deadline);
    } else {
        pthread_cond_wait(&fills->work, &fills->lock);
    }
    fills->idle--;
    return rc != ETIMEDOUT;
}

typedef struct Worker {
    Store *store;
    uint8_t *buf; /* of chunk_bytes */
} Worker;

static void *fill_worker(void *data)
{
    g_autofree Worker *me = data;
    Fills *fills = me->store->fills;
    gboolean dirty = FALSE;
    pthread_mutex_lock(&fills->lock);
    while (!fills->stop) {
        uint64_t until_ms = 0;
        FillPick pick;
        if (fill_pick_locked(fills, &pick, &until_ms)) {
            dirty = TRUE;
            /* A signal wakes one worker. Where there is more to do, that one wakes the next. */
            if (!fill_queues_empty_locked(fills))
                fill_wake_worker_locked(fills, me->store);
            fill_fetch_claimed_locked(fills, pick.fill, pick.chunk, me->buf, TRUE);
            fill_picked_done_locked(fills, &pick);
        } else if (!wait_for_work_locked(fills, until_ms, dirty)) {
            dirty = FALSE; /* the kernel may have the memory when it needs it */
            madvise(me->buf, me->store->config.chunk_bytes, MADV_FREE);
        }
    }
    pthread_mutex_unlock(&fills->lock);
    return NULL;
}

int fill_start_worker_locked(Fills *fills, Store *store)
{
    Worker *worker = g_new(Worker, 1);
    *worker = (Worker){store, fills->buffers + store->config.chunk_bytes * fills->n_threads};
    int rc = pthread_create(&fills->threads[fills->n_threads], NULL, fill_worker, worker);
    if (rc == 0)
        fills->n_threads++;
    else
        g_free(worker);
    return rc;
}

void fill_wake_worker_locked(Fills *fills, Store *store)
{
    if (fills->idle)
        pthread_cond_signal(&fills->work);
    else if (fills->n_threads < fills->most && !fills->stop)
        fill_start_worker_locked(fills, store); /* without one more, those there are do it */
}
