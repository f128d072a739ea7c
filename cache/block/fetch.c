/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that are not kept are read from Ceph in whole chunks. A reader of bytes that are already
 * being read waits for that read. Sequential reading triggers reading ahead, because a device's
 * queue is short, and an answer from Ceph takes as long as several reads from the disk.
 */
#include <errno.h>
#include <string.h>
#include "cache/block/internal.h"

/* This much in a row is sequential. */
#define RUN_BYTES (512u << 10)
#define AHEAD_BYTES (8u << 20)
/* Requests of one stream overtake each other. */
#define DISORDER_BYTES (2u << 20)

/* A read that is answered by done(data, len or -errno). */
typedef struct Read {
    void *buf;
    size_t len;
    uint64_t off;
    ImageDone done;
    void *data;
} Read;

typedef struct Waiter {
    struct Waiter *next;
    Read read;
} Waiter;

typedef struct Fetch {
    Carrier carrier; /* first */
    Waiter *waiters; /* flights.lock, while it is airborne */
    size_t len;
    char buf[];
} Fetch;

/* Whether the range still belongs to the same image: no part of it has become the clone's own. */
static gboolean is_still_of(const Fetch *f)
{
    return cached_kept_of(f->carrier.cached, f->carrier.off, f->len) == f->carrier.kept ||
           f->carrier.kept == f->carrier.cached->kept;
}

static void on_verified(void *data, ssize_t result)
{
    Fetch *f = data;
    watch_note(f->carrier.cached, result);
    carrier_landed(&f->carrier, result == 0);
}

static void on_fetched(void *data, ssize_t result)
{
    Fetch *f = data;
    Cached *c = f->carrier.cached;
    Flights *flights = &f->carrier.kept->flights;
    const gboolean whole = result == (ssize_t)f->len;
    watch_note(c, result);
    if (result >= 0 && !whole)
        result = -EIO;
    const gboolean good = whole && is_still_of(f);
    pthread_mutex_lock(&flights->lock);
    Waiter *waiters = g_steal_pointer(&f->waiters);
    f->carrier.flight.state = FLIGHT_LANDED;
    f->carrier.flight.spoilt |= !good;
    pthread_mutex_unlock(&flights->lock);
    atomic_fetch_add(&c->bytes_fetched, whole ? f->len : 0);
    while (waiters) {
        Waiter *w = waiters;
        waiters = w->next;
        const Read *r = &w->read;
        if (whole)
            memcpy(r->buf, f->buf + (r->off - f->carrier.off), r->len);
        r->done(r->data, whole ? (ssize_t)r->len : result);
        g_free(w);
    }
    f->carrier.buf = f->buf;
    f->carrier.len = good ? f->len : 0;
    if (good && c->beneath->content.guarded)
        c->beneath->ops->check(c->beneath, on_verified, f);
    else
        carrier_landed(&f->carrier, good);
}

/* `taken` is what was counted for it: more or less than its length if a write or a new size came in
 * between. NULL: no memory; the buffers are given back. */
static Fetch *fetch_new(Cached *c, Kept *k, uint64_t off, uint64_t end, size_t taken)
{
    const size_t len = end - off;
    Fetch *f = g_try_malloc(sizeof(Fetch) + len);
    if (!f) {
        buffers_give(c->kept->cache, taken);
        return NULL;
    }
    f->carrier = (Carrier){
        .flight = {.off = off, .end = end}, .cached = c, .kept = k, .off = off, .buffered = taken};
    f->waiters = NULL;
    f->len = len;
    return f;
}

static void add_waiter_locked(Fetch *f, const Read *r)
{
    Waiter *w = g_new(Waiter, 1);
    *w = (Waiter){f->waiters, *r};
    f->waiters = w;
}

static void send_fetch(Cached *c, Fetch *f)
{
    c->beneath->ops->read(c->beneath, f->buf, f->len, f->carrier.off, on_fetched, f);
}

/* A range that another clone reads may turn out to be that clone's own. */
static gboolean may_join(const Fetch *f, const Cached *c, const Kept *k)
{
    const Cached *other = f->carrier.cached;
    return other == c || f->carrier.flight.sure || (other->kept == k && c->kept == k);
}

/* If a fill brings the range: waits for it, or copies from it when it has landed. */
static gboolean join_fetch(Cached *c, const Read *r)
{
    Kept *k = cached_kept_of(c, r->off, r->len);
    Flights *flights = &k->flights;
    pthread_mutex_lock(&flights->lock);
    Fetch *found = (Fetch *)flights_find_fill_locked(flights, r->off, r->off + r->len);
    if (found && !may_join(found, c, k))
        found = NULL;
    const gboolean landed = found && found->carrier.flight.state != FLIGHT_AIRBORNE;
    if (landed)
        memcpy(r->buf, found->buf + (r->off - found->carrier.off), r->len);
    else if (found)
        add_waiter_locked(found, r);
    pthread_mutex_unlock(&flights->lock);
    if (landed)
        r->done(r->data, (ssize_t)r->len);
    return found != NULL;
}

/* The whole chunks around the range; returns who keeps them. */
static Kept *chunks_of(Cached *c, uint64_t off, size_t len, uint64_t *from, uint64_t *to)
{
    const uint64_t chunk = c->kept->cache->chunk_bytes;
    Kept *k = cached_kept_of(c, off, len);
    *from = off - off % chunk;
    *to = MIN((off + len + chunk - 1) / chunk * chunk, atomic_load(&c->kept->end));
    if (k == c->parent)
        *to = MIN(*to, atomic_load(&c->parent_end));
    return k;
}

