/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a clone has from its parent. Blocks of an object that the clone does not own are the
 * parent's, and are kept once for all clones of the snapshot. An object that was written once is
 * the clone's own for good.
 */
#include "cache/block/internal.h"

static gboolean is_parents(const Cached *c, uint64_t off, uint64_t len)
{
    const ImageParent *parent = c->beneath->content.parent;
    const uint64_t object = c->beneath->object_bytes;
    if (!c->parent || off + len > atomic_load(&c->parent_end))
        return FALSE;
    for (uint64_t i = off / object; i * object < off + len; i++)
        if (__atomic_load_n(&parent->owns[i], __ATOMIC_SEQ_CST))
            return FALSE;
    return TRUE;
}

Kept *cached_kept_of(Cached *c, uint64_t off, uint64_t len)
{
    return is_parents(c, off, len) ? c->parent : c->kept;
}

/* Before Ceph hears of the change. */
void cached_note_owned(Cached *c, uint64_t off, uint64_t len)
{
    const ImageParent *parent = c->beneath->content.parent;
    const uint64_t object = c->beneath->object_bytes;
    if (!c->parent)
        return;
    for (uint64_t i = off / object; i * object < MIN(off + len, parent->end); i++)
        __atomic_store_n(&parent->owns[i], 1, __ATOMIC_SEQ_CST);
}

void cached_forget(Cached *c)
{
    Kept *k = c->kept;
    if (c->parent)
        cached_note_owned(c, 0, c->beneath->content.parent->end);
    pthread_mutex_lock(&k->flights.lock);
    flights_spoil_locked(&k->flights);
    int rc = block_file_forget(k->file, 0, atomic_load(&k->end));
    pthread_mutex_unlock(&k->flights.lock);
    if (rc < 0)
        kept_break(k, rc);
}
