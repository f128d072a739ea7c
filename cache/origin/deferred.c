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

typedef struct Later {
    Origin base;
    char *name;
    OriginAttr known;
    OriginConnect connect;
    void *data;
    GDestroyNotify free_data;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned references;    /* lock; of the owner and of the thread */
    gboolean closed;        /* lock */
    OriginLaterState state; /* lock; HERE, OTHER and REFUSED are for ever */
    GError *error;          /* lock; of REFUSED and FAILED */
    Origin *_Atomic real;   /* of HERE, with its root */
    OriginNode *root;
    OriginAttr root_attr;
    _Atomic int refusal; /* what is answered until then */
} Later;

static void unref(Later *l)
{
    pthread_mutex_lock(&l->lock);
    gboolean last = --l->references == 0;
    pthread_mutex_unlock(&l->lock);
    if (!last)
        return;
    l->free_data(l->data);
    g_clear_error(&l->error);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
    g_free(l->name);
    g_free(l);
}

/* ---- connecting ---- */

static void release_real(Origin *real, OriginNode *root)
{
    real->ops->put(real, root);
    origin_close(real);
}

/* NULL with an error; *other: it is another tree. */
static Origin *reach(Later *l, OriginNode **root, OriginAttr *attr, gboolean *other, GError **error)
{
    g_autoptr(Origin) real = l->connect(l->data, error);
    int r = real ? real->ops->root(real, root, attr) : 0;
    if (r < 0)
        g_set_error(error, G_IO_ERROR, g_io_error_from_errno(-r), "its root: %s", g_strerror(-r));
    if (!real || r < 0)
        return NULL;
    *other = memcmp(real->space, l->base.space, sizeof(real->space)) != 0 ||
             attr->st.st_ino != l->known.st.st_ino || attr->snapshot != l->known.snapshot ||
             attr->version != l->known.version;
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

static void failed_locked(Later *l, GError *error)
{
    if (!l->error || strcmp(l->error->message, error->message) != 0)
        g_message("%s is not reached: %s", l->name, error->message);
    g_clear_error(&l->error);
    l->error = error;
    l->state = is_silence(error) ? ORIGIN_LATER_AWAY : ORIGIN_LATER_FAILED;
    if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED)) {
        atomic_store(&l->refusal, -EACCES);
        l->state = ORIGIN_LATER_REFUSED;
    }
}

static gboolean is_for_ever(OriginLaterState state)
{
    return state == ORIGIN_LATER_HERE || state == ORIGIN_LATER_OTHER ||
           state == ORIGIN_LATER_REFUSED;
}

/* One try; FALSE: it was the last. */
static gboolean try_once(Later *l)
{
    GError *error = NULL;
    OriginNode *root;
    OriginAttr attr;
    gboolean other = FALSE;
    Origin *real = reach(l, &root, &attr, &other, &error);
    pthread_mutex_lock(&l->lock);
    gboolean closed = l->closed;
    if (real && !closed) {
        l->root = root;
        l->root_attr = attr;
        atomic_store(&l->real, real);
        l->state = ORIGIN_LATER_HERE;
    } else if (other) {
        g_message("%s: it is not there any more, but another one in its place", l->name);
        atomic_store(&l->refusal, -ESTALE);
        l->state = ORIGIN_LATER_OTHER;
    } else if (error) {
        failed_locked(l, error);
    }
    pthread_cond_broadcast(&l->changed);
    gboolean again = !is_for_ever(l->state) && !closed;
    struct timespec next = deadline_after_ms(RETRY_MS);
    while (again && !l->closed && pthread_cond_timedwait(&l->changed, &l->lock, &next) != ETIMEDOUT)
        ;
    again = again && !l->closed;
    pthread_mutex_unlock(&l->lock);
    if (real && closed)
        release_real(real, root);
    return again;
}

static void *run(void *data)
{
    Later *l = data;
    while (try_once(l))
        ;
    unref(l);
    return NULL;
}

