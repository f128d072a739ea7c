/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether names that the kernel used without asking still lead where they led. Those that were
 * changed here do (known_names.h).
 */
#include <errno.h>
#include "cache/fuse/live/session_internal.h"

static int leads_to(Session *s, const Node *parent, const char *name, const Node *node)
{
    OriginNode *found;
    OriginAttr attr;
    int r = s->origin->ops->lookup(s->origin, parent->origin, name, &found, &attr);
    if (r < 0)
        return r == -ENOENT ? -ESTALE : r;
    Node *there = nodes_use_inode(s->nodes, attr.st.st_ino, attr.snapshot);
    nodes_done(s->nodes, there);
    s->origin->ops->put(s->origin, found);
    return there == node ? 0 : -ESTALE;
}

/* The directory in which the kernel has it, in use, and its name there; NULL: in none any more. */
static Node *parent_of(Session *s, Node *node, char **name)
{
    pthread_mutex_lock(&node->mutex);
    uint64_t parent = node->parent;
    *name = g_strdup(node->name);
    pthread_mutex_unlock(&node->mutex);
    return *name ? nodes_use(s->nodes, parent) : NULL;
}

static gboolean may_be_elsewhere(const Node *node)
{
    return node->id != FUSE_ROOT_ID && known_name_is_used(node);
}

int names_lead_to(Session *s, Node *node, Node **astray)
{
    int r = 0;
    Node *at = nodes_use(s->nodes, node->id);
    *astray = NULL;
    while (at && may_be_elsewhere(at)) {
        const unsigned moves = atomic_load(&at->moves);
        g_autofree char *name = NULL;
        Node *parent = parent_of(s, at, &name);
        r = parent ? leads_to(s, parent, name, at) : 0;
        /* It is being renamed here, or was meanwhile: that is as good as before or after it. */
        if (r == -ESTALE && (atomic_load(&at->moving) || atomic_load(&at->moves) != moves))
            r = 0;
        if (r < 0) {
            nodes_done(s->nodes, parent);
            *astray = at;
            return r;
        }
        nodes_done(s->nodes, at);
        at = parent;
    }
    nodes_done(s->nodes, at);
    return 0;
}

int names_check(Session *s, Node *node)
{
    Node *astray;
    int r = names_lead_to(s, node, &astray);
    /* Once: a process that has the directory open goes on with it, even if its name has changed. */
    if (r == -ESTALE)
        atomic_store(&astray->name_until, 0);
    nodes_done(s->nodes, astray);
    return r;
}

static gboolean is_missing(Session *s, OriginNode *parent, const char *name)
{
    OriginNode *found;
    OriginAttr attr;
    int r = s->origin->ops->lookup(s->origin, parent, name, &found, &attr);
    if (r == 0)
        s->origin->ops->put(s->origin, found);
    return r == -ENOENT;
}

/* What there is now by the names from `at`, the last one first. */
static gboolean is_missing_below(Session *s, Node *at, const GPtrArray *names)
{
    OriginNode *in = s->origin->ops->get(s->origin, at->origin);
    int r = in ? 0 : -ESTALE;
    for (guint i = names->len; r == 0 && i-- > 0;) {
        OriginNode *next = NULL;
        OriginAttr attr;
        r = s->origin->ops->lookup(s->origin, in, g_ptr_array_index(names, i), &next, &attr);
        s->origin->ops->put(s->origin, in);
        in = next;
    }
    if (in)
        s->origin->ops->put(s->origin, in);
    return r == -ENOENT;
}

gboolean names_lead_nowhere(Session *s, Node *dir, const char *name)
{
    if (!is_missing(s, dir->origin, name))
        return FALSE;
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(names, g_strdup(name));
    Node *at = nodes_use(s->nodes, dir->id);
    while (at && may_be_elsewhere(at)) {
        char *here;
        Node *parent = parent_of(s, at, &here);
        nodes_done(s->nodes, at);
        at = parent;
        g_ptr_array_add(names, here);
    }
    gboolean missing = at && is_missing_below(s, at, names);
    nodes_done(s->nodes, at);
    return missing;
}
