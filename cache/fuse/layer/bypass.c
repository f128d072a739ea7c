/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A read belongs to two: who waits for it and the thread that makes it; the last one frees it. Its
 * bytes are in a buffer of its own, since who waited may be gone when they come.
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

/* Who finds so many before him is told at once that it takes too long. */
#define QUEUE_MAX 64

typedef struct Read {
    TAILQ_ENTRY(Read) link;
    unsigned references; /* lock */
    gboolean queued;     /* lock: nobody has begun it */
    gboolean done;       /* lock */
    ssize_t result;
    char *path;
    ObjectKey key;
    uint64_t off;
    size_t len;
    char *buf;
} Read;

struct Past {
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
    else if ((result = origin->ops->open(origin, node, O_RDONLY, &file)) == 0) {
        result = read_all(origin, file, r);
        origin->ops->close(origin, file);
    }
    origin->ops->put(origin, node);
    return result;
}

static void leave_queue_locked(Past *p, Read *r)
{
    TAILQ_REMOVE(&p->queue, r, link);
    r->queued = FALSE;
    p->queued--;
}

static void *run(void *data)
{
    Past *p = data;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        Read *r = TAILQ_FIRST(&p->queue);
        if (!r && p->stopping)
            break;
        if (!r) {
            pthread_cond_wait(&p->work, &p->lock);
            continue;
        }
        leave_queue_locked(p, r);
        pthread_mutex_unlock(&p->lock);
        ssize_t result = make_read(p->origin, r);
        pthread_mutex_lock(&p->lock);
        r->result = result;
        r->done = TRUE;
        pthread_cond_broadcast(&p->done);
        unref_locked(r);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

ssize_t past_read(Past *p, const char *path, const ObjectKey *key, void *buf, size_t len,
                  uint64_t off, unsigned timeout_ms)
{
    const struct timespec deadline = deadline_after_ms(timeout_ms);
    ssize_t result = -ETIMEDOUT;
    pthread_mutex_lock(&p->lock);
    if (p->queued < QUEUE_MAX) {
        Read *r = g_new0(Read, 1);
        *r = (Read){.references = 2, .path = g_strdup(path), .key = *key, .off = off, .len = len};
        r->buf = g_malloc(MAX(len, 1));
        TAILQ_INSERT_TAIL(&p->queue, r, link);
        r->queued = TRUE;
        p->queued++;
        pthread_cond_signal(&p->work);
        while (!r->done && pthread_cond_timedwait(&p->done, &p->lock, &deadline) != ETIMEDOUT)
            ;
        if (r->done)
            result = r->result;
        if (r->queued) { /* it need not be made */
            leave_queue_locked(p, r);
            unref_locked(r);
        }
        if (result > 0)
            memcpy(buf, r->buf, (size_t)result);
        unref_locked(r);
    }
    pthread_mutex_unlock(&p->lock);
    return result;
}

Past *past_start(Origin *origin, unsigned threads)
{
    Past *p = g_new0(Past, 1);
    p->origin = origin;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    cond_init_monotonic(&p->done);
    TAILQ_INIT(&p->queue);
    p->threads = g_new0(pthread_t, threads);
    while (p->n_threads < threads && pthread_create(&p->threads[p->n_threads], NULL, run, p) == 0)
        p->n_threads++;
    return p;
}

void past_stop(Past *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->stopping = TRUE;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->n_threads; i++)
        pthread_join(p->threads[i], NULL);
    pthread_cond_destroy(&p->work);
    pthread_cond_destroy(&p->done);
    pthread_mutex_destroy(&p->lock);
    g_free(p->threads);
    g_free(p);
}
