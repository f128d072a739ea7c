/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waking of background threads. A kick that comes while a round is under way is not lost: it begins
 * the next one.
 */
#include "common/wake.h"
#include <errno.h>

void wake_init(Wake *wake)
{
    *wake = (Wake){.kicked = FALSE};
    pthread_mutex_init(&wake->lock, NULL);
    cond_init_monotonic(&wake->cond);
    pthread_cond_init(&wake->idle, NULL);
}

void wake_destroy(Wake *wake)
{
    pthread_cond_destroy(&wake->cond);
    pthread_cond_destroy(&wake->idle);
    pthread_mutex_destroy(&wake->lock);
}

void wake_kick(Wake *wake)
{
    pthread_mutex_lock(&wake->lock);
    wake->kicked = TRUE;
    pthread_cond_signal(&wake->cond);
    pthread_mutex_unlock(&wake->lock);
}

void wake_stop(Wake *wake)
{
    pthread_mutex_lock(&wake->lock);
    wake->stop = TRUE;
    pthread_cond_signal(&wake->cond);
    pthread_mutex_unlock(&wake->lock);
}

gboolean wake_stopping(Wake *wake)
{
    pthread_mutex_lock(&wake->lock);
    gboolean stop = wake->stop;
    pthread_mutex_unlock(&wake->lock);
    return stop;
}

void wake_round(Wake *wake)
{
    pthread_mutex_lock(&wake->lock);
    uint64_t target = wake->rounds + (wake->waiting && !wake->kicked ? 1 : 2);
    wake->kicked = TRUE;
    pthread_cond_signal(&wake->cond);
    while (wake->rounds < target && !wake->stop) {
        /* A round under way may end without having seen the kick consumed by it. */
        if (wake->waiting && !wake->kicked) {
            wake->kicked = TRUE;
            pthread_cond_signal(&wake->cond);
        }
        pthread_cond_wait(&wake->idle, &wake->lock);
    }
    pthread_mutex_unlock(&wake->lock);
}

gboolean wake_wait(Wake *wake, uint64_t timeout_ms)
{
    struct timespec deadline = deadline_after_ms(timeout_ms);
    pthread_mutex_lock(&wake->lock);
    wake->rounds++;
    wake->waiting = TRUE;
    pthread_cond_broadcast(&wake->idle);
    while (!wake->kicked && !wake->stop &&
           pthread_cond_timedwait(&wake->cond, &wake->lock, &deadline) != ETIMEDOUT)
        ;
    wake->kicked = wake->waiting = FALSE;
    gboolean go_on = !wake->stop;
    pthread_mutex_unlock(&wake->lock);
    return go_on;
}
