/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes and files are those of the real origin; only the root is a stand-in, so that it can be
 * given out before there is a real origin. Closing does not wait for an attempt that is running:
 * the connecting thread has a reference, and closes a connection that it still gets.
 */
#include "cache/origin/deferred.h"
#include "common/monotonic.h"
#include <errno.h>
#include <gio/gio.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#define RETRY_MS 2000

typedef struct Deferred {
    Origin base;
    char *name;
    OriginAttr known;
    OriginConnect connect;
    void *data;
    GDestroyNotify free_data;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned references;       /* lock; of the owner and of the thread */
    gboolean closed;           /* lock */
    OriginDeferredState state; /* lock; HERE, OTHER and REFUSED are for ever */
    GError *error;             /* lock; of REFUSED and FAILED */
    struct timespec patient;   /* lock; until then a lookup waits */
    Origin *_Atomic real;      /* of HERE, with its root */
    OriginNode *root;
    OriginAttr root_attr;
    _Atomic int refusal; /* what is answered until then */
} Deferred;

static void unref(Deferred *d)
{
    pthread_mutex_lock(&d->lock);
    gboolean last = --d->references == 0;
    pthread_mutex_unlock(&d->lock);
    if (!last)
        return;
    d->free_data(d->data);
    g_clear_error(&d->error);
    pthread_cond_destroy(&d->changed);
    pthread_mutex_destroy(&d->lock);
    g_free(d->name);
    g_free(d);
}

/* ---- connecting ---- */

static void release_real(Origin *real, OriginNode *root)
{
    real->ops->put(real, root);
    origin_close(real);
}

/* NULL with an error; *other: it is another tree. */
static Origin *reach(Deferred *d, OriginNode **root, OriginAttr *attr, gboolean *other,
                     GError **error)
{
    g_autoptr(Origin) real = d->connect(d->data, error);
    int r = real ? real->ops->root(real, root, attr) : 0;
    if (r < 0)
        g_set_error(error, G_IO_ERROR, g_io_error_from_errno(-r), "its root: %s", g_strerror(-r));
    if (!real || r < 0)
        return NULL;
    *other = memcmp(real->space, d->base.space, sizeof(real->space)) != 0 ||
             attr->st.st_ino != d->known.st.st_ino || attr->snapshot != d->known.snapshot ||
             attr->version != d->known.version;
    if (*other)
        real->ops->put(real, *root);
    return *other ? NULL : g_steal_pointer(&real);
}

static gboolean is_silence(const GError *error)
{
    return g_error_matches(error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT) ||
           g_error_matches(error, G_IO_ERROR, G_IO_ERROR_NOT_CONNECTED) ||
           g_error_matches(error, G_IO_ERROR, G_IO_ERROR_HOST_UNREACHABLE);
}

static void failed_locked(Deferred *d, GError *error)
{
    if (!d->error || strcmp(d->error->message, error->message) != 0)
        g_message("%s is not reached: %s", d->name, error->message);
    g_clear_error(&d->error);
    d->error = error;
    d->state = is_silence(error) ? ORIGIN_DEFERRED_AWAY : ORIGIN_DEFERRED_FAILED;
    if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED)) {
        atomic_store(&d->refusal, -EACCES);
        d->state = ORIGIN_DEFERRED_REFUSED;
    }
}

static gboolean is_for_ever(OriginDeferredState state)
{
    return state == ORIGIN_DEFERRED_HERE || state == ORIGIN_DEFERRED_OTHER ||
           state == ORIGIN_DEFERRED_REFUSED;
}

