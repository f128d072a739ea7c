/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes, files and listings that outlive the connection they were found on. Each remembers what it
 * takes to have it again: a live inode its number, one in a snapshot the name it was found by (the
 * MDS finds old inodes by number only while it has them in memory), a file the flags it was opened
 * with. That happens when it is used and its connection is not the current one.
 */
#include <string.h>
#include "cache/origin/reconnect/internal.h"

struct OriginNode {
    _Atomic unsigned refs;
    uint64_t ino, snapshot;
    OriginNode *parent; /* of an inode in a snapshot; NULL: the root, or found by number */
    char *name;
    pthread_mutex_t mutex;
    /* mutex, as all below; what `inner` is of, if it still has that number */
    Connection *connection;
    uint64_t number;
    OriginNode *inner;
};

/* A file on one connection. */
typedef struct Opened {
    Connection *connection;
    OriginFile *inner;
    unsigned uses; /* OriginFile.mutex, as the next */
    gboolean replaced;
} Opened;

struct OriginFile {
    pthread_mutex_t mutex;
    OriginNode *node;
    int flags;
    Opened *opened;  /* mutex */
    gboolean leased; /* mutex; counted in Reconnect.leases */
    OriginRecall recall;
    void *recall_data;
};

struct OriginDir {
    OriginNode *node;
    Connection *connection;
    OriginDir *inner;
};

/* What `call` comes to with the current connection `c`, in use. `again`: it changes nothing, so it
 * is made again when the connection turns out to be lost. */
#define CALL(o, c, again, call)                                                                    \
    ({                                                                                             \
        int64_t result;                                                                            \
        int tries = (again) ? 2 : 1;                                                               \
        do {                                                                                       \
            Connection *c = connection_use(o, TRUE);                                               \
            result = c ? (int64_t)(call) : -EIO;                                                   \
            if (c)                                                                                 \
                connection_done(o, c, result);                                                     \
        } while (is_loss(result) && --tries);                                                      \
        is_loss(result) ? -EIO : result;                                                           \
    })

static Reconnect *reconnect_of(Origin *base)
{
    return (Reconnect *)base;
}

/* ---- nodes ---- */

/* A connection while it is in use: afterwards its struct may get another number. */
typedef struct On {
    Connection *c;
    uint64_t number;
} On;

static On on_now(Connection *c)
{
    return (On){c, c->number};
}

static OriginNode *node_new(On on, OriginNode *inner, const OriginAttr *attr)
{
    OriginNode *node = g_new0(OriginNode, 1);
    atomic_store(&node->refs, 1);
    node->ino = attr->st.st_ino;
    node->snapshot = attr->snapshot;
    pthread_mutex_init(&node->mutex, NULL);
    node->connection = on.c;
    node->number = on.number;
    node->inner = inner;
    return node;
}

static OriginNode *op_get(Origin *base, OriginNode *node)
{
    (void)base;
    atomic_fetch_add(&node->refs, 1);
    return node;
}

static OriginNode *node_named(Origin *base, On on, OriginNode *inner, const OriginAttr *attr,
                              OriginNode *parent, const char *name)
{
    OriginNode *node = node_new(on, inner, attr);
    if (attr->snapshot) {
        node->parent = op_get(base, parent);
        node->name = g_strdup(name);
    }
    return node;
}

static void inner_put(Reconnect *o, const OriginNode *node)
{
    Connection *c = node->connection;
    const ConnectionUse use = connection_use_this(o, c, node->number);
    if (use != CONNECTION_GONE)
        c->inner->ops->put(c->inner, node->inner);
    if (use == CONNECTION_USED)
        connection_done(o, c, 0);
}

/* A tree may be deeper than a stack. */
static void op_put(Origin *base, OriginNode *node)
{
    while (node && atomic_fetch_sub(&node->refs, 1) == 1) {
        OriginNode *parent = node->parent;
        inner_put(reconnect_of(base), node);
        pthread_mutex_destroy(&node->mutex);
        g_free(node->name);
        g_free(node);
        node = parent;
    }
}

