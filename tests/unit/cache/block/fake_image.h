/* SPDX-License-Identifier: Apache-2.0 */
/* An image in memory that others can share, whose answers come at once, late or when told to. */
#ifndef HEARTH_TESTS_FAKE_IMAGE_H
#define HEARTH_TESTS_FAKE_IMAGE_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include "cache/block/workers.h"
#include "cache/origin/image.h"
#include "tests/unit/harness.h"

#define FAKE_BYTES (8u << 20)

/* What Ceph has: outlives a process that is killed. */
typedef struct FakeCeph {
    uint64_t bytes, version;
    char note[64];
    atomic_ulong read_bytes;
    char content[FAKE_BYTES];
} FakeCeph;

typedef struct FakeCall {
    void *to;
    const void *from;
    uint64_t off, len;
    ImageDone done;
    void *data;
} FakeCall;

typedef struct FakeImage {
    Image base;
    FakeCeph *ceph;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    gboolean hold, late; /* lock */
    gboolean left;
    GQueue held;             /* lock: FakeCall */
    atomic_int error;        /* of every request */
    gboolean deaf;           /* lock: checks wait, in the call, until it is not */
    gboolean silent;         /* lock: checks are not answered, but held: */
    ImageDone check_done;    /* lock */
    void *check_data;        /* lock */
    atomic_int checks;       /* that came */
    atomic_int check_result; /* of the next, if not 0 */
    Workers *pool;           /* of late answers */
} FakeImage;