OriginLaterState origin_later_wait(Origin *origin, gint64 timeout_ms, GError **error)
{
    Later *l = (Later *)origin;
    const struct timespec deadline = deadline_after_ms((uint64_t)MAX(timeout_ms, 0));
    pthread_mutex_lock(&l->lock);
    while (l->state == ORIGIN_LATER_AWAY &&
           pthread_cond_timedwait(&l->changed, &l->lock, &deadline) != ETIMEDOUT)
        ;
    OriginLaterState state = l->state;
    if (state == ORIGIN_LATER_FAILED || state == ORIGIN_LATER_REFUSED)
        g_propagate_error(error, g_error_copy(l->error));
    pthread_mutex_unlock(&l->lock);
    return state;
}

static void destroy(Origin *o)
{
    Later *l = (Later *)o;
    pthread_mutex_lock(&l->lock);
    l->closed = TRUE;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    Origin *real = atomic_load(&l->real);
    if (real)
        release_real(real, l->root);
    unref(l);
}

/* ---- the table ---- */

#define REAL(o) Origin *real = atomic_load(&((Later *)(o))->real)
#define REFUSAL(o) atomic_load(&((Later *)(o))->refusal)
/* Calls the real origin's function, or refuses. */
#define PASS(o, call)                                                                              \
    REAL(o);                                                                                       \
    return real ? real->ops->call : REFUSAL(o)
#define NODE(o, node) ((node) == stand_in(o) ? ((Later *)(o))->root : (node))

static OriginNode *stand_in(Origin *o)
{
    return (OriginNode *)&((Later *)o)->root;
}

static void later_listen(Origin *o, const OriginListener *listener)
{
    REAL(o);
    if (real && real->ops->listen)
        real->ops->listen(real, listener);
}

static void later_reach(Origin *o, const char *monitors, const char *key, unsigned timeout_sec)
{
    REAL(o);
    if (real)
        origin_reach(real, monitors, key, timeout_sec);
}

static int later_root(Origin *o, OriginNode **node, OriginAttr *attr)
{
    Later *l = (Later *)o;
    REAL(o);
    *node = stand_in(o);
    *attr = real ? l->root_attr : l->known;
    const int refusal = REFUSAL(o);
    return refusal == -ENOTCONN ? 0 : refusal;
}

static int later_lookup(Origin *o, OriginNode *parent, const char *name, OriginNode **node,
                        OriginAttr *attr)
{
    PASS(o, lookup(real, NODE(o, parent), name, node, attr));
}

static int later_resolve(Origin *o, uint64_t ino, uint64_t snapshot, OriginNode **node,
                         OriginAttr *attr)
{
    PASS(o, resolve(real, ino, snapshot, node, attr));
}

static OriginNode *later_get(Origin *o, OriginNode *node)
{
    REAL(o);
    return node == stand_in(o) ? node : real->ops->get(real, node);
}

static void later_put(Origin *o, OriginNode *node)
{
    REAL(o);
    if (node != stand_in(o))
        real->ops->put(real, node);
}

static int later_may_read(Origin *o, OriginNode *node)
{
    REAL(o);
    return real ? origin_may_read(real, NODE(o, node)) : REFUSAL(o);
}

static int later_getattr(Origin *o, OriginNode *node, OriginAttr *attr)
{
    PASS(o, getattr(real, NODE(o, node), attr));
}

static int later_open(Origin *o, OriginNode *node, int flags, OriginFile **file)
{
    PASS(o, open(real, NODE(o, node), flags, file));
}

static ssize_t later_read(Origin *o, OriginFile *file, void *buf, size_t len, uint64_t off)
{
    PASS(o, read(real, file, buf, len, off));
}

static int later_close(Origin *o, OriginFile *file)
{
    PASS(o, close(real, file));
}

static int later_lease(Origin *o, OriginFile *file, OriginLease kind, OriginRecall recall,
                       void *data)
{
    PASS(o, lease(real, file, kind, recall, data));
}

static int later_readlink(Origin *o, OriginNode *node, char *buf, size_t size)
{
    PASS(o, readlink(real, NODE(o, node), buf, size));
}

static int later_opendir(Origin *o, OriginNode *node, OriginDir **dir)
{
    PASS(o, opendir(real, NODE(o, node), dir));
}

static int later_readdir(Origin *o, OriginDir *dir, int64_t off, gboolean with_attr,
                         OriginEntry *entry)
{
    PASS(o, readdir(real, dir, off, with_attr, entry));
}