/* One try; FALSE: it was the last. */
static gboolean try_once(Deferred *d)
{
    GError *error = NULL;
    OriginNode *root;
    OriginAttr attr;
    gboolean other = FALSE;
    Origin *real = reach(d, &root, &attr, &other, &error);
    pthread_mutex_lock(&d->lock);
    gboolean closed = d->closed;
    if (real && !closed) {
        d->root = root;
        d->root_attr = attr;
        atomic_store(&d->real, real);
        d->state = ORIGIN_DEFERRED_HERE;
    } else if (other) {
        g_message("%s: it is not there any more, but another one in its place", d->name);
        atomic_store(&d->refusal, -ESTALE);
        d->state = ORIGIN_DEFERRED_OTHER;
    } else if (error) {
        failed_locked(d, error);
    }
    pthread_cond_broadcast(&d->changed);
    gboolean again = !is_for_ever(d->state) && !closed;
    struct timespec next = deadline_after_ms(RETRY_MS);
    while (again && !d->closed && pthread_cond_timedwait(&d->changed, &d->lock, &next) != ETIMEDOUT)
        ;
    again = again && !d->closed;
    pthread_mutex_unlock(&d->lock);
    if (real && closed)
        release_real(real, root);
    return again;
}

static void *run(void *data)
{
    Deferred *d = data;
    while (try_once(d))
        ;
    unref(d);
    return NULL;
}

OriginDeferredState origin_deferred_wait(Origin *origin, gint64 timeout_ms, GError **error)
{
    Deferred *d = (Deferred *)origin;
    const struct timespec deadline = deadline_after_ms((uint64_t)MAX(timeout_ms, 0));
    pthread_mutex_lock(&d->lock);
    while (d->state == ORIGIN_DEFERRED_AWAY &&
           pthread_cond_timedwait(&d->changed, &d->lock, &deadline) != ETIMEDOUT)
        ;
    OriginDeferredState state = d->state;
    if (state == ORIGIN_DEFERRED_FAILED || state == ORIGIN_DEFERRED_REFUSED)
        g_propagate_error(error, g_error_copy(d->error));
    pthread_mutex_unlock(&d->lock);
    return state;
}

void origin_deferred_be_patient(Origin *origin, gint64 ms)
{
    Deferred *d = (Deferred *)origin;
    pthread_mutex_lock(&d->lock);
    d->patient = deadline_after_ms((uint64_t)ms);
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
}

/* The real origin; NULL: there is none (yet). */
static Origin *await_real(Origin *o)
{
    Deferred *d = (Deferred *)o;
    Origin *real = atomic_load(&d->real);
    if (real)
        return real;
    pthread_mutex_lock(&d->lock);
    while (d->state == ORIGIN_DEFERRED_AWAY && !d->closed &&
           pthread_cond_timedwait(&d->changed, &d->lock, &d->patient) != ETIMEDOUT)
        ;
    pthread_mutex_unlock(&d->lock);
    return atomic_load(&d->real);
}

static void destroy(Origin *o)
{
    Deferred *d = (Deferred *)o;
    pthread_mutex_lock(&d->lock);
    d->closed = TRUE;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    Origin *real = atomic_load(&d->real);
    if (real)
        release_real(real, d->root);
    unref(d);
}

/* ---- the table ---- */

#define REAL(o) Origin *real = atomic_load(&((Deferred *)(o))->real)
#define REFUSAL(o) atomic_load(&((Deferred *)(o))->refusal)
/* Calls the real origin's function, or refuses. */
#define PASS(o, call)                                                                              \
    REAL(o);                                                                                       \
    return real ? real->ops->call : REFUSAL(o)
#define NODE(o, node) ((node) == stand_in(o) ? ((Deferred *)(o))->root : (node))

static OriginNode *stand_in(Origin *o)
{
    return (OriginNode *)&((Deferred *)o)->root;
}

static void deferred_listen(Origin *o, const OriginListener *listener)
{
    REAL(o);
    if (real && real->ops->listen)
        real->ops->listen(real, listener);
}

static void deferred_reach(Origin *o, const char *monitors, const char *key, unsigned timeout_sec)
{
    REAL(o);
    if (real)
        origin_reach(real, monitors, key, timeout_sec);
}

/* While there is no real origin, operations wait for nothing. */
static uint64_t deferred_silent_ms(Origin *o)
{
    REAL(o);
    return real ? origin_silent_ms(real) : 0;
}

static gboolean deferred_rests(Origin *o)
{
    REAL(o);
    return real && origin_rests(real);
}