static gboolean is_on(Connection *c, OriginNode *node, OriginNode **inner)
{
    pthread_mutex_lock(&node->mutex);
    const gboolean is_there = node->number == c->number;
    *inner = node->inner;
    pthread_mutex_unlock(&node->mutex);
    return is_there;
}

/* Its parent is on that connection, if it has one. */
static int find_again(Connection *c, OriginNode *node, OriginNode **found)
{
    OriginAttr attr;
    OriginNode *parent;
    if (!node->snapshot)
        return c->inner->ops->resolve(c->inner, node->ino, 0, found, &attr);
    int r;
    if (!node->parent)
        r = c->inner->ops->root(c->inner, found, &attr);
    else if (!is_on(c, node->parent, &parent))
        r = -ENOTCONN; /* it was lost meanwhile */
    else
        r = c->inner->ops->lookup(c->inner, parent, node->name, found, &attr);
    if (r == 0 && (attr.st.st_ino != node->ino || attr.snapshot != node->snapshot)) {
        c->inner->ops->put(c->inner, *found);
        r = -ESTALE;
    }
    return r;
}

static int bring(Reconnect *o, Connection *c, OriginNode *node, OriginNode **inner)
{
    OriginNode *found;
    int r = find_again(c, node, &found);
    if (r < 0)
        return r;
    pthread_mutex_lock(&node->mutex);
    gboolean is_mine = node->number < c->number;
    if (is_mine) {
        /* A call on the lost connection may still use it. */
        connection_put_at_end(o, node->connection, node->number, node->inner);
        node->connection = c;
        node->number = c->number;
        node->inner = found;
    }
    *inner = node->number == c->number ? node->inner : NULL;
    pthread_mutex_unlock(&node->mutex);
    if (!is_mine)
        c->inner->ops->put(c->inner, found);
    return *inner ? 0 : -ENOTCONN;
}

/* The node on that connection; borrowed. */
static int node_on(Reconnect *o, Connection *c, OriginNode *node, OriginNode **inner)
{
    if (is_on(c, node, inner))
        return 0;
    g_autoptr(GPtrArray) missing = g_ptr_array_new();
    int r = 0;
    for (OriginNode *n = node; n && !is_on(c, n, inner); n = n->parent)
        g_ptr_array_add(missing, n);
    for (guint i = missing->len; r == 0 && i-- > 0;)
        r = bring(o, c, missing->pdata[i], inner);
    return r;
}

/* What `call` comes to with `inner`, the node on the connection. */
#define ON_NODE(o, c, node, inner, call)                                                           \
    ({                                                                                             \
        OriginNode *inner;                                                                         \
        int64_t found = node_on(o, c, node, &inner);                                               \
        found < 0 ? found : (int64_t)(call);                                                       \
    })
/* Most operations: on one node, with the current connection. */
#define NODE_CALL(o, c, again, node, inner, call)                                                  \
    CALL(o, c, again, ON_NODE(o, c, node, inner, call))

static int root_on(Connection *c, OriginNode **node, OriginAttr *attr)
{
    OriginNode *inner;
    int r = c->inner->ops->root(c->inner, &inner, attr);
    if (r == 0)
        *node = node_new(on_now(c), inner, attr);
    return r;
}

static int op_root(Origin *base, OriginNode **node, OriginAttr *attr)
{
    return (int)CALL(reconnect_of(base), c, TRUE, root_on(c, node, attr));
}

static int resolve_on(Connection *c, uint64_t ino, uint64_t snapshot, OriginNode **node,
                      OriginAttr *attr)
{
    OriginNode *inner;
    int r = c->inner->ops->resolve(c->inner, ino, snapshot, &inner, attr);
    if (r == 0)
        *node = node_new(on_now(c), inner, attr);
    return r;
}

