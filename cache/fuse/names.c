/* Names: lookup and what makes, links, moves and removes them. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include "cache/fuse/session_internal.h"

static OriginCaller caller_of(fuse_req_t req)
{
    const struct fuse_ctx *ctx = fuse_req_ctx(req);
    return (OriginCaller){.uid = ctx->uid, .gid = group_of_new(session_of(req), ctx->gid)};
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void entry_fill(Session *s, Node *node, const OriginAttr *attr, gboolean keep_name,
                struct fuse_entry_param *e)
{
    *e = (struct fuse_entry_param){
        .ino = node->id,
        .attr = group_shown(s, &attr->st),
        .attr_timeout = attr_valid(node),
        .entry_timeout = keep_name ? VALID_SEC : 0,
    };
    atomic_store(&node->attr_version, attr->version);
    /* Twice as long as the kernel's clock may take it for. */
    atomic_store(&node->name_until, keep_name ? now_ms() + 2 * VALID_MS : 0);
}

static int check_name(Session *s, Node *node, Node *parent, const char *name)
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

int names_check(Session *s, Node *node)
{
    int r = 0;
    int64_t now = now_ms();
    Node *at = nodes_use(s->nodes, node->id);
    while (r == 0 && at && at->id != FUSE_ROOT_ID && atomic_load(&at->name_until) > now) {
        pthread_mutex_lock(&at->mutex);
        uint64_t parent_id = at->parent;
        g_autofree char *name = g_strdup(at->name);
        pthread_mutex_unlock(&at->mutex);
        Node *parent = nodes_use(s->nodes, parent_id);
        r = parent ? check_name(s, at, parent, name) : -ESTALE;
        /* Once: who holds the directory open, whatever its name, goes on with it. */
        if (r == -ESTALE)
            atomic_store(&at->name_until, 0);
        nodes_done(s->nodes, at);
        at = parent;
    }
    nodes_done(s->nodes, at);
    return r;
}

static void reply_entry(Session *s, fuse_req_t req, Node *parent, const char *name, int r,
                        OriginNode *origin_node, const OriginAttr *attr)
{
    if (r < 0) {
        fuse_reply_err(req, -r);
        return;
    }
    Node *node = nodes_found(s->nodes, origin_node, attr, parent->id, name, &r);
    if (!node) {
        fuse_reply_err(req, -r);
        return;
    }
    struct fuse_entry_param e;
    entry_fill(s, node, attr, S_ISDIR(attr->st.st_mode), &e);
    /* The kernel did not get the reply (interrupted): it does not count the lookup either. */
    if (fuse_reply_entry(req, &e) == -ENOENT)
        nodes_forget(s->nodes, node->id, 1);
    nodes_done(s->nodes, node);
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent_id, const char *name)
{
    Session *s = session_of(req);
    Node *parent = USE_NODE_OR_REPLY(s, req, parent_id);
    OriginNode *found = NULL;
    OriginAttr attr;
    int r = names_check(s, parent);
    if (r == 0)
        r = s->origin->ops->lookup(s->origin, parent->origin, name, &found, &attr);
    reply_entry(s, req, parent, name, r, found, &attr);
    nodes_done(s->nodes, parent);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t count)
{
    nodes_forget(session_of(req)->nodes, ino, count);
    fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
    for (size_t i = 0; i < count; i++)
        nodes_forget(session_of(req)->nodes, forgets[i].ino, forgets[i].nlookup);
    fuse_reply_none(req);
}

static void op_mknod(fuse_req_t req, fuse_ino_t parent_id, const char *name, mode_t mode,
                     dev_t rdev)
{
    Session *s = session_of(req);
    Node *parent = USE_NODE_OR_REPLY(s, req, parent_id);
    OriginCaller caller = caller_of(req);
    OriginNode *made = NULL;
    OriginAttr attr;
    int r =
        s->origin->ops->mknod(s->origin, parent->origin, name, mode, rdev, &caller, &made, &attr);
    reply_entry(s, req, parent, name, r, made, &attr);
    nodes_done(s->nodes, parent);
}

static void op_mkdir(fuse_req_t req, fuse_ino_t parent_id, const char *name, mode_t mode)
{
    Session *s = session_of(req);
    Node *parent = USE_NODE_OR_REPLY(s, req, parent_id);
    OriginCaller caller = caller_of(req);
    OriginNode *made = NULL;
    OriginAttr attr;
    int r = s->origin->ops->mkdir(s->origin, parent->origin, name, mode, &caller, &made, &attr);
    reply_entry(s, req, parent, name, r, made, &attr);
    nodes_done(s->nodes, parent);
}

static void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent_id, const char *name)
{
    Session *s = session_of(req);
    Node *parent = USE_NODE_OR_REPLY(s, req, parent_id);
    OriginCaller caller = caller_of(req);
    OriginNode *made = NULL;
    OriginAttr attr;
    int r = s->origin->ops->symlink(s->origin, parent->origin, name, target, &caller, &made, &attr);
    reply_entry(s, req, parent, name, r, made, &attr);
    nodes_done(s->nodes, parent);
}

