/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread that fetches does: it takes the next chunk, fetches it, and waits for more. */
#include <errno.h>
#include <sys/mman.h>
#include "cache/store/fill/internal.h"

/* A worker without work for this long gives back its memory, and ends if there are too many. */
#define IDLE_MS 1000

/* Waits for work, until then at most (0: no such time). FALSE: nothing came in IDLE_MS. */
static gboolean wait_for_work_locked(Fills *fills, uint64_t until_ms, gboolean dirty)
{
    int rc = 0;
    fills->idle++;
    if (until_ms && (!fills->timing_ms || until_ms < fills->timing_ms)) {
        const uint64_t now = monotonic_ms();
        const struct timespec deadline = deadline_after_ms(until_ms > now ? until_ms - now : 0);
        fills->timing_ms = until_ms;
        pthread_cond_timedwait(&fills->work, &fills->lock, &deadline);
        if (fills->timing_ms == until_ms)
            fills->timing_ms = 0;
    } else if (dirty || fills->n_threads > fills->most + 1) {
        const struct timespec deadline = deadline_after_ms(IDLE_MS);
        rc = pthread_cond_timedwait(&fills->work, &fills->lock, &deadline);
    } else {
        pthread_cond_wait(&fills->work, &fills->lock);
    }
    fills->idle--;
    return rc != ETIMEDOUT;
}

void *fill_worker(void *data)
{
    FillWorker *me = data;
    Fills *fills = me->store->fills;
    gboolean dirty = FALSE;
    pthread_mutex_lock(&fills->lock);
    while (!fills->stop) {
        uint64_t until_ms = 0;
        FillPick pick;
        if (fill_pick_locked(me->store, me->buf, &pick, &until_ms)) {
            dirty = TRUE;
            /* One worker is woken. Where there is more to do, that one wakes the next. */
            fills->wakes = FALSE;
            if (!fill_queues_empty_locked(fills))
                fill_wake_worker_locked(fills);
            fill_fetch_claimed_locked(fills, &pick, TRUE);
            fill_picked_done_locked(fills, &pick);
            me->buf = pick.buf;
        } else if (!wait_for_work_locked(fills, until_ms, dirty)) {
            dirty = FALSE; /* the kernel may have the memory when it needs it */
            madvise(me->buf, me->store->config.chunk_bytes, MADV_FREE);
            if (fill_worker_may_end_locked(fills, me))
                break;
        }
    }
    fills_unlock(fills);
    return NULL;
}