static int op_resolve(Origin *base, uint64_t ino, uint64_t snapshot, OriginNode **node,
                      OriginAttr *attr)
{
    return (int)CALL(reconnect_of(base), c, TRUE, resolve_on(c, ino, snapshot, node, attr));
}

static int op_lookup(Origin *base, OriginNode *parent, const char *name, OriginNode **node,
                     OriginAttr *attr)
{
    OriginNode *inner = NULL;
    On on = {0};
    int r =
        (int)NODE_CALL(reconnect_of(base), c, TRUE, parent, in,
                       (on = on_now(c), c->inner->ops->lookup(c->inner, in, name, &inner, attr)));
    if (r == 0)
        *node = node_named(base, on, inner, attr, parent, name);
    return r;
}

static int op_getattr(Origin *base, OriginNode *node, OriginAttr *attr)
{
    return (int)NODE_CALL(reconnect_of(base), c, TRUE, node, in,
                          c->inner->ops->getattr(c->inner, in, attr));
}

static int op_may_read(Origin *base, OriginNode *node)
{
    return (int)NODE_CALL(reconnect_of(base), c, TRUE, node, in, origin_may_read(c->inner, in));
}

static int op_setattr(Origin *base, OriginNode *node, const struct stat *st, unsigned set,
                      OriginAttr *attr)
{
    return (int)NODE_CALL(reconnect_of(base), c, FALSE, node, in,
                          c->inner->ops->setattr(c->inner, in, st, set, attr));
}

/* ---- files ---- */

static OriginFile *file_new(Origin *base, Connection *c, OriginNode *node, int flags,
                            OriginFile *inner)
{
    OriginFile *file = g_new0(OriginFile, 1);
    pthread_mutex_init(&file->mutex, NULL);
    file->node = op_get(base, node);
    file->flags = flags & ~(O_CREAT | O_EXCL | O_TRUNC);
    file->opened = g_new0(Opened, 1);
    *file->opened = (Opened){.connection = c, .inner = inner};
    return file;
}

static int opened_close(Reconnect *o, Opened *opened)
{
    Connection *c = opened->connection;
    g_autofree Opened *freed = opened;
    if (connection_close_at_end(o, c, opened->inner))
        return -ENOTCONN;
    const ConnectionUse use = connection_use_this(o, c, c->number);
    int r = c->inner->ops->close(c->inner, opened->inner);
    if (use == CONNECTION_USED)
        connection_done(o, c, r);
    return r;
}

static void opened_done(Reconnect *o, OriginFile *file, Opened *opened)
{
    pthread_mutex_lock(&file->mutex);
    gboolean close = --opened->uses == 0 && opened->replaced;
    pthread_mutex_unlock(&file->mutex);
    if (close)
        opened_close(o, opened);
}

/* Uses what is open, if it is on that connection. */
static Opened *opened_use(OriginFile *file, const Connection *c)
{
    Opened *opened = NULL;
    pthread_mutex_lock(&file->mutex);
    if (!c || file->opened->connection == c) {
        opened = file->opened;
        opened->uses++;
    }
    pthread_mutex_unlock(&file->mutex);
    return opened;
}

/* The file on that connection, in use until opened_done(). */
static int file_on(Reconnect *o, Connection *c, OriginFile *file, Opened **opened)
{
    *opened = opened_use(file, c);
    if (*opened)
        return 0;
    OriginFile *inner;
    int r =
        (int)ON_NODE(o, c, file->node, in, c->inner->ops->open(c->inner, in, file->flags, &inner));
    if (r < 0)
        return r;
    Opened *mine = g_new0(Opened, 1), *unused = mine;
    *mine = (Opened){.connection = c, .inner = inner};
    gboolean close = TRUE;
    pthread_mutex_lock(&file->mutex);
    if (file->opened->connection->number < c->number) {
        unused = file->opened;
        unused->replaced = TRUE;
        close = unused->uses == 0;
        file->opened = mine;
    }
    if (file->opened->connection == c) {
        *opened = file->opened;
        (*opened)->uses++;
    }
    pthread_mutex_unlock(&file->mutex);
    if (close)
        opened_close(o, unused);
    return *opened ? 0 : -ENOTCONN;
}

