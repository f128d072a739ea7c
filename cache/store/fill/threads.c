/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads that fetch. One is started when there is something to fetch and no other is free.
 * StoreConfig.fill_threads of them and one more stay until the store is closed; those that are
 * there because others are stuck end when they have nothing to do.
 */
#include <errno.h>
#include <sys/mman.h>
#include "cache/origin/thread_room.h"
#include "cache/store/fill/internal.h"

static unsigned slots(const Fills *fills)
{
    return fills->most + 1 + FILL_STUCK_MAX;
}

/* One that is not busy sees when others are stuck. */
static unsigned needed(const Fills *fills)
{
    return fills->most + 1 + fills->stuck;
}

int fill_workers_init(Fills *fills, Store *store)
{
    fills->most = store->config.fill_threads;
    /* Address space until it is used. */
    const size_t bytes = store->config.chunk_bytes;
    fills->n_recents = MIN(FILL_RECENTS, fills->most);
    fills->buffers_bytes = bytes * (slots(fills) + fills->n_recents);
    void *buffers = mmap(NULL, fills->buffers_bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (buffers == MAP_FAILED)
        return errno;
    fills->buffers = buffers;
    fills->workers = g_new0(FillWorker, slots(fills));
    for (unsigned i = 0; i < slots(fills); i++) {
        fills->workers[i].store = store;
        fills->workers[i].buf = fills->buffers + bytes * i;
    }
    for (unsigned i = 0; i < fills->n_recents; i++)
        fills->recents[i].buf = fills->buffers + bytes * (slots(fills) + i);
    return 0;
}

int fill_start_worker_locked(Fills *fills)
{
    FillWorker *worker = fills->workers;
    fills->scarce = fills->n_threads > 0 && !thread_room_has_spare();
    if (fills->scarce)
        return EAGAIN;
    while (worker->runs) /* fewer are needed than there are slots */
        worker++;
    if (worker->ended)
        pthread_join(worker->thread, NULL);
    worker->ended = FALSE;
    int rc = pthread_create(&worker->thread, NULL, fills->run_worker, worker);
    worker->runs = rc == 0;
    fills->scarce = rc != 0;
    fills->n_threads += rc == 0 ? 1 : 0;
    return rc;
}

void fill_wake_worker_locked(Fills *fills)
{
    if (fills->idle)
        fills->wakes = TRUE;
    else if (fills->n_threads < needed(fills) && !fills->stop)
        fill_start_worker_locked(fills); /* without one more, those there are do it */
}

gboolean fill_one_worker_left_locked(const Fills *fills)
{
    return fills->n_threads < fills->busy + fills->stuck + 2;
}

void fill_more_workers_locked(Fills *fills)
{
    if ((fills->scarce || fill_one_worker_left_locked(fills)) && fills->n_threads < needed(fills) &&
        !fills->stop)
        fill_start_worker_locked(fills);
}

gboolean fill_worker_may_end_locked(Fills *fills, FillWorker *worker)
{
    if (fills->n_threads <= needed(fills))
        return FALSE;
    fills->n_threads--;
    worker->runs = FALSE;
    worker->ended = TRUE;
    return TRUE;
}

void fill_workers_join(Fills *fills)
{
    for (unsigned i = 0; fills->workers && i < slots(fills); i++) {
        pthread_mutex_lock(&fills->lock);
        const gboolean started = fills->workers[i].runs || fills->workers[i].ended;
        fills_unlock(fills);
        if (started)
            pthread_join(fills->workers[i].thread, NULL);
    }
    fills->n_threads = 0;
}

void fill_workers_clear(Fills *fills)
{
    g_free(fills->workers);
    if (fills->buffers)
        munmap(fills->buffers, fills->buffers_bytes);
}
