/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open files that outlive their connection: each remembers the flags that it was opened with, and
 * is opened again when it is used on the next one.
 */
#include "cache/origin/reconnect/calls.h"

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

static OriginFile *file_new(Origin *base, Connection *c, OriginNode *node, int flags,
                            OriginFile *inner)
{
    OriginFile *file = g_new0(OriginFile, 1);
    pthread_mutex_init(&file->mutex, NULL);
    file->node = reconnect_node_get(base, node);
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
    if (locks_are_lost(o, c, reconnect_node_ino(file->node)))
        return -EIO;
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
    created->node = reconnect_node_new(on, inner.node, &inner.attr);
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
    if (reconnect_node_snapshot(node) || reconnect_vouches(&o->base) || checks_ask(o, c) == 0)
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
    reconnect_node_put(base, file->node);
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

static int op_locks_open(Origin *base, OriginNode *node, OriginLocks **locks)
{
    Reconnect *o = reconnect_of(base);
    return (int)NODE_CALL(o, c, TRUE, node, in,
                          locks_open_on(o, c, reconnect_node_ino(node), in, locks));
}

void reconnect_file_ops(OriginOps *ops)
{
    ops->open = op_open;
    ops->create = op_create;
    ops->read = op_read;
    ops->write = op_write;
    ops->fsync = op_fsync;
    ops->sync_node = op_sync_node;
    ops->sync_all = op_sync_all;
    ops->fallocate = op_fallocate;
    ops->close = op_close;
    ops->lease = op_lease;
    ops->locks_open = op_locks_open;
    ops->lock_set = reconnect_lock_set;
    ops->lock_get = reconnect_lock_get;
    ops->locks_close = reconnect_locks_close;
}
