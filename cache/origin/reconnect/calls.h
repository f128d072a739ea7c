/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For nodes.c, files.c, names.c and ops.c, from the bottom up: calls of the origin on the
 * connection that is current.
 */
#ifndef HEARTH_CACHE_ORIGIN_RECONNECT_CALLS_H
#define HEARTH_CACHE_ORIGIN_RECONNECT_CALLS_H

#include "cache/origin/reconnect/internal.h"

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

static inline Reconnect *reconnect_of(Origin *base)
{
    return (Reconnect *)base;
}

/* A connection while it is in use: afterwards its struct may get another number. */
typedef struct On {
    Connection *c;
    uint64_t number;
} On;

static inline On on_now(Connection *c)
{
    return (On){c, c->number};
}

/* --- nodes.c --- */
/* Has `inner` from now on. */
OriginNode *reconnect_node_new(On on, OriginNode *inner, const OriginAttr *attr);
/* The same, of that name in a directory. */
OriginNode *reconnect_node_named(Origin *base, On on, OriginNode *inner, const OriginAttr *attr,
                                 OriginNode *parent, const char *name);
OriginNode *reconnect_node_get(Origin *base, OriginNode *node);
void reconnect_node_put(Origin *base, OriginNode *node);
/* As OriginAttr.snapshot; constant. */
uint64_t reconnect_node_snapshot(const OriginNode *node);
/* Its number; constant. */
uint64_t reconnect_node_ino(const OriginNode *node);
/* The node on that connection; borrowed. */
int reconnect_node_on(Reconnect *o, Connection *c, OriginNode *node, OriginNode **inner);

/* What `call` comes to with `inner`, the node on the connection. */
#define ON_NODE(o, c, node, inner, call)                                                           \
    ({                                                                                             \
        OriginNode *inner;                                                                         \
        int64_t found = reconnect_node_on(o, c, node, &inner);                                     \
        found < 0 ? found : (int64_t)(call);                                                       \
    })
/* Most operations: on one node, with the current connection. */
#define NODE_CALL(o, c, again, node, inner, call)                                                  \
    CALL(o, c, again, ON_NODE(o, c, node, inner, call))

/* Each sets the operations that its file has. */
void reconnect_node_ops(OriginOps *ops);
/* --- files.c --- */
void reconnect_file_ops(OriginOps *ops);
/* --- names.c --- */
void reconnect_name_ops(OriginOps *ops);

#endif