#define ON_FILE(o, c, file, in, call)                                                              \
    ({                                                                                             \
        Opened *opened;                                                                            \
        int64_t reached = file_on(o, c, file, &opened);                                            \
        if (reached == 0) {                                                                        \
            OriginFile *in = opened->inner;                                                        \
            reached = (int64_t)(call);                                                             \
            opened_done(o, file, opened);                                                          \
        }                                                                                          \
        reached;                                                                                   \
    })
#define FILE_CALL(o, c, again, file, in, call) CALL(o, c, again, ON_FILE(o, c, file, in, call))

static int op_open(Origin *base, OriginNode *node, int flags, OriginFile **file)
{
    Reconnect *o = reconnect_of(base);
    OriginFile *inner = NULL;
    On on = {0};
    int r = (int)NODE_CALL(
        o, c, !(flags & O_TRUNC), node, in,
        (on = on_now(c), rest_count_handle(o, c->inner->ops->open(c->inner, in, flags, &inner))));
    if (r == 0)
        *file = file_new(base, on.c, node, flags, inner);
    return r;
}

static int op_create(Origin *base, OriginNode *parent, const char *name, const OriginNew *new,
                     int flags, OriginCreated *created)
{
    Reconnect *o = reconnect_of(base);
    OriginCreated inner = {.node = NULL};
    On on = {0};
    int r = (int)NODE_CALL(
        o, c, FALSE, parent, in,
        (on = on_now(c),
         rest_count_handle(o, c->inner->ops->create(c->inner, in, name, new, flags, &inner))));
    if (r < 0)
        return r;
    created->attr = inner.attr;
    created->node = node_new(on, inner.node, &inner.attr);
    created->file = file_new(base, on.c, created->node, flags, inner.file);
    return 0;
}

/*
 * libcephfs answers from its memory while it believes in its capabilities: for session_timeout
 * after it renewed its session. An MDS that was asked to end the session, or has failed over, gives
 * them to others sooner. A snapshot never changes.
 */
static int vouched(Reconnect *o, Connection *c, const OriginNode *node)
{
    if (node->snapshot || reconnect_vouches(&o->base) || checks_ask(o, c) == 0)
        return 0;
    pthread_mutex_lock(&o->lock);
    const gboolean lost = c->over;
    pthread_mutex_unlock(&o->lock);
    return lost ? -ENOTCONN : -EIO;
}

static ssize_t op_read(Origin *base, OriginFile *file, void *buf, size_t len, uint64_t off)
{
    Reconnect *o = reconnect_of(base);
    const ssize_t n = FILE_CALL(o, c, TRUE, file, in, ({
                                    int64_t r = vouched(o, c, file->node);
                                    r < 0 ? r : c->inner->ops->read(c->inner, in, buf, len, off);
                                }));
    if (n > 0 && (file->flags & O_DIRECT)) /* others may be answered from memory */
        checks_heard_data(o);
    return n;
}

static ssize_t op_write(Origin *base, OriginFile *file, const void *buf, size_t len, uint64_t off)
{
    return FILE_CALL(reconnect_of(base), c, FALSE, file, in,
                     c->inner->ops->write(c->inner, in, buf, len, off));
}

/* The library says that all is written also when it has dropped it with a lost session; with one
 * that Ceph ended without a word it hangs. So the session is checked before and after. */
static int op_fsync(Origin *base, OriginFile *file, gboolean data_only)
{
    Reconnect *o = reconnect_of(base);
    return (int)FILE_CALL(o, c, FALSE, file, in, ({
                              int r = checks_ask(o, c);
                              if (r == 0)
                                  r = c->inner->ops->fsync(c->inner, in, data_only);
                              r == 0 ? checks_ask(o, c) : r;
                          }));
}

