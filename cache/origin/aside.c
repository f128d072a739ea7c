/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The caller and the thread share an Aside; whichever of the two leaves last frees it. Threads that
 * are left behind are counted, so that callers can bound their number.
 */
#include "cache/origin/aside.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include "common/monotonic.h"

/* Freed by the last of the two. */
typedef struct Aside {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    gboolean done, left; /* mutex */
    void (*call)(void *data);
    void (*then)(void *data); /* NULL: nothing follows */
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
    /* The other one may free what it is in once the call is done. */
    void (*then)(void *) = a->then;
    void *of = a->data;
    GDestroyNotify free_data = a->free_data;
    a->call(of);
    pthread_mutex_lock(&a->mutex);
    a->done = TRUE;
    gboolean left = a->left;
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->mutex);
    if (left)
        aside_free(a);
    if (then)
        then(of);
    if (then || left)
        free_data(of);
    if (left)
        atomic_fetch_sub(&left_behind, 1);
    return NULL;
}

/* Without a thread. */
static gboolean call_here(Aside *a)
{
    a->call(a->data);
    if (a->then) {
        a->then(a->data);
        a->free_data(a->data);
    }
    aside_free(a);
    return TRUE;
}

gboolean aside_call_then(void (*call)(void *data), void (*then)(void *data), void *data,
                         GDestroyNotify free_data, unsigned limit_ms)
{
    Aside *a = g_new0(Aside, 1);
    *a = (Aside){.call = call, .then = then, .data = data, .free_data = free_data};
    pthread_mutex_init(&a->mutex, NULL);
    cond_init_monotonic(&a->changed);
    const struct timespec until = deadline_after_ms(limit_ms);
    pthread_t thread;
    if (pthread_create(&thread, NULL, aside_thread, a) != 0)
        return call_here(a);
    int r = 0;
    pthread_mutex_lock(&a->mutex);
    while (!a->done && r != ETIMEDOUT)
        r = pthread_cond_timedwait(&a->changed, &a->mutex, &until);
    gboolean done = a->done;
    a->left = !done;
    if (!done)
        atomic_fetch_add(&left_behind, 1);
    pthread_mutex_unlock(&a->mutex);
    if (done && !then)
        pthread_join(thread, NULL);
    else
        pthread_detach(thread);
    if (done)
        aside_free(a);
    return done;
}

gboolean aside_call(void (*call)(void *data), void *data, GDestroyNotify free_data,
                    unsigned limit_ms)
{
    return aside_call_then(call, NULL, data, free_data, limit_ms);
}

typedef struct Call {
    void (*call)(void *data);
    void *data;
} Call;

static void *call_thread(void *data)
{
    g_autofree Call *c = data;
    c->call(c->data);
    return NULL;
}

gboolean aside_try(void (*call)(void *data), void *data)
{
    Call *c = g_new(Call, 1);
    *c = (Call){call, data};
    pthread_t thread;
    if (pthread_create(&thread, NULL, call_thread, c) == 0) {
        pthread_detach(thread);
        return TRUE;
    }
    g_free(c);
    return FALSE;
}

void aside_begin(void (*call)(void *data), void *data)
{
    if (!aside_try(call, data))
        call(data);
}

unsigned aside_left_behind(void)
{
    return atomic_load(&left_behind);
}