static int deferred_root(Origin *o, OriginNode **node, OriginAttr *attr)
{
    Deferred *d = (Deferred *)o;
    REAL(o);
    *node = stand_in(o);
    *attr = real ? d->root_attr : d->known;
    const int refusal = REFUSAL(o);
    return refusal == -ENOTCONN ? 0 : refusal;
}

static int deferred_lookup(Origin *o, OriginNode *parent, const char *name, OriginNode **node,
                           OriginAttr *attr)
{
    Origin *real = await_real(o);
    return real ? real->ops->lookup(real, NODE(o, parent), name, node, attr) : REFUSAL(o);
}

static int deferred_resolve(Origin *o, uint64_t ino, uint64_t snapshot, OriginNode **node,
                            OriginAttr *attr)
{
    Origin *real = await_real(o);
    return real ? real->ops->resolve(real, ino, snapshot, node, attr) : REFUSAL(o);
}

static OriginNode *deferred_get(Origin *o, OriginNode *node)
{
    REAL(o);
    return node == stand_in(o) ? node : real->ops->get(real, node);
}

static void deferred_put(Origin *o, OriginNode *node)
{
    REAL(o);
    if (node != stand_in(o))
        real->ops->put(real, node);
}

static int deferred_may_read(Origin *o, OriginNode *node)
{
    REAL(o);
    return real ? origin_may_read(real, NODE(o, node)) : REFUSAL(o);
}

static int deferred_getattr(Origin *o, OriginNode *node, OriginAttr *attr)
{
    PASS(o, getattr(real, NODE(o, node), attr));
}

static int deferred_open(Origin *o, OriginNode *node, int flags, OriginFile **file)
{
    PASS(o, open(real, NODE(o, node), flags, file));
}

static ssize_t deferred_read(Origin *o, OriginFile *file, void *buf, size_t len, uint64_t off)
{
    PASS(o, read(real, file, buf, len, off));
}

static int deferred_close(Origin *o, OriginFile *file)
{
    PASS(o, close(real, file));
}

static int deferred_lease(Origin *o, OriginFile *file, OriginLease kind, OriginRecall recall,
                          void *data)
{
    PASS(o, lease(real, file, kind, recall, data));
}

static int deferred_readlink(Origin *o, OriginNode *node, char *buf, size_t size)
{
    PASS(o, readlink(real, NODE(o, node), buf, size));
}

static int deferred_opendir(Origin *o, OriginNode *node, OriginDir **dir)
{
    PASS(o, opendir(real, NODE(o, node), dir));
}

static int deferred_readdir(Origin *o, OriginDir *dir, int64_t off, gboolean with_attr,
                            OriginEntry *entry)
{
    PASS(o, readdir(real, dir, off, with_attr, entry));
}

static int deferred_closedir(Origin *o, OriginDir *dir)
{
    PASS(o, closedir(real, dir));
}

static ssize_t deferred_getxattr(Origin *o, OriginNode *node, const char *name, void *buf,
                                 size_t size)
{
    PASS(o, getxattr(real, NODE(o, node), name, buf, size));
}

static ssize_t deferred_listxattr(Origin *o, OriginNode *node, char *buf, size_t size)
{
    PASS(o, listxattr(real, NODE(o, node), buf, size));
}

static int deferred_statfs(Origin *o, OriginNode *node, struct statvfs *st)
{
    PASS(o, statfs(real, NODE(o, node), st));
}

/* What changes something, of a snapshot. */
static int no_setattr(Origin *o, OriginNode *node, const struct stat *st, unsigned set,
                      OriginAttr *attr)
{
    (void)o, (void)node, (void)st, (void)set, (void)attr;
    return -EROFS;
}

static int no_create(Origin *o, OriginNode *parent, const char *name, const OriginNew *new,
                     int flags, OriginCreated *created)
{
    (void)o, (void)parent, (void)name, (void)new, (void)flags, (void)created;
    return -EROFS;
}

static ssize_t no_write(Origin *o, OriginFile *file, const void *buf, size_t len, uint64_t off)
{
    (void)o, (void)file, (void)buf, (void)len, (void)off;
    return -EROFS;
}

