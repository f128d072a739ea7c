/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects that are fetched in parts: files of datasets that are larger than
 * StoreConfig.whole_bytes, unless they are fetched ahead. A chunk of such a fill is UNREAD until a
 * reader asks for it, or reads towards it in sequence. The rest is fetched when more than half is
 * there, or when a caller waits for all of it.
 *
 * When the last reader leaves, such a fill stops and is parked: its chunks stay in the temporary
 * file, without anything of the origin, and the next reader continues it by its path, unless it
 * reads through another origin, with other rights.
 */
#include "cache/store/fill/internal.h"
#include <errno.h>
#include <string.h>

/* Chunks of an object, at most; each costs 9 bytes of memory. */
#define PARTS_MAX 65536
/* A worker fetches at most StoreConfig.chunk_bytes at once: this many of the smallest chunks. */
#define SMALLEST 64
/* How far is read ahead, in chunks of StoreConfig.chunk_bytes. */
#define STREAM_UNITS 8
#define PARKED_MAX 256
/* Parked fills hold at most this part of the cache. */
#define PARKED_SHARE 8

uint64_t fill_part_bytes(const Store *store, uint64_t size)
{
    const uint64_t most = store->config.chunk_bytes;
    uint64_t bytes = MAX(most / SMALLEST, FILL_ALIGN);
    while (bytes < most && size / bytes >= PARTS_MAX)
        bytes *= 2;
    return MIN(bytes, most);
}

/* --- what is asked for --- */

static void ask_locked(Fills *fills, StoreFill *fill, uint64_t from, uint64_t to)
{
    uint64_t asked = 0;
    for (uint64_t chunk = from; chunk < to; chunk++) {
        if (fill->chunks[chunk] != CHUNK_UNREAD)
            continue;
        fill->chunks[chunk] = CHUNK_MISSING;
        asked++;
    }
    if (asked == 0)
        return;
    fill->missing += asked;
    fill_run_more_locked(fills, fill);
}

void fill_ask_locked(Fills *fills, StoreFill *fill, uint64_t chunk)
{
    if (fill->parts && fill->ready)
        ask_locked(fills, fill, chunk, chunk + 1);
}

void fill_ask_rest_locked(Fills *fills, StoreFill *fill)
{
    if (!fill->parts || fill_state(fill) != FILL_ACTIVE)
        return;
    fill->parts->whole = TRUE;
    if (fill->ready)
        ask_locked(fills, fill, 0, fill->n_chunks);
}

/* The reads that this one continues; others come in any order, because the kernel reads ahead with
 * several requests at once. */
static ReadStream *stream_at(FillParts *parts, uint64_t off, uint64_t slack)
{
    for (int i = 0; i < FILL_STREAMS; i++) {
        ReadStream *s = &parts->streams[i];
        if (s->used && off + slack >= s->next && off <= s->next + slack)
            return s;
    }
    return NULL;
}

/* One that is read at random goes before one that is read in sequence. */
static ReadStream *oldest_stream(FillParts *parts, uint64_t grown)
{
    ReadStream *oldest = NULL, *oldest_short = NULL;
    for (int i = 0; i < FILL_STREAMS; i++) {
        ReadStream *s = &parts->streams[i];
        ReadStream **best = s->bytes < grown ? &oldest_short : &oldest;
        if (!*best || s->used < (*best)->used)
            *best = s;
    }
    return oldest_short ? oldest_short : oldest;
}

/* Up to where the object is fetched for this read: beyond it as far as was read in sequence, so
 * that not more than twice of what is read is fetched. Short sequences are left to the kernel,
 * which reads ahead itself. */
static uint64_t follow(StoreFill *fill, uint64_t off, uint64_t len)
{
    const uint64_t unit = fill->store->config.chunk_bytes, end = off + len;
    FillParts *parts = fill->parts;
    ReadStream *s = stream_at(parts, off, unit / 2);
    if (!s) {
        s = oldest_stream(parts, unit / 2);
        *s = (ReadStream){.first = off, .next = end, .bytes = len, .used = ++parts->reads};
        return end;
    }
    s->used = ++parts->reads;
    if (end <= s->next)
        return end;
    s->bytes += MIN(len, end - s->next);
    s->next = end;
    const uint64_t window = MIN(s->bytes, unit * STREAM_UNITS);
    const gboolean in_sequence = s->bytes >= unit / 2 && s->bytes >= (s->next - s->first) / 2;
    if (!in_sequence || s->asked >= s->next + window / 2)
        return end;
    s->asked = s->next + window;
    return s->asked;
}

void fill_read_locked(Fills *fills, StoreFill *fill, uint64_t off, uint64_t len)
{
    if (!fill->parts || fill->parts->whole || !fill->ready || fill_state(fill) != FILL_ACTIVE)
        return;
    const uint64_t end = follow(fill, off, len);
    ask_locked(fills, fill, off / fill->chunk_bytes,
               MIN(fill->n_chunks, (end + fill->chunk_bytes - 1) / fill->chunk_bytes));
    if (fill->done > fill->n_chunks / 2)
        fill_ask_rest_locked(fills, fill);
}

