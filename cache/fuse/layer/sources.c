/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of Sources by their index in the manifest, and a queue in the order of use. The table has
 * one reference to each; a task of tasks_common() drops those that were not used for IDLE_MS, and
 * there is none while the table is empty.
 */
#include "cache/fuse/layer/sources.h"
#include <pthread.h>
#include <unistd.h>
#include "common/monotonic.h"
#include "common/tasks.h"

/* Files that keep their descriptor or fill between reads, and for how long: an object that was
 * evicted takes room on the disk as long as it is open. */
#define SOURCES_MAX 512
#define IDLE_MS 1000

struct Sources {
    Task closer; /* first, so that its address is that of the Sources */
    Store *store;
    Origin *origin;
    const Manifest *manifest;
    const char *dataset;
    pthread_mutex_t lock;
    pthread_cond_t closed; /* the closer has ended */
    GHashTable *by_index;  /* lock: index -> Source, with a reference */
    GQueue recent;         /* lock: Sources, the last used first */
    gboolean closing;      /* lock; the closer is given, or runs */
    gboolean stopping;     /* lock */
};

void source_unref(Source *s)
{
    if (!s || atomic_fetch_sub(&s->references, 1) != 1)
        return;
    if (s->fd >= 0)
        close(s->fd);
    store_fill_unref(s->fill);
    g_free(s);
}

/* Takes it out of the table; the table's reference is then the caller's. Lock held. */
static void forget_locked(Sources *all, Source *s)
{
    g_hash_table_steal(all->by_index, &s->index);
    g_queue_delete_link(&all->recent, s->link);
}

/* Has the object, its fill, or neither. */
static Source *source_new(Sources *all, uint64_t index)
{
    Source *s = g_new0(Source, 1);
    atomic_init(&s->references, 1);
    s->index = index;
    manifest_key(all->manifest, index, &s->key);
    object_key_id(&s->key, &s->id);
    s->fd = store_open_object(all->store, &s->id, s->key.size);
    if (s->fd < 0) {
        g_autofree char *path = manifest_path(all->manifest, index);
        if (path)
            s->fill = store_fill_path(all->store, all->origin, path, &s->key, all->dataset);
    }
    return s;
}

Source *sources_get(Sources *all, uint64_t index)
{
    pthread_mutex_lock(&all->lock);
    Source *s = g_hash_table_lookup(all->by_index, &index);
    if (s) {
        atomic_fetch_add(&s->references, 1);
        s->used_ms = monotonic_ms();
        g_queue_unlink(&all->recent, s->link);
        g_queue_push_head_link(&all->recent, s->link);
    }
    pthread_mutex_unlock(&all->lock);
    if (s)
        return s;

    s = source_new(all, index);
    Source *old = NULL, *spare = NULL;
    pthread_mutex_lock(&all->lock);
    Source *other = g_hash_table_lookup(all->by_index, &index);
    if (other) { /* another thread was faster */
        atomic_fetch_add(&other->references, 1);
        spare = s;
        s = other;
    } else {
        atomic_fetch_add(&s->references, 1);
        s->used_ms = monotonic_ms();
        g_hash_table_insert(all->by_index, &s->index, s);
        g_queue_push_head(&all->recent, s);
        s->link = all->recent.head;
        if (!all->closing)
            all->closing = tasks_give_later(tasks_common(), &all->closer, IDLE_MS);
        if (all->recent.length > SOURCES_MAX)
            forget_locked(all, old = g_queue_peek_tail(&all->recent));
    }
    pthread_mutex_unlock(&all->lock);
    source_unref(old);
    source_unref(spare);
    return s;
}

void sources_drop(Sources *all, Source *s)
{
    pthread_mutex_lock(&all->lock);
    gboolean held = g_hash_table_lookup(all->by_index, &s->index) == s;
    if (held)
        forget_locked(all, s);
    pthread_mutex_unlock(&all->lock);
    if (held)
        source_unref(s);
}

/* Drops Sources that are not read any more. */
static void close_idle(Task *task)
{
    Sources *all = (Sources *)task;
    const uint64_t now = (uint64_t)monotonic_ms();
    Source *s;
    pthread_mutex_lock(&all->lock);
    while (!all->stopping && (s = g_queue_peek_tail(&all->recent)) && s->used_ms + IDLE_MS <= now) {
        forget_locked(all, s);
        pthread_mutex_unlock(&all->lock);
        source_unref(s);
        pthread_mutex_lock(&all->lock);
    }
    s = g_queue_peek_tail(&all->recent);
    all->closing = s && !all->stopping &&
                   tasks_give_later(tasks_common(), task, MAX(s->used_ms + IDLE_MS, now) - now);
    if (!all->closing)
        pthread_cond_signal(&all->closed);
    pthread_mutex_unlock(&all->lock);
}

Sources *sources_new(Store *store, Origin *origin, const Manifest *manifest, const char *dataset)
{
    Sources *all = g_new0(Sources, 1);
    all->store = store;
    all->origin = origin;
    all->manifest = manifest;
    all->dataset = dataset;
    pthread_mutex_init(&all->lock, NULL);
    pthread_cond_init(&all->closed, NULL);
    all->closer.run = close_idle;
    all->by_index = g_hash_table_new(g_int64_hash, g_int64_equal);
    g_queue_init(&all->recent);
    return all;
}

void sources_free(Sources *all)
{
    pthread_mutex_lock(&all->lock);
    all->stopping = TRUE;
    if (tasks_take_back(tasks_common(), &all->closer))
        all->closing = FALSE;
    while (all->closing)
        pthread_cond_wait(&all->closed, &all->lock);
    pthread_mutex_unlock(&all->lock);
    for (Source *s; (s = g_queue_peek_head(&all->recent));) {
        forget_locked(all, s);
        source_unref(s);
    }
    g_hash_table_unref(all->by_index);
    pthread_cond_destroy(&all->closed);
    pthread_mutex_destroy(&all->lock);
    g_free(all);
}
