/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An object is opened once, with the content; without one the first read begins a fill. After an
 * error the content is useless: the caller reads from the origin for as long as it has this
 * content.
 */
#include "cache/fuse/content.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

/* Asked of the disk at open(), so that it works while the reply and the first read travel. */
#define PREFETCH_BYTES (1 << 20)

struct Content {
    Store *store;
    Origin *origin;
    const char *tag;
    ObjectKey key;
    ObjectId id;
    ContentGuard guard;
    gboolean was_held;
    _Atomic unsigned refs;
    _Atomic int fd; /* of the complete object, or -1 */
    _Atomic int useless;
    pthread_mutex_t mutex; /* guards fill: the first read begins it */
    StoreFill *fill;
};

Content *content_open_key(Store *store, Origin *origin, const char *tag, const ObjectKey *key,
                          const ContentGuard *guard)
{
    Content *c = g_new0(Content, 1);
    c->store = store;
    c->origin = origin;
    c->tag = tag;
    c->guard = *guard;
    c->refs = 1;
    pthread_mutex_init(&c->mutex, NULL);
    c->key = *key;
    object_key_id(&c->key, &c->id);
    int fd = store_open_object(store, &c->id, c->key.size);
    c->fd = fd >= 0 ? fd : -1;
    if (fd >= 0)
        posix_fadvise(fd, 0, (off_t)MIN(c->key.size, PREFETCH_BYTES), POSIX_FADV_WILLNEED);
    c->was_held = fd >= 0;
    return c;
}

Content *content_open(Store *store, Origin *origin, const char *tag, const OriginAttr *attr,
                      const ContentGuard *guard)
{
    ObjectKey key;
    object_key_init(&key, origin, attr);
    return content_open_key(store, origin, tag, &key, guard);
}

Content *content_ref(Content *c)
{
    atomic_fetch_add(&c->refs, 1);
    return c;
}

void content_unref(Content *c)
{
    if (!c || atomic_fetch_sub(&c->refs, 1) != 1)
        return;
    if (c->fd >= 0)
        close(c->fd);
    store_fill_unref(c->fill);
    pthread_mutex_destroy(&c->mutex);
    g_free(c);
}

const ObjectKey *content_key(const Content *c)
{
    return &c->key;
}

gboolean content_was_held(const Content *c)
{
    return c->was_held;
}

static ssize_t mark_useless(Content *c, ssize_t error)
{
    atomic_store(&c->useless, 1);
    return error;
}

static ssize_t read_object(Content *c, int fd, void *buf, size_t len, uint64_t off)
{
    size_t done = 0;
    while (done < len) {
        ssize_t n = pread(fd, (char *)buf + done, len - done, (off_t)(off + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            /* Objects are complete: an end before the size is as bad as an error. */
            int error = n < 0 ? errno : EIO;
            store_report_bad(c->store, &c->id, error);
            return mark_useless(c, -error);
        }
        done += (size_t)n;
    }
    return (ssize_t)done;
}

static StoreFill *fill_of(Content *c, OriginNode *node)
{
    pthread_mutex_lock(&c->mutex);
    if (!c->fill) {
        c->fill = store_fill(c->store, c->origin, node, &c->key, c->tag);
        /* A writer that begins from now on finds the fill. */
        if (c->fill && atomic_load(c->guard.writes_begun) != c->guard.seen)
            store_spoil_fills(c->store, c->origin, c->key.ino);
    }
    StoreFill *fill = c->fill;
    pthread_mutex_unlock(&c->mutex);
    return fill;
}

int content_object(Content *c, size_t *len, uint64_t off)
{
    if (c->fd < 0 || atomic_load(&c->useless) || off >= c->key.size)
        return -1;
    *len = MIN(*len, c->key.size - off);
    return c->fd;
}

ssize_t content_read(Content *c, OriginNode *node, void *buf, size_t len, uint64_t off,
                     ContentSource *source)
{
    if (atomic_load(&c->useless))
        return -EIO;
    if (off >= c->key.size)
        return 0;
    len = MIN(len, c->key.size - off);
    int fd = c->fd;
    *source = fd >= 0 ? CONTENT_OBJECT : CONTENT_FILL;
    if (fd >= 0)
        return read_object(c, fd, buf, len, off);
    StoreFill *fill = fill_of(c, node);
    if (!fill)
        return mark_useless(c, -ENOSPC);
    ssize_t r = store_fill_read(fill, buf, len, off);
    return r < 0 ? mark_useless(c, r) : r;
}