static void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent_id, const char *name)
{
    Session *s = session_of(req);
    Node *node = USE_NODE_OR_REPLY(s, req, ino);
    Node *parent = nodes_use(s->nodes, parent_id);
    OriginNode *again = NULL;
    OriginAttr attr;
    int r = -ESTALE;
    if (parent) {
        r = names_check(s, node);
        if (r == 0)
            r = s->origin->ops->link(s->origin, node->origin, parent->origin, name, &attr);
        if (r == 0)
            r = s->origin->ops->lookup(s->origin, parent->origin, name, &again, &attr);
        reply_entry(s, req, parent, name, r, again, &attr);
    } else {
        fuse_reply_err(req, -r);
    }
    nodes_done(s->nodes, parent);
    nodes_done(s->nodes, node);
}

static void op_unlink(fuse_req_t req, fuse_ino_t parent_id, const char *name)
{
    Session *s = session_of(req);
    Node *parent = USE_NODE_OR_REPLY(s, req, parent_id);
    int r = names_check(s, parent);
    if (r == 0)
        r = s->origin->ops->unlink(s->origin, parent->origin, name);
    fuse_reply_err(req, -r);
    nodes_done(s->nodes, parent);
}

static void op_rmdir(fuse_req_t req, fuse_ino_t parent_id, const char *name)
{
    Session *s = session_of(req);
    Node *parent = USE_NODE_OR_REPLY(s, req, parent_id);
    int r = names_check(s, parent);
    if (r == 0)
        r = s->origin->ops->rmdir(s->origin, parent->origin, name);
    fuse_reply_err(req, -r);
    nodes_done(s->nodes, parent);
}

static void op_rename(fuse_req_t req, fuse_ino_t from_id, const char *name, fuse_ino_t to_id,
                      const char *new_name, unsigned flags)
{
    Session *s = session_of(req);
    Node *from = USE_NODE_OR_REPLY(s, req, from_id);
    Node *to = nodes_use(s->nodes, to_id);
    int r = to ? names_check(s, from) : -ESTALE;
    if (r == 0)
        r = names_check(s, to);
    if (r == 0)
        r = s->origin->ops->rename(s->origin, from->origin, name, to->origin, new_name, flags);
    fuse_reply_err(req, -r);
    nodes_done(s->nodes, to);
    nodes_done(s->nodes, from);
}

static void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
    Session *s = session_of(req);
    Node *node = USE_NODE_OR_REPLY(s, req, ino);
    char target[PATH_MAX + 1];
    int r = s->origin->ops->readlink(s->origin, node->origin, target, PATH_MAX);
    nodes_done(s->nodes, node);
    if (r < 0) {
        fuse_reply_err(req, -r);
        return;
    }
    target[r] = '\0';
    fuse_reply_readlink(req, target);
}

static void op_create(fuse_req_t req, fuse_ino_t parent_id, const char *name, mode_t mode,
                      struct fuse_file_info *fi)
{
    Session *s = session_of(req);
    Node *parent = USE_NODE_OR_REPLY(s, req, parent_id);
    OriginCaller caller = caller_of(req);
    OriginNode *made;
    OriginFile *file;
    OriginAttr attr;
    int flags = fi->flags | O_CREAT;
    int r = s->origin->ops->create(s->origin, parent->origin, name, mode, flags, &caller, &made,
                                   &file, &attr);
    if (r < 0) {
        fuse_reply_err(req, -r);
        nodes_done(s->nodes, parent);
        return;
    }
    Node *node = nodes_found(s->nodes, made, &attr, parent->id, name, &r);
    if (!node) {
        s->origin->ops->close(s->origin, file);
        fuse_reply_err(req, -r);
    } else {
        struct fuse_entry_param e;
        Handle *handle = handle_new(s, node, file, fi->flags);
        entry_fill(s, node, &attr, FALSE, &e);
        fi->fh = (uintptr_t)handle;
        if (fuse_reply_create(req, &e, fi) == -ENOENT) {
            handle_release(handle);
            nodes_forget(s->nodes, node->id, 1);
        }
        nodes_done(s->nodes, node);
    }
    nodes_done(s->nodes, parent);
}

void names_ops(struct fuse_lowlevel_ops *ops)
{
    ops->lookup = op_lookup;
    ops->forget = op_forget;
    ops->forget_multi = op_forget_multi;
    ops->mknod = op_mknod;
    ops->mkdir = op_mkdir;
    ops->symlink = op_symlink;
    ops->link = op_link;
    ops->unlink = op_unlink;
    ops->rmdir = op_rmdir;
    ops->rename = op_rename;
    ops->readlink = op_readlink;
    ops->create = op_create;
}