static void fetch_now(Cached *c, const Read *r, size_t taken)
{
    uint64_t from, to;
    Kept *k = chunks_of(c, r->off, r->len, &from, &to);
    Fetch *f = fetch_new(c, k, from, to, taken);
    if (!f) {
        atomic_fetch_add(&c->bytes_fetched, r->len);
        c->beneath->ops->read(c->beneath, r->buf, r->len, r->off, r->done, r->data);
        return;
    }
    pthread_mutex_lock(&k->flights.lock);
    add_waiter_locked(f, r);
    carrier_begin_locked(&f->carrier);
    pthread_mutex_unlock(&k->flights.lock);
    send_fetch(c, f);
}

/* ---- waiting for buffers ---- */

typedef struct Wanting {
    BufferWaiter waiter; /* first */
    Cached *cached;
    Read read;
} Wanting;

static size_t bytes_needed(const BufferWaiter *waiter)
{
    const Wanting *w = (const Wanting *)waiter;
    uint64_t from, to;
    chunks_of(w->cached, w->read.off, w->read.len, &from, &to);
    return to - from;
}

static void begin_wanting(BufferWaiter *waiter)
{
    Wanting *w = (Wanting *)waiter;
    fetch_now(w->cached, &w->read, waiter->taken);
    cached_unuse(w->cached);
    g_free(w);
}

static void fetch_piece(Cached *c, const Read *r)
{
    if (join_fetch(c, r))
        return;
    ImageCache *cache = c->kept->cache;
    Wanting *w = g_new(Wanting, 1);
    *w = (Wanting){{.bytes_needed = bytes_needed, .begin = begin_wanting}, c, *r};
    cached_use(c);
    buffers_wait(cache, &w->waiter);
}

/* ---- a read of more than one unit ---- */

typedef struct Gather {
    atomic_uint left;
    _Atomic ssize_t error;
    size_t len;
    ImageDone done;
    void *data;
} Gather;

static void on_piece(void *data, ssize_t result)
{
    Gather *g = data;
    if (result < 0)
        atomic_store(&g->error, result);
    if (atomic_fetch_sub(&g->left, 1) > 1)
        return;
    const ssize_t error = atomic_load(&g->error);
    g->done(g->data, error < 0 ? error : (ssize_t)g->len);
    g_free(g);
}

/* In units: each unit is read ahead, kept or absent as a whole. */
void fetch_read(Cached *c, void *buf, size_t len, uint64_t off, ImageDone done, void *data)
{
    const uint64_t end = off + len, first = off / FETCH_UNIT_BYTES,
                   last = (end - 1) / FETCH_UNIT_BYTES;
    if (first == last) {
        fetch_piece(c, &(Read){buf, len, off, done, data});
        return;
    }
    Gather *g = g_new0(Gather, 1);
    *g = (Gather){.left = (unsigned)(last - first + 1), .len = len, .done = done, .data = data};
    for (uint64_t unit = first; unit <= last; unit++) {
        const uint64_t from = MAX(off, unit * FETCH_UNIT_BYTES),
                       to = MIN(end, (unit + 1) * FETCH_UNIT_BYTES);
        char *piece = (char *)buf + (from - off);
        if (block_file_read(cached_kept_of(c, from, to - from)->file, piece, to - from, from) == 0)
            on_piece(g, 0);
        else
            fetch_piece(c, &(Read){piece, to - from, from, on_piece, g});
    }
}

/* ---- ahead ---- */

static void read_ahead(Cached *c, uint64_t from, uint64_t to)
{
    for (uint64_t off = from; off < to; off += FETCH_UNIT_BYTES) {
        const uint64_t end = MIN(off + FETCH_UNIT_BYTES, to);
        Kept *k = cached_kept_of(c, off, end - off);
        if (block_file_has(k->file, off, end - off))
            continue;
        pthread_mutex_lock(&k->flights.lock);
        gboolean asked = flights_find_fill_locked(&k->flights, off, end) != NULL;
        pthread_mutex_unlock(&k->flights.lock);
        if (asked || !buffers_take_ahead(k->cache, end - off))
            continue;
        Fetch *f = fetch_new(c, k, off, end, end - off);
        if (!f)
            continue;
        pthread_mutex_lock(&k->flights.lock);
        carrier_begin_locked(&f->carrier);
        pthread_mutex_unlock(&k->flights.lock);
        send_fetch(c, f);
    }
}

void fetch_ahead(Cached *c, uint64_t off, size_t len)
{
    Ahead *a = &c->ahead;
    const uint64_t end = off + len, last = atomic_load(&c->kept->end);
    uint64_t from = 0, to = 0;
    pthread_mutex_lock(&a->lock);
    if (off > a->end + DISORDER_BYTES || end + DISORDER_BYTES < a->end) {
        a->end = a->asked = end;
        a->run = 0;
    } else if (end > a->end) {
        a->run += MIN(len, end - a->end);
        a->end = end;
    }
    if (a->run >= RUN_BYTES) {
        from = MAX(a->asked, a->end);
        from = (from + FETCH_UNIT_BYTES - 1) / FETCH_UNIT_BYTES * FETCH_UNIT_BYTES;
        to = MIN((a->end + AHEAD_BYTES) / FETCH_UNIT_BYTES * FETCH_UNIT_BYTES, last);
        a->asked = MAX(a->asked, to);
    }
    pthread_mutex_unlock(&a->lock);
    if (from < to)
        read_ahead(c, from, to);
}