static inline FakeCeph *fake_ceph_new(void)
{
    FakeCeph *ceph =
        mmap(NULL, sizeof(FakeCeph), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(ceph != MAP_FAILED);
    ceph->bytes = FAKE_BYTES;
    ceph->version = 10;
    for (size_t i = 0; i < FAKE_BYTES; i++)
        ceph->content[i] = (char)(1 + i % 251 + i / 4096 % 5);
    return ceph;
}

static inline void fake_ceph_free(FakeCeph *ceph)
{
    munmap(ceph, sizeof(FakeCeph));
}

static inline void image_fake_answer(FakeImage *f, FakeCall *c)
{
    ssize_t result = f->error ? f->error : (ssize_t)c->len;
    if (!f->error && c->to) {
        pthread_mutex_lock(&f->lock);
        memcpy(c->to, f->ceph->content + c->off, c->len);
        pthread_mutex_unlock(&f->lock);
        atomic_fetch_add(&f->ceph->read_bytes, c->len);
    }
    c->done(c->data, result);
    g_free(c);
}

/* Writes are done in Ceph at once, or late, but before they are answered. */
static inline void image_fake_apply(FakeImage *f, FakeCall *c)
{
    if (f->error || c->to)
        return;
    pthread_mutex_lock(&f->lock);
    if (c->from)
        memcpy(f->ceph->content + c->off, c->from, c->len);
    else
        memset(f->ceph->content + c->off, 0, c->len);
    pthread_mutex_unlock(&f->lock);
}

static inline void image_fake_late(void *data, void *image)
{
    FakeImage *f = image;
    FakeCall *c = data;
    g_usleep((gulong)g_random_int_range(0, 300));
    image_fake_apply(f, c);
    g_usleep((gulong)g_random_int_range(0, 300));
    image_fake_answer(f, c);
}

static inline void image_fake_begin(Image *image, void *to, const void *from, uint64_t len,
                                    uint64_t off, ImageDone done, void *data)
{
    FakeImage *f = (FakeImage *)image;
    FakeCall *c = g_new(FakeCall, 1);
    *c = (FakeCall){to, from, off, len, done, data};
    pthread_mutex_lock(&f->lock);
    gboolean hold = f->hold, late = f->late;
    if (hold)
        g_queue_push_tail(&f->held, c);
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    if (late && !hold) {
        workers_push(f->pool, c);
    } else if (!hold) {
        image_fake_apply(f, c);
        image_fake_answer(f, c);
    }
}

static inline void image_fake_read(Image *image, void *buf, size_t len, uint64_t off,
                                   ImageDone done, void *data)
{
    image_fake_begin(image, buf, NULL, len, off, done, data);
}

static inline void image_fake_write(Image *image, const void *buf, size_t len, uint64_t off,
                                    ImageDone done, void *data)
{
    image_fake_begin(image, NULL, buf, len, off, done, data);
}

static inline void image_fake_zero(Image *image, uint64_t off, uint64_t len, ImageDone done,
                                   void *data)
{
    image_fake_begin(image, NULL, NULL, len, off, done, data);
}

static inline void image_fake_flush(Image *image, ImageDone done, void *data)
{
    (void)image;
    done(data, 0);
}

static inline void image_fake_check(Image *image, ImageDone done, void *data)
{
    FakeImage *f = (FakeImage *)image;
    const gboolean stale = image->content.guarded && f->ceph->version != image->content.version;
    const int result = atomic_exchange(&f->check_result, 0);
    atomic_fetch_add(&f->checks, 1);
    pthread_mutex_lock(&f->lock);
    const gboolean silent = f->silent;
    f->check_done = silent ? done : NULL;
    f->check_data = data;
    pthread_cond_broadcast(&f->changed);
    while (f->deaf)
        pthread_cond_wait(&f->changed, &f->lock);
    pthread_mutex_unlock(&f->lock);
    if (!silent)
        done(data, result ? result : stale ? -ESTALE : f->error);
}

static inline int image_fake_size(Image *image, uint64_t *bytes)
{
    *bytes = ((FakeImage *)image)->ceph->bytes;
    return 0;
}

static inline ssize_t image_fake_get_note(Image *image, const char *name, char *text, size_t size)
{
    FakeCeph *ceph = ((FakeImage *)image)->ceph;
    ck_assert_str_eq(name, "cache");
    g_strlcpy(text, ceph->note, size);
    return ceph->note[0] ? (ssize_t)strlen(text) : -ENODATA;
}

static inline int image_fake_set_note(Image *image, const char *name, const char *text)
{
    FakeCeph *ceph = ((FakeImage *)image)->ceph;
    ck_assert_str_eq(name, "cache");
    g_strlcpy(ceph->note, text ? text : "", sizeof(ceph->note));
    ceph->version++;
    return 0;
}

static inline int image_fake_leave(Image *image, uint64_t *version)
{
    FakeImage *f = (FakeImage *)image;
    f->left = TRUE;
    *version = ++f->ceph->version;
    return 0;
}

static inline void image_fake_destroy(Image *image)
{
    FakeImage *f = (FakeImage *)image;
    if (!f->base.read_only && !f->left)
        f->ceph->version++; /* the lock */
    workers_free(f->pool);
    g_free(f->base.content.name);
    g_free(f->base.content.client);
    g_free(f->base.content.taken_from);
    image_parent_free(f->base.content.parent);
    g_free(f);
}

static const ImageOps fake_image_ops = {
    .type = "fake",
    .destroy = image_fake_destroy,
    .read = image_fake_read,
    .write = image_fake_write,
    .flush = image_fake_flush,
    .zero = image_fake_zero,
    .check = image_fake_check,
    .size = image_fake_size,
    .get_note = image_fake_get_note,
    .set_note = image_fake_set_note,
    .leave = image_fake_leave,
};

static inline FakeImage *fake_image_new(FakeCeph *ceph, gboolean immutable)
{
    FakeImage *f = g_new0(FakeImage, 1);
    f->base = (Image){.ops = &fake_image_ops,
                      .read_only = immutable,
                      .content = {.name = g_strdup(immutable ? "ceph/1/image@7" : "ceph/1/image@0"),
                                  .immutable = immutable,
                                  .version = ceph->version,
                                  .asked_ns = image_clock_ns()}};
    f->ceph = ceph;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    g_queue_init(&f->held);
    f->pool = workers_new(8, image_fake_late, f);
    return f;
}

static inline void image_fake_hold(FakeImage *f)
{
    pthread_mutex_lock(&f->lock);
    f->hold = TRUE;
    pthread_mutex_unlock(&f->lock);
}

/* The nth that is held, once there are so many; it is no longer. */
static inline FakeCall *image_fake_take(FakeImage *f, guint n)
{
    pthread_mutex_lock(&f->lock);
    while (g_queue_get_length(&f->held) <= n)
        pthread_cond_wait(&f->changed, &f->lock);
    FakeCall *c = g_queue_pop_nth(&f->held, n);
    pthread_mutex_unlock(&f->lock);
    return c;
}

static inline void image_fake_let_go(FakeImage *f)
{
    pthread_mutex_lock(&f->lock);
    f->hold = FALSE;
    pthread_mutex_unlock(&f->lock);
    for (;;) {
        pthread_mutex_lock(&f->lock);
        FakeCall *c = g_queue_pop_head(&f->held);
        pthread_mutex_unlock(&f->lock);
        if (!c)
            return;
        image_fake_apply(f, c);
        image_fake_answer(f, c);
    }
}

#endif
