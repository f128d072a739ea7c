#include "cache/origin/aside.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include "cache/monotonic.h"

/* Freed by the last of the two. */
typedef struct Aside {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    gboolean done, left; /* mutex */
    void (*call)(void *data);
    void *data;
    GDestroyNotify free_data;
} Aside;

static _Atomic unsigned left_behind;

static void aside_free(Aside *a)
{
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->mutex);
    g_free(a);
}

static void *aside_thread(void *data)
{
    Aside *a = data;
    a->call(a->data);
    pthread_mutex_lock(&a->mutex);
    a->done = TRUE;
    gboolean left = a->left;
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->mutex);
    if (left) {
        a->free_data(a->data);
        aside_free(a);
        atomic_fetch_sub(&left_behind, 1);
    }
    return NULL;
}

gboolean aside_call(void (*call)(void *data), void *data, GDestroyNotify free_data,
                    unsigned limit_ms)
{
    Aside *a = g_new0(Aside, 1);
    *a = (Aside){.call = call, .data = data, .free_data = free_data};
    pthread_mutex_init(&a->mutex, NULL);
    cond_init_monotonic(&a->changed);
    const struct timespec until = deadline_after_ms(limit_ms);
    pthread_t thread;
    if (pthread_create(&thread, NULL, aside_thread, a) != 0) {
        aside_free(a);
        call(data);
        return TRUE;
    }
    int r = 0;
    pthread_mutex_lock(&a->mutex);
    while (!a->done && r != ETIMEDOUT)
        r = pthread_cond_timedwait(&a->changed, &a->mutex, &until);
    gboolean done = a->done;
    a->left = !done;
    if (!done) {
        atomic_fetch_add(&left_behind, 1);
        pthread_detach(thread);
    }
    pthread_mutex_unlock(&a->mutex);
    if (!done)
        return FALSE;
    pthread_join(thread, NULL);
    aside_free(a);
    return TRUE;
}

unsigned aside_left_behind(void)
{
    return atomic_load(&left_behind);
}