static int later_closedir(Origin *o, OriginDir *dir)
{
    PASS(o, closedir(real, dir));
}

static ssize_t later_getxattr(Origin *o, OriginNode *node, const char *name, void *buf, size_t size)
{
    PASS(o, getxattr(real, NODE(o, node), name, buf, size));
}

static ssize_t later_listxattr(Origin *o, OriginNode *node, char *buf, size_t size)
{
    PASS(o, listxattr(real, NODE(o, node), buf, size));
}

static int later_statfs(Origin *o, OriginNode *node, struct statvfs *st)
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

static int no_create(Origin *o, OriginNode *parent, const char *name, mode_t mode, int flags,
                     const OriginCaller *caller, OriginNode **node, OriginFile **file,
                     OriginAttr *attr)
{
    (void)o, (void)parent, (void)name, (void)mode, (void)flags, (void)caller, (void)node,
        (void)file, (void)attr;
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

static int no_mkdir(Origin *o, OriginNode *parent, const char *name, mode_t mode,
                    const OriginCaller *caller, OriginNode **node, OriginAttr *attr)
{
    (void)o, (void)parent, (void)name, (void)mode, (void)caller, (void)node, (void)attr;
    return -EROFS;
}

static int no_mknod(Origin *o, OriginNode *parent, const char *name, mode_t mode, dev_t rdev,
                    const OriginCaller *caller, OriginNode **node, OriginAttr *attr)
{
    (void)rdev;
    return no_mkdir(o, parent, name, mode, caller, node, attr);
}

static int no_symlink(Origin *o, OriginNode *parent, const char *name, const char *target,
                      const OriginCaller *caller, OriginNode **node, OriginAttr *attr)
{
    (void)target;
    return no_mkdir(o, parent, name, 0, caller, node, attr);
}

static int no_link(Origin *o, OriginNode *node, OriginNode *parent, const char *name,
                   OriginAttr *attr)
{
    (void)node;
    return no_mkdir(o, parent, name, 0, NULL, NULL, attr);
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
    .type = "later",
    .destroy = destroy,
    .listen = later_listen,
    .reach = later_reach,
    .root = later_root,
    .lookup = later_lookup,
    .resolve = later_resolve,
    .get = later_get,
    .put = later_put,
    .may_read = later_may_read,
    .getattr = later_getattr,
    .setattr = no_setattr,
    .open = later_open,
    .create = no_create,
    .read = later_read,
    .write = no_write,
    .fsync = no_fsync,
    .sync_node = no_sync_node,
    .fallocate = no_fallocate,
    .close = later_close,
    .lease = later_lease,
    .mkdir = no_mkdir,
    .mknod = no_mknod,
    .symlink = no_symlink,
    .link = no_link,
    .unlink = no_unlink,
    .rmdir = no_unlink,
    .rename = no_rename,
    .readlink = later_readlink,
    .opendir = later_opendir,
    .readdir = later_readdir,
    .closedir = later_closedir,
    .getxattr = later_getxattr,
    .listxattr = later_listxattr,
    .setxattr = no_setxattr,
    .removexattr = no_unlink,
    .statfs = later_statfs,
};

gboolean origin_is_later(const Origin *origin)
{
    return origin->ops == &ops;
}

Origin *origin_later_new(const char *name, const uint8_t *space, const OriginAttr *root,
                         OriginConnect connect, void *data, GDestroyNotify free_data)
{
    Later *l = g_new0(Later, 1);
    pthread_t thread;
    l->base.ops = &ops;
    memcpy(l->base.space, space, sizeof(l->base.space));
    l->name = g_strdup(name);
    l->known = *root;
    l->known.st.st_mode = S_IFDIR | 0755;
    l->connect = connect;
    l->data = data;
    l->free_data = free_data;
    l->references = 2;
    atomic_init(&l->refusal, -ENOTCONN);
    pthread_mutex_init(&l->lock, NULL);
    cond_init_monotonic(&l->changed);
    int failed = pthread_create(&thread, NULL, run, l);
    if (failed)
        g_error("cannot start a thread: %s", g_strerror(failed));
    pthread_detach(thread);
    return &l->base;
}
