/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An image whose blocks are kept on the cache's disk.
 *
 * Invariants:
 * 1. A block with a word has the bytes that Ceph has: its word is removed before a write of it goes
 *    to Ceph, and is written again only when Ceph's result is known (in_flight.h). So the words are
 *    right at every moment, also when this process is killed.
 * 2. A write is answered when Ceph has it, a flush when Ceph says so: never earlier.
 * 3. Kept blocks of an image that others may write are used only while Ceph has said a moment ago
 *    that no other client has written it (watch.c).
 * 4. The disk is written by the pool's threads, never by librbd's, which bring the next answers.
 */
#include <errno.h>
#include <string.h>
#include "cache/block/internal.h"

static Cached *cached_of(Image *image)
{
    return (Cached *)image;
}

/* ---- reading ---- */

typedef struct Bounce {
    Cached *cached;
    void *buf;
    size_t len, skip;
    ImageDone done;
    void *data;
    char blocks[];
} Bounce;

static void on_bounced(void *data, ssize_t result)
{
    Bounce *b = data;
    if (result >= 0) {
        memcpy(b->buf, b->blocks + b->skip, b->len);
        result = (ssize_t)b->len;
    }
    b->done(b->data, result);
    g_free(b);
}

static void read_blocks(Cached *c, void *buf, size_t len, uint64_t off, ImageDone done, void *data)
{
    Kept *k = cached_kept_of(c, off, len);
    int rc = block_file_read(k->file, buf, len, off);
    if (rc == 0) {
        atomic_fetch_add(&c->bytes_hit, len);
        kept_use(k, off, len);
        fetch_ahead(c, off, len);
        done(data, (ssize_t)len);
        return;
    }
    if (rc != -ENOENT)
        store_report_disk(k->cache->store, rc);
    fetch_read(c, buf, len, off, done, data);
    fetch_ahead(c, off, len);
}

static void cached_read(Image *image, void *buf, size_t len, uint64_t off, ImageDone done,
                        void *data)
{
    Cached *c = cached_of(image);
    const uint64_t from = block_floor(off), to = block_ceil(off + len);
    if (!kept_is_usable(c->kept) || !watch_is_good(c) || to > atomic_load(&c->kept->end)) {
        atomic_fetch_add(&c->bytes_fetched, len);
        c->beneath->ops->read(c->beneath, buf, len, off, done, data);
        return;
    }
    if (from == off && to == off + len) {
        read_blocks(c, buf, len, off, done, data);
        return;
    }
    Bounce *b = g_try_malloc(sizeof(Bounce) + (to - from));
    if (!b) {
        done(data, -ENOMEM);
        return;
    }
    *b = (Bounce){c, buf, len, off - from, done, data};
    read_blocks(c, b->blocks, to - from, from, on_bounced, b);
}

/* ---- writing ---- */

typedef struct Write {
    Carrier carrier; /* first */
    const void *buf; /* the caller's until done; NULL: zeros */
    uint64_t off, len;
    ImageDone done;
    void *data;
} Write;

/* Copies the bytes, because they are installed after the caller's buffer is gone. */
static void take_data(Write *w, uint64_t from, uint64_t to)
{
    Carrier *carrier = &w->carrier;
    const size_t len = to - from;
    carrier->off = from;
    if (!w->buf) {
        carrier->len = len;
        return;
    }
    if (!buffers_take(carrier->cached->kept->cache, len))
        return;
    carrier->buffered = len;
    carrier->buf = carrier->owned = g_try_malloc(len);
    if (!carrier->buf)
        return;
    memcpy(carrier->buf, (const char *)w->buf + (from - w->off), len);
    carrier->len = len;
}

static void on_written(void *data, ssize_t result)
{
    Write *w = data;
    Cached *c = w->carrier.cached;
    const uint64_t from = block_ceil(w->off);
    const uint64_t to = MIN(block_floor(w->off + w->len), atomic_load(&c->kept->end));
    watch_note(c, result);
    if (result >= 0 && from < to)
        take_data(w, from, to);
    ImageDone done = w->done;
    void *done_data = w->data;
    /* Before done(): after that the caller may close the image. */
    carrier_landed(&w->carrier, result >= 0);
    done(done_data, result);
}

static void begin_change(Image *image, const void *buf, uint64_t len, uint64_t off, ImageDone done,
                         void *data)
{
    Cached *c = cached_of(image);
    Kept *k = c->kept;
    const uint64_t from = block_floor(off);
    const uint64_t to = MIN(block_ceil(off + len), atomic_load(&k->end));
    Write *w = g_new0(Write, 1);
    *w = (Write){.carrier = {.flight = {.off = from, .end = MAX(from, to), .is_write = TRUE},
                             .cached = c,
                             .kept = k},
                 .buf = buf,
                 .off = off,
                 .len = len,
                 .done = done,
                 .data = data};
    int rc = 0;
    cached_note_owned(c, off, len);
    pthread_mutex_lock(&k->flights.lock);
    carrier_begin_locked(&w->carrier);
    if (from < to)
        rc = block_file_forget(k->file, from, to - from);
    pthread_mutex_unlock(&k->flights.lock);
    atomic_store(&k->dirty, TRUE);
    if (rc < 0)
        kept_break(k, rc);
    if (buf)
        c->beneath->ops->write(c->beneath, buf, len, off, on_written, w);
    else
        c->beneath->ops->zero(c->beneath, off, len, on_written, w);
}