static int op_sync_node(Origin *base, OriginNode *node)
{
    Reconnect *o = reconnect_of(base);
    return (int)NODE_CALL(o, c, FALSE, node, in, ({
                              int r = checks_ask(o, c);
                              if (r == 0)
                                  r = c->inner->ops->sync_node(c->inner, in);
                              r == 0 ? checks_ask(o, c) : r;
                          }));
}

static int op_sync_all(Origin *base)
{
    Reconnect *o = reconnect_of(base);
    return (int)CALL(o, c, FALSE, ({
                         int r = checks_ask(o, c);
                         if (r == 0 && c->inner->ops->sync_all)
                             r = c->inner->ops->sync_all(c->inner);
                         r == 0 ? checks_ask(o, c) : r;
                     }));
}

static int op_fallocate(Origin *base, OriginFile *file, int mode, uint64_t off, uint64_t len)
{
    return (int)FILE_CALL(reconnect_of(base), c, FALSE, file, in,
                          c->inner->ops->fallocate(c->inner, in, mode, off, len));
}

static void set_leased(Reconnect *o, OriginFile *file, gboolean leased)
{
    pthread_mutex_lock(&file->mutex);
    int change = (leased != 0) - (file->leased != 0);
    file->leased = leased;
    pthread_mutex_unlock(&file->mutex);
    if (change)
        connection_count_lease(o, change);
}

static int op_close(Origin *base, OriginFile *file)
{
    Reconnect *o = reconnect_of(base);
    int r = opened_close(o, file->opened);
    set_leased(o, file, FALSE);
    atomic_fetch_sub(&o->handles, 1);
    op_put(base, file->node);
    pthread_mutex_destroy(&file->mutex);
    g_free(file);
    return r;
}

static void recalled(OriginFile *inner, void *data)
{
    (void)inner;
    OriginFile *file = data;
    file->recall(file, file->recall_data);
}

static int lease_return(Reconnect *o, OriginFile *file)
{
    Opened *opened = opened_use(file, NULL);
    Connection *c = opened->connection;
    int r = 0;
    if (connection_use_this(o, c, c->number) == CONNECTION_USED) {
        r = c->inner->ops->lease(c->inner, opened->inner, ORIGIN_LEASE_NONE, NULL, NULL);
        connection_done(o, c, r);
    }
    opened_done(o, file, opened);
    set_leased(o, file, FALSE);
    return r;
}

static int op_lease(Origin *base, OriginFile *file, OriginLease kind, OriginRecall recall,
                    void *data)
{
    Reconnect *o = reconnect_of(base);
    if (kind == ORIGIN_LEASE_NONE)
        return lease_return(o, file);
    Connection *c = connection_use(o, FALSE);
    if (!c)
        return -EAGAIN;
    int64_t r = checks_just_heard(o) ? 0 : checks_ask(o, c);
    file->recall = recall;
    file->recall_data = data;
    if (r == 0)
        r = ON_FILE(o, c, file, in, c->inner->ops->lease(c->inner, in, kind, recalled, file));
    if (r == 0)
        set_leased(o, file, TRUE);
    connection_done(o, c, r);
    /* It took so long that leases may be void by now. */
    if (r == 0 && !reconnect_vouches(base)) {
        lease_return(o, file);
        return -EAGAIN;
    }
    return is_loss(r) || r == -EIO ? -EAGAIN : (int)r;
}

/* ---- names ---- */

#define MAKE(base, again, parent, name, node, attr, call)                                          \
    ({                                                                                             \
        OriginNode *made = NULL;                                                                   \
        On on = {0};                                                                               \
        int got =                                                                                  \
            (int)NODE_CALL(reconnect_of(base), c, again, parent, in, (on = on_now(c), call));      \
        if (got == 0)                                                                              \
            *(node) = node_named(base, on, made, attr, parent, name);                              \
        got;                                                                                       \
    })

