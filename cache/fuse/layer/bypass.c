/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs has a buffer of its own, since the caller may be gone when the bytes come. It belongs
 * to its thread once that has begun, and knows its caller until one of the two ends the read.
 */
#include "cache/fuse/layer/bypass.h"
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <pthread.h>
#include <string.h>
#include "cache/fuse/layer/bypass_budget.h"
#include "cache/origin/thread_room.h"

/* At once; libcephfs has a lock that they share. */
#define THREADS_MAX 64

typedef struct PastRead {
    Task task;
    Bypass *bypass;
    BypassRead *caller; /* Bypass.lock; NULL: it was withdrawn */
    char *path;
    ObjectKey key;
    uint64_t off;
    size_t len;
    char *buf;
    atomic_bool withdrawn;
} PastRead;

struct Bypass {
    Origin *origin;
    pthread_mutex_t lock;
    Tasks *threads;
    BypassShare share;
};

static void past_free(PastRead *r)
{
    g_free(r->path);
    g_free(r->buf);
    g_free(r);
}

static ssize_t read_all(Origin *origin, OriginFile *file, const PastRead *r)
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

static ssize_t make_read(Origin *origin, const PastRead *r)
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

static void run_read(Task *task)
{
    PastRead *r = (PastRead *)task;
    Bypass *b = r->bypass;
    if (!bypass_budget_take(&b->share, r->len, &r->withdrawn)) {
        past_free(r);
        return;
    }
    r->buf = g_malloc(MAX(r->len, 1));
    ssize_t result = make_read(b->origin, r);
    if (result == -EINTR) /* means that the reader is killed */
        result = -EIO;
    pthread_mutex_lock(&b->lock);
    BypassRead *caller = r->caller;
    if (caller)
        caller->running = NULL;
    pthread_mutex_unlock(&b->lock);
    if (caller) {
        caller->result = result;
        caller->buf = result >= 0 ? g_steal_pointer(&r->buf) : NULL;
        caller->task.run(&caller->task);
    }
    bypass_budget_give(&b->share, r->len);
    past_free(r);
}

void bypass_begin(Bypass *b, BypassRead *read, const BypassRange *range)
{
    PastRead *r = g_new0(PastRead, 1);
    *r = (PastRead){.task.run = run_read,
                    .bypass = b,
                    .caller = read,
                    .path = g_strdup(range->path),
                    .key = *range->key,
                    .off = range->off,
                    .len = range->len};
    read->running = r;
    if (tasks_give(b->threads, &r->task))
        return;
    past_free(r);
    read->running = NULL;
    read->result = -EAGAIN;
    tasks_give(tasks_common(), &read->task);
}

void bypass_withdraw(Bypass *b, BypassRead *read, int result)
{
    pthread_mutex_lock(&b->lock);
    PastRead *r = read->running;
    if (r) {
        read->running = NULL;
        r->caller = NULL;
        if (tasks_take_back(b->threads, &r->task)) {
            past_free(r);
        } else {
            atomic_store(&r->withdrawn, TRUE);
            bypass_budget_wake();
        }
        read->result = result;
        tasks_give(tasks_common(), &read->task);
    }
    pthread_mutex_unlock(&b->lock);
}

Bypass *bypass_new(Origin *origin)
{
    Bypass *b = g_new0(Bypass, 1);
    b->origin = origin;
    pthread_mutex_init(&b->lock, NULL);
    b->threads = tasks_new(0, THREADS_MAX);
    tasks_set_spare(b->threads, thread_room_has_spare);
    return b;
}

void bypass_free(Bypass *b)
{
    if (!b)
        return;
    tasks_free(b->threads);
    pthread_mutex_destroy(&b->lock);
    g_free(b);
}
