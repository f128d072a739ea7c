/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A read has two owners, the caller that waits for it and the thread that makes it; the last one
 * frees it. It has a buffer of its own, since the caller may be gone when the bytes come.
 */
#include "cache/fuse/layer/bypass.h"
#include "common/monotonic.h"
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <pthread.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

/* Reads queued beyond this fail immediately with ETIMEDOUT. */
#define QUEUE_MAX 64

typedef struct Read {
    TAILQ_ENTRY(Read) link;
    unsigned references; /* lock */
    gboolean queued;     /* lock: no thread has begun it */
    gboolean done;       /* lock */
    ssize_t result;
    char *path;
    ObjectKey key;
    uint64_t off;
    size_t len;
    char *buf;
} Read;

struct Bypass {
    Origin *origin;
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    TAILQ_HEAD(, Read) queue; /* lock; each with a reference */
    unsigned queued;          /* lock */
    gboolean stopping;        /* lock */
    unsigned n_threads;
    pthread_t *threads;
};

static void unref_locked(Read *r)
{
    if (--r->references > 0)
        return;
    g_free(r->path);
    g_free(r->buf);
    g_free(r);
}

static ssize_t read_all(Origin *origin, OriginFile *file, const Read *r)
{
    size_t done = 0;
    while (done < r->len) {
        ssize_t n = origin->ops->read(origin, file, r->buf + done, r->len - done, r->off + done);
        if (n == -EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? n : -EIO;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

static ssize_t make_read(Origin *origin, const Read *r)
{
    OriginNode *node;
    OriginFile *file;
    OriginAttr attr;
    ObjectKey now;
    ssize_t result = origin_find(origin, r->path, &node, &attr);
    if (result < 0)
        return result;
    object_key_init(&now, origin, &attr);
    if (memcmp(&now, &r->key, sizeof(now)) != 0)
        result = -ESTALE;
    else
        result = origin->ops->open(origin, node, O_RDONLY, &file);
    if (result == 0) {
        result = read_all(origin, file, r);
        origin->ops->close(origin, file);
    }
    origin->ops->put(origin, node);
    return result;
}

static void leave_queue_locked(Bypass *b, Read *r)
{
    TAILQ_REMOVE(&b->queue, r, link);
    r->queued = FALSE;
    b->queued--;
}

static void *bypass_thread(void *data)
{
    Bypass *b = data;
    pthread_mutex_lock(&b->lock);
    for (;;) {
        Read *r = TAILQ_FIRST(&b->queue);
        if (!r && b->stopping)
            break;
        if (!r) {
            pthread_cond_wait(&b->work, &b->lock);
            continue;
        }
        leave_queue_locked(b, r);
        pthread_mutex_unlock(&b->lock);
        ssize_t result = make_read(b->origin, r);
        pthread_mutex_lock(&b->lock);
        r->result = result;
        r->done = TRUE;
        pthread_cond_broadcast(&b->done);
        unref_locked(r);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

static Read *enqueue_locked(Bypass *b, const BypassRead *wanted)
{
    Read *r = g_new0(Read, 1);
    *r = (Read){
        .references = 2,
        .queued = TRUE,
        .path = g_strdup(wanted->path),
        .key = *wanted->key,
        .off = wanted->off,
        .len = wanted->len,
        .buf = g_malloc(MAX(wanted->len, 1)),
    };
    TAILQ_INSERT_TAIL(&b->queue, r, link);
    b->queued++;
    pthread_cond_signal(&b->work);
    return r;
}

ssize_t bypass_read(Bypass *b, const BypassRead *wanted, void *buf)
{
    const struct timespec deadline = deadline_after_ms(wanted->timeout_ms);
    ssize_t result = -ETIMEDOUT;
    pthread_mutex_lock(&b->lock);
    if (b->queued < QUEUE_MAX) {
        Read *r = enqueue_locked(b, wanted);
        while (!r->done && pthread_cond_timedwait(&b->done, &b->lock, &deadline) != ETIMEDOUT)
            ;
        if (r->done)
            result = r->result;
        if (r->queued) { /* it is not needed any more */
            leave_queue_locked(b, r);
            unref_locked(r);
        }
        if (result > 0)
            memcpy(buf, r->buf, (size_t)result);
        unref_locked(r);
    }
    pthread_mutex_unlock(&b->lock);
    return result;
}

Bypass *bypass_start(Origin *origin, unsigned threads)
{
    Bypass *b = g_new0(Bypass, 1);
    b->origin = origin;
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->work, NULL);
    cond_init_monotonic(&b->done);
    TAILQ_INIT(&b->queue);
    b->threads = g_new0(pthread_t, threads);
    while (b->n_threads < threads &&
           pthread_create(&b->threads[b->n_threads], NULL, bypass_thread, b) == 0)
        b->n_threads++;
    return b;
}

void bypass_stop(Bypass *b)
{
    if (!b)
        return;
    pthread_mutex_lock(&b->lock);
    b->stopping = TRUE;
    pthread_cond_broadcast(&b->work);
    pthread_mutex_unlock(&b->lock);
    for (unsigned i = 0; i < b->n_threads; i++)
        pthread_join(b->threads[i], NULL);
    pthread_cond_destroy(&b->work);
    pthread_cond_destroy(&b->done);
    pthread_mutex_destroy(&b->lock);
    g_free(b->threads);
    g_free(b);
}