static int op_mkdir(Origin *base, OriginNode *parent, const char *name, const OriginNew *new,
                    OriginNode **node, OriginAttr *attr)
{
    return MAKE(base, FALSE, parent, name, node, attr,
                c->inner->ops->mkdir(c->inner, in, name, new, &made, attr));
}

static int op_mknod(Origin *base, OriginNode *parent, const char *name, const OriginNew *new,
                    OriginNode **node, OriginAttr *attr)
{
    return MAKE(base, FALSE, parent, name, node, attr,
                c->inner->ops->mknod(c->inner, in, name, new, &made, attr));
}

static int op_symlink(Origin *base, OriginNode *parent, const char *name, const OriginNew *new,
                      OriginNode **node, OriginAttr *attr)
{
    return MAKE(base, FALSE, parent, name, node, attr,
                c->inner->ops->symlink(c->inner, in, name, new, &made, attr));
}

static int op_link(Origin *base, OriginNode *node, OriginNode *parent, const char *name,
                   OriginAttr *attr)
{
    Reconnect *o = reconnect_of(base);
    OriginNode *dir;
    return (int)NODE_CALL(o, c, FALSE, node, in, ({
                              int r = node_on(o, c, parent, &dir);
                              r < 0 ? r : c->inner->ops->link(c->inner, in, dir, name, attr);
                          }));
}

static int op_unlink(Origin *base, OriginNode *parent, const char *name)
{
    return (int)NODE_CALL(reconnect_of(base), c, FALSE, parent, in,
                          c->inner->ops->unlink(c->inner, in, name));
}

static int op_rmdir(Origin *base, OriginNode *parent, const char *name)
{
    return (int)NODE_CALL(reconnect_of(base), c, FALSE, parent, in,
                          c->inner->ops->rmdir(c->inner, in, name));
}

static int op_rename(Origin *base, OriginNode *from, const char *name, OriginNode *to,
                     const char *new_name, unsigned flags)
{
    Reconnect *o = reconnect_of(base);
    OriginNode *dir;
    return (int)NODE_CALL(o, c, FALSE, from, in, ({
                              int r = node_on(o, c, to, &dir);
                              r < 0
                                  ? r
                                  : c->inner->ops->rename(c->inner, in, name, dir, new_name, flags);
                          }));
}

static int op_readlink(Origin *base, OriginNode *node, char *buf, size_t size)
{
    return (int)NODE_CALL(reconnect_of(base), c, TRUE, node, in,
                          c->inner->ops->readlink(c->inner, in, buf, size));
}

/* ---- listings ---- */

static int op_opendir(Origin *base, OriginNode *node, OriginDir **dir)
{
    Reconnect *o = reconnect_of(base);
    OriginDir *inner = NULL;
    On on = {0};
    int r = (int)NODE_CALL(
        o, c, TRUE, node, in,
        (on = on_now(c), rest_count_handle(o, c->inner->ops->opendir(c->inner, in, &inner))));
    if (r < 0)
        return r;
    *dir = g_new0(OriginDir, 1);
    **dir = (OriginDir){op_get(base, node), on.c, inner};
    return 0;
}

static int inner_closedir(Reconnect *o, OriginDir *dir)
{
    Connection *c = dir->connection;
    const ConnectionUse use = connection_use_this(o, c, c->number);
    int r = c->inner->ops->closedir(c->inner, dir->inner);
    if (use == CONNECTION_USED)
        connection_done(o, c, 0);
    return r;
}

/* Positions are of names, not of a connection: a listing goes on where it was. */
static int dir_on(Reconnect *o, Connection *c, OriginDir *dir)
{
    OriginDir *inner;
    if (dir->connection == c)
        return 0;
    int r = (int)ON_NODE(o, c, dir->node, in, c->inner->ops->opendir(c->inner, in, &inner));
    if (r < 0)
        return r;
    inner_closedir(o, dir);
    dir->connection = c;
    dir->inner = inner;
    return 0;
}