static void cached_write(Image *image, const void *buf, size_t len, uint64_t off, ImageDone done,
                         void *data)
{
    begin_change(image, buf, len, off, done, data);
}

static void cached_zero(Image *image, uint64_t off, uint64_t len, ImageDone done, void *data)
{
    begin_change(image, NULL, len, off, done, data);
}

static void cached_flush(Image *image, ImageDone done, void *data)
{
    Cached *c = cached_of(image);
    c->beneath->ops->flush(c->beneath, done, data);
}

/* ---- the rest ---- */

static int cached_size(Image *image, uint64_t *bytes)
{
    Cached *c = cached_of(image);
    Kept *k = c->kept;
    int rc = c->beneath->ops->size(c->beneath, bytes);
    if (rc < 0)
        return rc;
    const uint64_t end = block_floor(*bytes);
    int failed = 0;
    pthread_mutex_lock(&k->flights.lock);
    if (end < atomic_load(&k->end))
        failed = block_file_truncate(k->file, end);
    atomic_store(&k->end, MIN(end, k->regions * REGION_BYTES));
    /* If the image grows again, the part that was cut off reads as zeros. */
    atomic_store(&c->parent_end, MIN(end, atomic_load(&c->parent_end)));
    pthread_mutex_unlock(&k->flights.lock);
    if (failed < 0)
        kept_break(k, failed);
    return 0;
}

static ssize_t cached_get_note(Image *image, const char *name, char *text, size_t size)
{
    Cached *c = cached_of(image);
    return c->beneath->ops->get_note(c->beneath, name, text, size);
}

static int cached_set_note(Image *image, const char *name, const char *text)
{
    Cached *c = cached_of(image);
    return c->beneath->ops->set_note(c->beneath, name, text);
}

/* The files are marked before the lock is released: after that the image may be another's. */
static void cached_destroy(Image *image)
{
    Cached *c = cached_of(image);
    ImageCache *cache = c->kept->cache;
    pthread_mutex_lock(&cache->lock);
    g_queue_unlink(&cache->open, &c->link);
    pthread_mutex_unlock(&cache->lock);
    watch_stop(c);
    pthread_mutex_lock(&c->lock);
    while (c->under_way)
        pthread_cond_wait(&c->idle, &c->lock);
    pthread_mutex_unlock(&c->lock);
    watch_destroy(c);
    pthread_mutex_destroy(&c->ahead.lock);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->idle);
    kept_leave(c);
}

static const ImageOps cached_ops = {
    .type = "cached",
    .destroy = cached_destroy,
    .read = cached_read,
    .write = cached_write,
    .flush = cached_flush,
    .zero = cached_zero,
    .size = cached_size,
    .get_note = cached_get_note,
    .set_note = cached_set_note,
};

Cached *cached_new(Kept *kept, Kept *parent, Image *beneath)
{
    Cached *c = g_new0(Cached, 1);
    c->base = (Image){
        .ops = &cached_ops, .read_only = beneath->read_only, .object_bytes = beneath->object_bytes};
    c->beneath = beneath;
    c->kept = kept;
    c->parent = parent;
    if (parent)
        atomic_store(&c->parent_end, block_floor(beneath->content.parent->end));
    c->link.data = c;
    pthread_mutex_init(&c->ahead.lock, NULL);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->idle, NULL);
    if (!beneath->read_only) {
        pthread_mutex_lock(&kept->flights.lock);
        kept->writer = c;
        pthread_mutex_unlock(&kept->flights.lock);
    }
    pthread_mutex_lock(&kept->cache->lock);
    g_queue_push_tail_link(&kept->cache->open, &c->link);
    pthread_mutex_unlock(&kept->cache->lock);
    watch_begin(c);
    return c;
}

gboolean image_cache_stats(Image *image, ImageCacheStats *stats)
{
    if (image->ops != &cached_ops)
        return FALSE;
    Cached *c = cached_of(image);
    stats->bytes_hit = atomic_load(&c->bytes_hit);
    stats->bytes_fetched = atomic_load(&c->bytes_fetched);
    stats->bytes_kept =
        block_file_bytes(c->kept->file) + (c->parent ? block_file_bytes(c->parent->file) : 0);
    return TRUE;
}

const char *image_cache_name(Image *image)
{
    return image->ops == &cached_ops ? cached_of(image)->kept->name : NULL;
}