static int no_fallocate(Origin *o, OriginFile *file, int mode, uint64_t off, uint64_t len)
{
    (void)o, (void)file, (void)mode, (void)off, (void)len;
    return -EROFS;
}

static int no_make(Origin *o, OriginNode *parent, const char *name, const OriginNew *new,
                   OriginNode **node, OriginAttr *attr)
{
    (void)o, (void)parent, (void)name, (void)new, (void)node, (void)attr;
    return -EROFS;
}

static int no_link(Origin *o, OriginNode *node, OriginNode *parent, const char *name,
                   OriginAttr *attr)
{
    return no_make(o, parent, name, NULL, &node, attr);
}

static int no_unlink(Origin *o, OriginNode *parent, const char *name)
{
    (void)o, (void)parent, (void)name;
    return -EROFS;
}

static int no_rename(Origin *o, OriginNode *from, const char *name, OriginNode *to,
                     const char *new_name, unsigned flags)
{
    (void)o, (void)from, (void)name, (void)to, (void)new_name, (void)flags;
    return -EROFS;
}

static int no_setxattr(Origin *o, OriginNode *node, const char *name, const void *value,
                       size_t size, int flags)
{
    (void)o, (void)node, (void)name, (void)value, (void)size, (void)flags;
    return -EROFS;
}

/* Nothing is dirty. */
static int no_fsync(Origin *o, OriginFile *file, gboolean data_only)
{
    (void)o, (void)file, (void)data_only;
    return 0;
}

static int no_sync_node(Origin *o, OriginNode *node)
{
    (void)o, (void)node;
    return 0;
}

static const OriginOps ops = {
    .type = "deferred",
    .destroy = destroy,
    .listen = deferred_listen,
    .reach = deferred_reach,
    .silent_ms = deferred_silent_ms,
    .rests = deferred_rests,
    .root = deferred_root,
    .lookup = deferred_lookup,
    .resolve = deferred_resolve,
    .get = deferred_get,
    .put = deferred_put,
    .may_read = deferred_may_read,
    .getattr = deferred_getattr,
    .setattr = no_setattr,
    .open = deferred_open,
    .create = no_create,
    .read = deferred_read,
    .write = no_write,
    .fsync = no_fsync,
    .sync_node = no_sync_node,
    .fallocate = no_fallocate,
    .close = deferred_close,
    .lease = deferred_lease,
    .mkdir = no_make,
    .mknod = no_make,
    .symlink = no_make,
    .link = no_link,
    .unlink = no_unlink,
    .rmdir = no_unlink,
    .rename = no_rename,
    .readlink = deferred_readlink,
    .opendir = deferred_opendir,
    .readdir = deferred_readdir,
    .closedir = deferred_closedir,
    .getxattr = deferred_getxattr,
    .listxattr = deferred_listxattr,
    .setxattr = no_setxattr,
    .removexattr = no_unlink,
    .statfs = deferred_statfs,
};

gboolean origin_is_deferred(const Origin *origin)
{
    return origin->ops == &ops;
}

Origin *origin_deferred_new(const char *name, const uint8_t *space, const OriginAttr *root,
                            OriginConnect connect, void *data, GDestroyNotify free_data)
{
    Deferred *d = g_new0(Deferred, 1);
    pthread_t thread;
    d->base.ops = &ops;
    memcpy(d->base.space, space, sizeof(d->base.space));
    d->name = g_strdup(name);
    d->known = *root;
    d->known.st.st_mode = S_IFDIR | 0755;
    d->connect = connect;
    d->data = data;
    d->free_data = free_data;
    d->references = 2;
    atomic_init(&d->refusal, -ENOTCONN);
    pthread_mutex_init(&d->lock, NULL);
    cond_init_monotonic(&d->changed);
    int failed = pthread_create(&thread, NULL, run, d);
    if (failed)
        g_error("cannot start a thread: %s", g_strerror(failed));
    pthread_detach(thread);
    return &d->base;
}
