/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmup/places.h"
#include <pthread.h>

typedef struct Namespace {
    guint having;  /* places */
    guint64 given; /* the number of the last place that it got; 0: none yet */
} Namespace;

typedef struct Waiter {
    const char *namespace;
    gboolean called; /* a place is kept for it */
} Waiter;

struct WarmupPlaces {
    guint free;
    gint64 least_us;
    guint64 given;
    pthread_mutex_t lock; /* guards all */
    pthread_cond_t changed;
    GQueue waiters;         /* Waiter, by arrival */
    GHashTable *namespaces; /* name -> Namespace; never more than a node has orders of */
};

WarmupPlaces *warmup_places_new(guint places, gint64 ms)
{
    WarmupPlaces *p = g_new0(WarmupPlaces, 1);
    p->free = places;
    p->least_us = ms * 1000;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    g_queue_init(&p->waiters);
    p->namespaces = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return p;
}

void warmup_places_free(WarmupPlaces *p)
{
    if (!p)
        return;
    g_hash_table_unref(p->namespaces);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    g_free(p);
}

static Namespace *namespace_locked(WarmupPlaces *p, const char *name)
{
    Namespace *n = g_hash_table_lookup(p->namespaces, name);
    if (!n) {
        n = g_new0(Namespace, 1);
        g_hash_table_insert(p->namespaces, g_strdup(name), n);
    }
    return n;
}

static gboolean goes_before(const Namespace *a, const Namespace *b)
{
    return a->having != b->having ? a->having < b->having : a->given < b->given;
}

/* Keeps the free places for those whose turn it is. */
static void call_locked(WarmupPlaces *p)
{
    while (p->free > 0) {
        Waiter *next = NULL;
        Namespace *of_next = NULL;
        for (GList *l = p->waiters.head; l; l = l->next) {
            Waiter *one = l->data;
            Namespace *n = namespace_locked(p, one->namespace);
            if (one->called || (next && !goes_before(n, of_next)))
                continue;
            next = one;
            of_next = n;
        }
        if (!next)
            return;
        next->called = TRUE;
        of_next->having++;
        of_next->given = ++p->given;
        p->free--;
        pthread_cond_broadcast(&p->changed);
    }
}

static void leave_locked(WarmupPlaces *p, const char *namespace)
{
    namespace_locked(p, namespace)->having--;
    p->free++;
    call_locked(p);
}

gboolean warmup_places_take(WarmupPlaces *p, const char *namespace, GCancellable *cancel)
{
    Waiter self = {.namespace = namespace};
    pthread_mutex_lock(&p->lock);
    g_queue_push_tail(&p->waiters, &self);
    call_locked(p);
    while (!self.called && !g_cancellable_is_cancelled(cancel))
        pthread_cond_wait(&p->changed, &p->lock);
    g_queue_remove(&p->waiters, &self);
    pthread_mutex_unlock(&p->lock);
    return self.called;
}

void warmup_places_leave(WarmupPlaces *p, const char *namespace)
{
    pthread_mutex_lock(&p->lock);
    leave_locked(p, namespace);
    pthread_mutex_unlock(&p->lock);
}

gboolean warmup_places_over(WarmupPlaces *p, const char *namespace, gint64 taken_us)
{
    gboolean over = FALSE;
    if (g_get_monotonic_time() - taken_us < p->least_us)
        return FALSE;
    pthread_mutex_lock(&p->lock);
    const guint having = namespace_locked(p, namespace)->having;
    for (GList *l = p->waiters.head; l && !over; l = l->next) {
        const Waiter *one = l->data;
        over = !one->called && namespace_locked(p, one->namespace)->having < having;
    }
    pthread_mutex_unlock(&p->lock);
    return over;
}

guint warmup_places_waiting(WarmupPlaces *p)
{
    pthread_mutex_lock(&p->lock);
    const guint n = g_queue_get_length(&p->waiters);
    pthread_mutex_unlock(&p->lock);
    return n;
}

void warmup_places_wake(WarmupPlaces *p)
{
    pthread_mutex_lock(&p->lock);
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}