/* --- parked --- */

void fill_drop_locked(Fills *fills, StoreFill *fill)
{
    fill_fail_locked(fills, fill, -ECANCELED);
    fill_release_if_idle_locked(fills, fill);
}

static uint64_t parked_bytes_locked(const Fills *fills)
{
    const StoreFill *fill;
    uint64_t bytes = 0;
    TAILQ_FOREACH (fill, &fills->parked, parked_link)
        bytes += fill->reserved;
    return bytes;
}

void fill_put_origin_locked(Fills *fills, StoreFill *fill)
{
    Origin *origin = fill->origin;
    /* Again, if a reader came and went meanwhile. */
    while (fill->is_parked && fill->busy == 0 && (fill->file || fill->node)) {
        OriginFile *file = g_steal_pointer(&fill->file);
        OriginNode *node = g_steal_pointer(&fill->node);
        fill->busy++;
        fills_unlock(fills);
        if (file)
            origin->ops->close(origin, file);
        if (node)
            origin->ops->put(origin, node);
        pthread_mutex_lock(&fills->lock);
        fill->busy--;
    }
    fill_release_if_idle_locked(fills, fill);
}

static void stop_locked(StoreFill *fill)
{
    for (int i = 0; i < FILL_STREAMS; i++)
        fill->parts->streams[i].asked = 0;
    for (uint64_t chunk = 0; fill->missing > 0; chunk++) {
        if (fill->chunks[chunk] != CHUNK_MISSING)
            continue;
        fill->chunks[chunk] = CHUNK_UNREAD;
        fill->missing--;
    }
    fill_leave_queues_locked(fill);
}

/* Which parked fill goes: one at random when they are too many, so that of a loop over more files
 * some stay; the one with most when they hold too much. Never `fill`, the newest. */
static StoreFill *victim_locked(const Fills *fills, const StoreFill *fill, gboolean too_many)
{
    StoreFill *victim = NULL, *other;
    guint i = 0;
    TAILQ_FOREACH (other, &fills->parked, parked_link) {
        if (other == fill)
            continue;
        i++;
        const gboolean better =
            too_many ? g_random_int() % i == 0 : !victim || other->reserved > victim->reserved;
        if (better)
            victim = other;
    }
    return victim;
}

static void park_locked(Fills *fills, StoreFill *fill, uint64_t most_bytes)
{
    fill_recent_forget_locked(fills, fill);
    TAILQ_INSERT_TAIL(&fills->parked, fill, parked_link);
    fill->is_parked = TRUE;
    fills->n_parked++;
    uint64_t most = most_bytes / PARKED_SHARE;
    if (fill->reserved > most) /* it stays, and the others with it, until the next comes */
        most += fill->reserved;
    /* Both drop the lock: the fill may be gone then, and is only compared with. */
    fill_put_origin_locked(fills, fill);
    StoreFill *victim = fill;
    while (victim) {
        const gboolean too_many = fills->n_parked > PARKED_MAX;
        victim = too_many || parked_bytes_locked(fills) > most
                     ? victim_locked(fills, fill, too_many)
                     : NULL;
        if (victim)
            fill_drop_locked(fills, victim);
    }
}

void fill_left(StoreFill *fill)
{
    Store *store = fill->store;
    Fills *fills = store->fills;
    uint64_t most_bytes, most_inodes;
    space_bounds(store, &most_bytes, &most_inodes);
    pthread_mutex_lock(&fills->lock);
    const unsigned refs = atomic_fetch_sub(&fill->refs, 1) - 1;
    /* One: that of `live`. */
    if (refs == 1 && fill_state(fill) == FILL_ACTIVE && !fill->parts->whole) {
        stop_locked(fill);
        if (fill->done + fill->busy > 0)
            park_locked(fills, fill, most_bytes);
        else
            fill_drop_locked(fills, fill);
    }
    fills_unlock(fills);
    if (refs == 0)
        fill_free(fill);
}

static StoreFill *first_parked_locked(const Fills *fills, const TagId *tag)
{
    StoreFill *fill;
    TAILQ_FOREACH (fill, &fills->parked, parked_link)
        if (!tag || memcmp(&fill->tag, tag, sizeof(*tag)) == 0)
            break;
    return fill;
}

gboolean fill_drop_oldest_parked(Fills *fills)
{
    pthread_mutex_lock(&fills->lock);
    StoreFill *fill = TAILQ_FIRST(&fills->parked);
    if (fill)
        fill_drop_locked(fills, fill);
    fills_unlock(fills);
    return fill != NULL;
}

uint64_t store_evict_parts(Store *store, const char *tag, uint64_t bytes)
{
    Fills *fills = store->fills;
    TagId id;
    uint64_t freed = 0;
    StoreFill *fill;
    if (tag)
        tag_id(tag, &id);
    pthread_mutex_lock(&fills->lock);
    while (freed < bytes && (fill = first_parked_locked(fills, tag ? &id : NULL))) {
        freed += fill->reserved;
        fill_drop_locked(fills, fill);
    }
    fills_unlock(fills);
    return freed;
}
