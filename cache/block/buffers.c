/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bound on buffers. Reads may come faster than their bytes can be installed; they wait for
 * buffers then, in order, because bytes without a buffer would not be kept.
 */
#include "cache/block/internal.h"

gboolean buffers_take(ImageCache *cache, size_t bytes)
{
    if (atomic_fetch_add(&cache->buffers, bytes) + bytes <= cache->buffers_max)
        return TRUE;
    atomic_fetch_sub(&cache->buffers, bytes);
    return FALSE;
}

gboolean buffers_take_ahead(ImageCache *cache, size_t bytes)
{
    return atomic_load(&cache->buffers) <= cache->buffers_max / 2 && buffers_take(cache, bytes);
}

/* The first that waits, its buffers taken; NULL: none waits, or there are too few buffers. */
static BufferWaiter *next_waiter(ImageCache *cache)
{
    pthread_mutex_lock(&cache->wanting_lock);
    BufferWaiter *waiter = g_queue_peek_head(&cache->wanting);
    if (waiter)
        waiter->taken = waiter->bytes_needed(waiter);
    if (waiter && !buffers_take(cache, waiter->taken))
        waiter = NULL;
    if (waiter)
        g_queue_pop_head(&cache->wanting);
    pthread_mutex_unlock(&cache->wanting_lock);
    return waiter;
}

static void begin_waiters(ImageCache *cache)
{
    for (BufferWaiter *w = next_waiter(cache); w; w = next_waiter(cache))
        w->begin(w);
}

void buffers_wait(ImageCache *cache, BufferWaiter *waiter)
{
    pthread_mutex_lock(&cache->wanting_lock);
    g_queue_push_tail(&cache->wanting, waiter);
    pthread_mutex_unlock(&cache->wanting_lock);
    begin_waiters(cache);
}

void buffers_give(ImageCache *cache, size_t bytes)
{
    atomic_fetch_sub(&cache->buffers, bytes);
    begin_waiters(cache);
}

void image_cache_buffers(const ImageCache *cache, uint64_t *used, uint64_t *most)
{
    *used = atomic_load(&cache->buffers);
    *most = cache->buffers_max;
}
