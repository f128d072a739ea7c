/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes that outlive the connection they were found on. Each remembers what it takes to have it
 * again: a live inode its number, one in a snapshot the name it was found by (the MDS finds old
 * inodes by number only while it has them in memory). That happens when it is used and its
 * connection is not the current one.
 */
#include <string.h>
#include "cache/origin/reconnect/calls.h"

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

OriginNode *reconnect_node_new(On on, OriginNode *inner, const OriginAttr *attr)
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

OriginNode *reconnect_node_get(Origin *base, OriginNode *node)
{
    (void)base;
    atomic_fetch_add(&node->refs, 1);
    return node;
}

OriginNode *reconnect_node_named(Origin *base, On on, OriginNode *inner, const OriginAttr *attr,
                                 OriginNode *parent, const char *name)
{
    OriginNode *node = reconnect_node_new(on, inner, attr);
    if (attr->snapshot) {
        node->parent = reconnect_node_get(base, parent);
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
void reconnect_node_put(Origin *base, OriginNode *node)
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

int reconnect_node_on(Reconnect *o, Connection *c, OriginNode *node, OriginNode **inner)
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

static int root_on(Connection *c, OriginNode **node, OriginAttr *attr)
{
    OriginNode *inner;
    int r = c->inner->ops->root(c->inner, &inner, attr);
    if (r == 0)
        *node = reconnect_node_new(on_now(c), inner, attr);
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
        *node = reconnect_node_new(on_now(c), inner, attr);
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
        *node = reconnect_node_named(base, on, inner, attr, parent, name);
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

static int op_readlink(Origin *base, OriginNode *node, char *buf, size_t size)
{
    return (int)NODE_CALL(reconnect_of(base), c, TRUE, node, in,
                          c->inner->ops->readlink(c->inner, in, buf, size));
}

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

uint64_t reconnect_node_snapshot(const OriginNode *node)
{
    return node->snapshot;
}

uint64_t reconnect_node_ino(const OriginNode *node)
{
    return node->ino;
}

void reconnect_node_ops(OriginOps *ops)
{
    ops->get = reconnect_node_get;
    ops->put = reconnect_node_put;
    ops->root = op_root;
    ops->lookup = op_lookup;
    ops->resolve = op_resolve;
    ops->may_read = op_may_read;
    ops->getattr = op_getattr;
    ops->setattr = op_setattr;
    ops->readlink = op_readlink;
    ops->getxattr = op_getxattr;
    ops->listxattr = op_listxattr;
    ops->setxattr = op_setxattr;
    ops->removexattr = op_removexattr;
    ops->statfs = op_statfs;
}
