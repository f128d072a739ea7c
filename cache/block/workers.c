#include "cache/block/workers.h"
#include <pthread.h>

struct Workers {
    pthread_mutex_t lock;
    pthread_cond_t pushed;
    GQueue items;      /* lock */
    gboolean stopping; /* lock */
    void (*run)(void *item, void *data);
    void *data;
    unsigned n;
    pthread_t threads[];
};

static void *run_worker(void *data)
{
    Workers *w = data;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        void *item = g_queue_pop_head(&w->items);
        if (!item && w->stopping)
            break;
        if (!item) {
            pthread_cond_wait(&w->pushed, &w->lock);
            continue;
        }
        pthread_mutex_unlock(&w->lock);
        w->run(item, w->data);
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
