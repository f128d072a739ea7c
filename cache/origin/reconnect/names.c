/* SPDX-License-Identifier: Apache-2.0 */
/* Names and listings. A listing is begun again on the next connection, where it was. */
#include "cache/origin/reconnect/calls.h"

struct OriginDir {
    OriginNode *node;
    Connection *connection;
    OriginDir *inner;
};

#define MAKE(base, again, parent, name, node, attr, call)                                          \
    ({                                                                                             \
        OriginNode *made = NULL;                                                                   \
        On on = {0};                                                                               \
        int got =                                                                                  \
            (int)NODE_CALL(reconnect_of(base), c, again, parent, in, (on = on_now(c), call));      \
        if (got == 0)                                                                              \
            *(node) = reconnect_node_named(base, on, made, attr, parent, name);                    \
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
                              int r = reconnect_node_on(o, c, parent, &dir);
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
                              int r = reconnect_node_on(o, c, to, &dir);
                              r < 0
                                  ? r
                                  : c->inner->ops->rename(c->inner, in, name, dir, new_name, flags);
                          }));
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
    **dir = (OriginDir){reconnect_node_get(base, node), on.c, inner};
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
        entry->node =
            reconnect_node_named(base, on, entry->node, &entry->attr, dir->node, entry->name);
    return r;
}

static int op_closedir(Origin *base, OriginDir *dir)
{
    Reconnect *o = reconnect_of(base);
    int r = inner_closedir(o, dir);
    atomic_fetch_sub(&o->handles, 1);
    reconnect_node_put(base, dir->node);
    g_free(dir);
    return r;
}

void reconnect_name_ops(OriginOps *ops)
{
    ops->mkdir = op_mkdir;
    ops->mknod = op_mknod;
    ops->symlink = op_symlink;
    ops->link = op_link;
    ops->unlink = op_unlink;
    ops->rmdir = op_rmdir;
    ops->rename = op_rename;
    ops->opendir = op_opendir;
    ops->readdir = op_readdir;
    ops->closedir = op_closedir;
}
