/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/block/workers.h"
#include <pthread.h>

/* Waking a thread costs the caller of workers_push() more than most items cost the thread. */
#define NAP_US 1000

struct Workers {
    pthread_mutex_t lock;
    pthread_cond_t pushed;
    GQueue items;      /* lock */
    unsigned napping;  /* lock: threads that look again within NAP_US */
    gboolean stopping; /* lock */
    void (*run)(void *item, void *data);
    void *data;
    unsigned n;
    pthread_t threads[];
};

/* After work a thread naps before it sleeps. */
static void wait_for_work(Workers *w, gboolean has_worked)
{
    if (!has_worked) {
        pthread_cond_wait(&w->pushed, &w->lock);
        return;
    }
    w->napping++;
    pthread_mutex_unlock(&w->lock);
    g_usleep(NAP_US);
    pthread_mutex_lock(&w->lock);
    w->napping--;
}

static void *run_worker(void *data)
{
    Workers *w = data;
    gboolean has_worked = FALSE;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        void *item = g_queue_pop_head(&w->items);
        if (!item && w->stopping)
            break;
        if (!item) {
            wait_for_work(w, has_worked);
            has_worked = FALSE;
            continue;
        }
        pthread_mutex_unlock(&w->lock);
        w->run(item, w->data);
        has_worked = TRUE;
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

Workers *workers_new(unsigned threads, void (*run)(void *item, void *data), void *data)
{
    Workers *w = g_malloc0(sizeof(Workers) + threads * sizeof(pthread_t));
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->pushed, NULL);
    g_queue_init(&w->items);
    w->run = run;
    w->data = data;
    w->n = threads;
    for (unsigned i = 0; i < threads; i++) {
        int failed = pthread_create(&w->threads[i], NULL, run_worker, w);
        if (failed)
            g_error("cannot start a thread: %s", g_strerror(failed));
    }
    return w;
}

void workers_push(Workers *w, void *item)
{
    pthread_mutex_lock(&w->lock);
    g_queue_push_tail(&w->items, item);
    if (w->napping == 0)
        pthread_cond_signal(&w->pushed);
    pthread_mutex_unlock(&w->lock);
}

void workers_free(Workers *w)
{
    pthread_mutex_lock(&w->lock);
    w->stopping = TRUE;
    pthread_cond_broadcast(&w->pushed);
    pthread_mutex_unlock(&w->lock);
    for (unsigned i = 0; i < w->n; i++)
        pthread_join(w->threads[i], NULL);
    pthread_cond_destroy(&w->pushed);
    pthread_mutex_destroy(&w->lock);
    g_free(w);
}
