/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was fetched last of objects that bypass the page cache: a reader close behind a fill gets
 * its bytes from the buffer that they were fetched into, not from the disk. A worker leaves its
 * buffer here and takes an older one instead.
 */
#include <string.h>
#include <sys/mman.h>
#include "cache/store/fill/internal.h"

static gboolean is_read(const FillRecent *recent)
{
    return recent->left == 0;
}

/* Which one is given up: one of no fill; or one that was read; or the oldest. NULL: all are in use.
 */
static FillRecent *oldest_locked(Fills *fills)
{
    FillRecent *best = NULL;
    for (FillRecent *r = fills->recents; r < fills->recents + fills->n_recents; r++) {
        if (r->users > 0)
            continue;
        if (!r->fill)
            return r;
        if (!best || is_read(r) > is_read(best) ||
            (is_read(r) == is_read(best) && r->number < best->number))
            best = r;
    }
    return best;
}

void fill_recent_leave_locked(Fills *fills, FillPick *pick)
{
    const gboolean is_kept = pick->fill->direct >= 0 && !pick->fill->is_parked;
    FillRecent *recent = is_kept ? oldest_locked(fills) : NULL;
    if (!recent)
        return;
    uint8_t *buf = recent->buf;
    *recent = (FillRecent){.buf = pick->buf,
                           .fill = pick->fill,
                           .off = pick->chunk * pick->fill->chunk_bytes,
                           .bytes = pick->bytes,
                           .left = pick->bytes,
                           .number = ++fills->recent_number};
    pick->buf = buf;
}

size_t fill_recent_read(StoreFill *fill, void *buf, size_t len, uint64_t off)
{
    Fills *fills = fill->store->fills;
    FillRecent *recent = NULL;
    if (fill->direct < 0)
        return 0;
    pthread_mutex_lock(&fills->lock);
    for (FillRecent *r = fills->recents; r < fills->recents + fills->n_recents && !recent; r++)
        if (r->fill == fill && off >= r->off && off - r->off < r->bytes)
            recent = r;
    if (recent)
        recent->users++;
    fills_unlock(fills);
    if (!recent)
        return 0;
    const uint64_t at = off - recent->off;
    len = MIN(len, recent->bytes - at);
    memcpy(buf, recent->buf + at, len);
    pthread_mutex_lock(&fills->lock);
    recent->users--;
    recent->left -= MIN(recent->left, len);
    fills_unlock(fills);
    return len;
}

void fill_recent_forget_locked(Fills *fills, const StoreFill *fill)
{
    for (FillRecent *r = fills->recents; r < fills->recents + fills->n_recents; r++) {
        if (r->fill != fill)
            continue;
        r->fill = NULL;
        /* The kernel may have the memory when it needs it. */
        madvise(r->buf, fill->store->config.chunk_bytes, MADV_FREE);
    }
}

void fill_recent_forget(const StoreFill *fill)
{
    Fills *fills = fill->store->fills;
    if (fill->direct < 0)
        return;
    pthread_mutex_lock(&fills->lock);
    fill_recent_forget_locked(fills, fill);
    fills_unlock(fills);
}
