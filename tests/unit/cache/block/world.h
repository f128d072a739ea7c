/* SPDX-License-Identifier: Apache-2.0 */
/* A node's cache over one image of a Ceph in memory, and requests that are waited for. */
#ifndef HEARTH_TESTS_BLOCK_WORLD_H
#define HEARTH_TESTS_BLOCK_WORLD_H

#include "cache/block/internal.h"
#include "tests/unit/cache/block/fake_image.h"
#include "tests/unit/cache/store/fixture.h"

#define KB 1024u
#define CHUNK (64 * KB)

typedef struct World {
    Fixture fixture;
    FakeCeph *ceph;
    ImageCache *cache;
    FakeImage *fake;
    Image *image;
} World;

static inline void open_cache(World *w)
{
    fixture_open(&w->fixture);
    w->cache = image_cache_new(w->fixture.store, w->fixture.dir, CHUNK);
}

/* resumed: whose lock was still there, "run1" say; NULL: nobody's. */
static inline FakeImage *open_fake(World *w, const char *client, const char *resumed)
{
    FakeImage *f = fake_image_new(w->ceph, FALSE);
    f->base.content.client = g_strdup(client);
    f->base.content.taken_from = g_strdup(resumed);
    return f;
}

static inline void attach(World *w, gboolean resumed)
{
    w->fake = open_fake(w, "run", resumed ? "run" : NULL);
    w->image = image_cache_open(w->cache, &w->fake->base, 0);
}

static inline void begin(World *w)
{
    memset(w, 0, sizeof(*w));
    fixture_init(&w->fixture);
    w->ceph = fake_ceph_new();
    open_cache(w);
    attach(w, FALSE);
}

static inline void detach(World *w)
{
    image_close(g_steal_pointer(&w->image));
}

static inline void close_cache(World *w)
{
    image_cache_free(g_steal_pointer(&w->cache));
    fixture_close(&w->fixture);
}

static inline void end(World *w)
{
    if (w->image)
        detach(w);
    close_cache(w);
    fixture_done(&w->fixture);
    fake_ceph_free(w->ceph);
}

/* ---- calls that are waited for ---- */

typedef struct Wait {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    gboolean done;
    ssize_t result;
} Wait;

static inline void on_done(void *data, ssize_t result)
{
    Wait *w = data;
    pthread_mutex_lock(&w->lock);
    w->done = TRUE;
    w->result = result;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static inline void wait_init(Wait *w)
{
    memset(w, 0, sizeof(*w));
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
}

static inline ssize_t wait_for(Wait *w)
{
    pthread_mutex_lock(&w->lock);
    while (!w->done)
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
    return w->result;
}

static inline ssize_t do_read(Image *image, void *buf, size_t len, uint64_t off)
{
    Wait w;
    wait_init(&w);
    image->ops->read(image, buf, len, off, on_done, &w);
    return wait_for(&w);
}

static inline ssize_t do_write(Image *image, const void *buf, size_t len, uint64_t off)
{
    Wait w;
    wait_init(&w);
    image->ops->write(image, buf, len, off, on_done, &w);
    return wait_for(&w);
}

static inline ssize_t do_zero(Image *image, uint64_t len, uint64_t off)
{
    Wait w;
    wait_init(&w);
    image->ops->zero(image, off, len, on_done, &w);
    return wait_for(&w);
}

/* Until what was answered is installed too. */
static inline void settle(World *w)
{
    Cached *c = (Cached *)w->image;
    if (w->image == &w->fake->base)
        return;
    pthread_mutex_lock(&c->lock);
    while (c->under_way)
        pthread_cond_wait(&c->idle, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

/* Whether the range reads as Ceph has it. */
static inline gboolean right(World *w, uint64_t off, size_t len)
{
    g_autofree char *buf = g_malloc(len);
    ck_assert_int_eq(do_read(w->image, buf, len, off), (ssize_t)len);
    return memcmp(buf, w->ceph->content + off, len) == 0;
}

/* Bytes that reading the range asks of Ceph. */
static inline uint64_t asked(World *w, uint64_t off, size_t len)
{
    settle(w);
    uint64_t before = atomic_load(&w->ceph->read_bytes);
    ck_assert(right(w, off, len));
    settle(w);
    return atomic_load(&w->ceph->read_bytes) - before;
}

#endif
