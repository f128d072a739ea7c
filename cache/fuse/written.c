/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A set of block numbers, and where the last write has ended. A block is a page of a database: what
 * is read beside the pages that were written still comes from the cache.
 */
#include "cache/fuse/written.h"
#include <pthread.h>
#include <stdatomic.h>

struct Written {
    _Atomic unsigned refs;
    pthread_mutex_t mutex; /* guards all below */
    GHashTable *blocks;    /* numbers; NULL: none */
    gboolean all;
    uint64_t end; /* of the furthest write */
};

Written *written_new(void)
{
    Written *w = g_new0(Written, 1);
    w->refs = 1;
    pthread_mutex_init(&w->mutex, NULL);
    return w;
}

Written *written_ref(Written *w)
{
    if (w)
        atomic_fetch_add(&w->refs, 1);
    return w;
}

void written_unref(Written *w)
{
    if (!w || atomic_fetch_sub(&w->refs, 1) != 1)
        return;
    g_clear_pointer(&w->blocks, g_hash_table_unref);
    pthread_mutex_destroy(&w->mutex);
    g_free(w);
}

unsigned written_blocks(Written *w)
{
    pthread_mutex_lock(&w->mutex);
    unsigned n = w->blocks ? g_hash_table_size(w->blocks) : 0;
    if (w->all)
        n = WRITTEN_BLOCKS_MAX + 1;
    pthread_mutex_unlock(&w->mutex);
    return n;
}

static gpointer block_key(uint64_t block)
{
    return GSIZE_TO_POINTER((gsize)block);
}

static void add_locked(Written *w, uint64_t first, uint64_t last)
{
    if (last - first >= WRITTEN_BLOCKS_MAX)
        w->all = TRUE;
    if (!w->blocks)
        w->blocks = g_hash_table_new(NULL, NULL);
    for (uint64_t b = first; b <= last && !w->all; b++) {
        g_hash_table_add(w->blocks, block_key(b));
        w->all = g_hash_table_size(w->blocks) > WRITTEN_BLOCKS_MAX;
    }
    if (w->all)
        g_clear_pointer(&w->blocks, g_hash_table_unref);
}

void written_add(Written *w, uint64_t off, uint64_t len)
{
    if (len == 0)
        return;
    pthread_mutex_lock(&w->mutex);
    w->end = MAX(w->end, off + len);
    if (!w->all)
        add_locked(w, off / WRITTEN_BLOCK_BYTES, (off + len - 1) / WRITTEN_BLOCK_BYTES);
    pthread_mutex_unlock(&w->mutex);
}

void written_add_at_end(Written *w)
{
    pthread_mutex_lock(&w->mutex);
    w->end = UINT64_MAX;
    pthread_mutex_unlock(&w->mutex);
}

static gboolean touches_locked(const Written *w, uint64_t first, uint64_t last)
{
    for (uint64_t b = first; w->blocks && b <= last; b++)
        if (g_hash_table_contains(w->blocks, block_key(b)))
            return TRUE;
    return FALSE;
}

gboolean written_touches(Written *w, uint64_t off, uint64_t len, uint64_t size)
{
    if (!w || len == 0)
        return FALSE;
    pthread_mutex_lock(&w->mutex);
    /* The version ends where the file may go on by now. */
    const gboolean touches =
        w->all || (off + len > size && w->end > size) ||
        touches_locked(w, off / WRITTEN_BLOCK_BYTES, (off + len - 1) / WRITTEN_BLOCK_BYTES);
    pthread_mutex_unlock(&w->mutex);
    return touches;
}
