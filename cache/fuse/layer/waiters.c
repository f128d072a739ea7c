/* SPDX-License-Identifier: Apache-2.0 */
/* Threads are started when a job finds none idle, up to a bound, and end after a time without jobs.
 */
#include "cache/fuse/layer/waiters.h"
#include "common/monotonic.h"
#include <errno.h>
#include <pthread.h>
#include <time.h>

/* A thread that had nothing to do for so long ends. */
#define IDLE_SEC 10

struct Waiters {
    void (*run)(void *data, gpointer job);
    void *data;
    unsigned most;
    pthread_mutex_t lock;
    pthread_cond_t work, ended;
    GQueue jobs;            /* lock; never more than `idle`, or than are being made */
    unsigned threads, idle; /* lock */
    gboolean stopping;      /* lock */
};

static void *waiter_thread(void *data)
{
    Waiters *w = data;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        gpointer job = g_queue_pop_head(&w->jobs);
        if (job) {
            pthread_mutex_unlock(&w->lock);
            w->run(w->data, job);
            pthread_mutex_lock(&w->lock);
            continue;
        }
        const struct timespec until = deadline_after_ms(IDLE_SEC * 1000);
        w->idle++;
        int rc = w->stopping ? ETIMEDOUT : pthread_cond_timedwait(&w->work, &w->lock, &until);
        w->idle--;
        if (rc == ETIMEDOUT && g_queue_is_empty(&w->jobs))
            break;
    }
    w->threads--;
    pthread_cond_signal(&w->ended);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

Waiters *waiters_new(unsigned most, void (*run)(void *data, gpointer job), void *data)
{
    Waiters *w = g_new0(Waiters, 1);
    w->run = run;
    w->data = data;
    w->most = most;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->ended, NULL);
    cond_init_monotonic(&w->work);
    g_queue_init(&w->jobs);
    return w;
}

static gboolean add_thread_locked(Waiters *w)
{
    pthread_t thread;
    pthread_attr_t attr;
    if (w->threads == w->most)
        return FALSE;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    gboolean made = pthread_create(&thread, &attr, waiter_thread, w) == 0;
    pthread_attr_destroy(&attr);
    w->threads += made;
    return made;
}

gboolean waiters_give(Waiters *w, gpointer job)
{
    pthread_mutex_lock(&w->lock);
    gboolean given = w->idle > w->jobs.length || add_thread_locked(w);
    if (given) {
        g_queue_push_tail(&w->jobs, job);
        pthread_cond_signal(&w->work);
    }
    pthread_mutex_unlock(&w->lock);
    return given;
}

void waiters_stop(Waiters *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->stopping = TRUE;
    pthread_cond_broadcast(&w->work);
    while (w->threads > 0)
        pthread_cond_wait(&w->ended, &w->lock);
    pthread_mutex_unlock(&w->lock);
    pthread_cond_destroy(&w->work);
    pthread_cond_destroy(&w->ended);
    pthread_mutex_destroy(&w->lock);
    g_queue_clear(&w->jobs);
    g_free(w);
}
