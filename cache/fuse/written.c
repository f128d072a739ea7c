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
    uint64_t bytes;        /* taken of what all sets have */
    gboolean all;
    uint64_t end; /* of the furthest write */
};

/* Of all sets: bytes. */
static _Atomic uint64_t held, most = 16 << 20;

void written_memory_set(uint64_t bytes)
{
    atomic_store(&most, bytes);
}

uint64_t written_memory_most(void)
{
    return atomic_load(&most);
}

uint64_t written_memory_held(void)
{
    return atomic_load(&held);
}

static gboolean take(Written *w, uint64_t bytes)
{
    if (atomic_fetch_add(&held, bytes) + bytes > atomic_load(&most)) {
        atomic_fetch_sub(&held, bytes);
        return FALSE;
    }
    w->bytes += bytes;
    return TRUE;
}

/* Nothing more is to be remembered of it. */
static void be_all(Written *w)
{
    w->all = TRUE;
    g_clear_pointer(&w->blocks, g_hash_table_unref);
    atomic_fetch_sub(&held, w->bytes);
    w->bytes = 0;
}

Written *written_new(void)
{
    Written *w = g_new0(Written, 1);
    w->refs = 1;
    pthread_mutex_init(&w->mutex, NULL);
    w->all = !take(w, WRITTEN_SET_BYTES);
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
    be_all(w);
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
    gboolean fits = last - first < WRITTEN_BLOCKS_MAX;
    if (!w->blocks)
        w->blocks = g_hash_table_new(NULL, NULL);
    for (uint64_t b = first; b <= last && fits; b++)
        if (g_hash_table_add(w->blocks, block_key(b)))
            fits = g_hash_table_size(w->blocks) <= WRITTEN_BLOCKS_MAX &&
                   take(w, WRITTEN_BLOCK_COST_BYTES);
    if (!fits)
        be_all(w);
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