static int op_readdir(Origin *base, OriginDir *dir, int64_t off, gboolean with_attr,
                      OriginEntry *entry)
{
    Reconnect *o = reconnect_of(base);
    On on = {0};
    int r = (int)CALL(o, c, TRUE, ({
                          int reached = dir_on(o, c, dir);
                          on = on_now(c);
                          reached < 0
                              ? reached
                              : c->inner->ops->readdir(c->inner, dir->inner, off, with_attr, entry);
                      }));
    if (r == 1 && entry->node)
        entry->node = node_named(base, on, entry->node, &entry->attr, dir->node, entry->name);
    return r;
}

static int op_closedir(Origin *base, OriginDir *dir)
{
    Reconnect *o = reconnect_of(base);
    int r = inner_closedir(o, dir);
    atomic_fetch_sub(&o->handles, 1);
    op_put(base, dir->node);
    g_free(dir);
    return r;
}

/* ---- the rest ---- */

static ssize_t op_getxattr(Origin *base, OriginNode *node, const char *name, void *buf, size_t size)
{
    return NODE_CALL(reconnect_of(base), c, TRUE, node, in,
                     c->inner->ops->getxattr(c->inner, in, name, buf, size));
}

static ssize_t op_listxattr(Origin *base, OriginNode *node, char *buf, size_t size)
{
    return NODE_CALL(reconnect_of(base), c, TRUE, node, in,
                     c->inner->ops->listxattr(c->inner, in, buf, size));
}

static int op_setxattr(Origin *base, OriginNode *node, const char *name, const void *value,
                       size_t size, int flags)
{
    return (int)NODE_CALL(reconnect_of(base), c, FALSE, node, in,
                          c->inner->ops->setxattr(c->inner, in, name, value, size, flags));
}

static int op_removexattr(Origin *base, OriginNode *node, const char *name)
{
    return (int)NODE_CALL(reconnect_of(base), c, FALSE, node, in,
                          c->inner->ops->removexattr(c->inner, in, name));
}

static int op_statfs(Origin *base, OriginNode *node, struct statvfs *st)
{
    return (int)NODE_CALL(reconnect_of(base), c, TRUE, node, in,
                          c->inner->ops->statfs(c->inner, in, st));
}

static const OriginOps reconnect_origin_ops = {
    .type = "cephfs",
    .after_dots = 2,
    .destroy = reconnect_destroy,
    .listen = reconnect_listen,
    .session = reconnect_session,
    .reach = reconnect_reach,
    .vouches = reconnect_vouches,
    .silent_ms = reconnect_silent_ms,
    .rests = reconnect_rests,
    .root = op_root,
    .lookup = op_lookup,
    .resolve = op_resolve,
    .get = op_get,
    .put = op_put,
    .may_read = op_may_read,
    .getattr = op_getattr,
    .setattr = op_setattr,
    .open = op_open,
    .create = op_create,
    .read = op_read,
    .write = op_write,
    .fsync = op_fsync,
    .sync_node = op_sync_node,
    .sync_all = op_sync_all,
    .fallocate = op_fallocate,
    .close = op_close,
    .lease = op_lease,
    .mkdir = op_mkdir,
    .mknod = op_mknod,
    .symlink = op_symlink,
    .link = op_link,
    .unlink = op_unlink,
    .rmdir = op_rmdir,
    .rename = op_rename,
    .readlink = op_readlink,
    .opendir = op_opendir,
    .readdir = op_readdir,
    .closedir = op_closedir,
    .getxattr = op_getxattr,
    .listxattr = op_listxattr,
    .setxattr = op_setxattr,
    .removexattr = op_removexattr,
    .statfs = op_statfs,
};

Origin *origin_reconnect_new(Origin *first, const ReconnectOps *ops, void *data)
{
    return reconnect_begin(&reconnect_origin_ops, first, ops, data);
}
