/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers that wait without a thread. A thread of tasks_common() tells them, and they copy the
 * bytes and answer the kernel on it. The thread that fetched the bytes does not, since other
 * readers wait for what it fetches next; and where a fill fails, the caller may hold more than
 * Fills.lock.
 */
#include <errno.h>
#include "cache/store/fill/internal.h"

/* 0: all is there; -EINPROGRESS; or what a failed fill gives. */
int fill_progress_locked(const StoreFill *fill, FillWait *wait)
{
    const int state = atomic_load(&fill->state);
    if (state != FILL_ACTIVE)
        return state == FILL_FAILED ? fill->error : 0;
    if (!fill->ready)
        return -EINPROGRESS;
    while (wait->chunk <= wait->last && fill->chunks[wait->chunk] == CHUNK_DONE)
        wait->chunk++;
    return wait->chunk > wait->last ? 0 : -EINPROGRESS;
}

static void tell_locked(FillWait *wait, int result)
{
    TAILQ_REMOVE(&wait->fill->waiters, wait, link);
    wait->waits = FALSE;
    wait->result = result;
    tasks_give(tasks_common(), &wait->task);
}

void fill_changed_locked(StoreFill *fill)
{
    FillWait *next;
    for (FillWait *wait = TAILQ_FIRST(&fill->waiters); wait; wait = next) {
        next = TAILQ_NEXT(wait, link);
        const int rc = wait->task.run ? fill_progress_locked(fill, wait) : -EINPROGRESS;
        if (rc != -EINPROGRESS)
            tell_locked(wait, rc);
    }
    pthread_cond_broadcast(&fill->changed);
}

void store_fill_withdraw(FillWait *wait, int result)
{
    Fills *fills = wait->fill->store->fills;
    pthread_mutex_lock(&fills->lock);
    if (wait->waits)
        tell_locked(wait, result);
    fills_unlock(fills);
}
