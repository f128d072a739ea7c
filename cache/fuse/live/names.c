/* SPDX-License-Identifier: Apache-2.0 */
/* Names: lookup and what makes, links, moves and removes them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include "cache/fuse/live/handles.h"
#include "cache/fuse/live/name_change.h"
#include "cache/fuse/live/session_internal.h"

static OriginNew new_of(fuse_req_t req, mode_t mode)
{
    const struct fuse_ctx *ctx = fuse_req_ctx(req);
    return (OriginNew){
        .mode = mode, .uid = ctx->uid, .gid = group_of_new(session_of(req), ctx->gid)};
}

void entry_fill(Session *s, Node *node, const OriginAttr *attr, const NameAsked *asked,
                gboolean listed, struct fuse_entry_param *e)
{
    gboolean is_dir = S_ISDIR(attr->st.st_mode);
    gboolean keep = is_dir || (listed && attr->st.st_nlink == 1);
    gboolean kept = known_name_found(nodes_names(s->nodes), node, asked, is_dir, keep);
    *e = (struct fuse_entry_param){
        .ino = node->id,
        .attr = group_shown(s, &attr->st),
        .attr_timeout = handles_attr_valid(s, node),
        .entry_timeout = kept ? VALID_SEC : 0,
    };
    atomic_store(&node->attr_version, attr->version);
}

static void reply_entry(Session *s, fuse_req_t req, const NameAsked *asked, int r,
                        OriginNode *origin_node, const OriginAttr *attr)
{
    Node *node = r < 0 ? NULL : nodes_found(s->nodes, origin_node, attr, &r);
    if (!node) {
        fuse_reply_err(req, -r);
        return;
    }
    struct fuse_entry_param e;
    entry_fill(s, node, attr, asked, FALSE, &e);
    /* The kernel did not get the reply: it does not count the lookup either. */
    if (fuse_reply_entry(req, &e) != 0)
        nodes_forget(s->nodes, node->id, 1);
    nodes_done(s->nodes, node);
}

/* As names_check() of the directory. -ENOENT, when that is the answer wherever it is: what is then
 * made there is checked. */
static int check_lookup(Session *s, Node *parent, const char *name)
{
    Node *astray;
    int r = names_lead_to(s, parent, &astray);
    if (r == -ESTALE && names_lead_nowhere(s, parent, name))
        r = -ENOENT;
    else if (r == -ESTALE)
        atomic_store(&astray->name_until, 0);
    nodes_done(s->nodes, astray);
    return r;
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent_id, const char *name)
{
    Session *s = session_of(req);
    Node *parent = USE_NODE_OR_REPLY(s, req, parent_id);
    const NameAsked asked = name_asked(parent, name);
    OriginNode *found = NULL;
    OriginAttr attr;
    int r = check_lookup(s, parent, name);
    if (r == 0)
        r = s->origin->ops->lookup(s->origin, parent->origin, name, &found, &attr);
    reply_entry(s, req, &asked, r, found, &attr);
    nodes_done(s->nodes, parent);
}

static void sync_forgotten(Session *s)
{
    if (forgotten_are_many(nodes_forgotten(s->nodes)))
        notifier_sync_forgotten(s->notifier);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t count)
{
    Session *s = session_of(req);
    nodes_forget(s->nodes, ino, count);
    sync_forgotten(s);
    fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
    Session *s = session_of(req);
    for (size_t i = 0; i < count; i++)
        nodes_forget(s->nodes, forgets[i].ino, forgets[i].nlookup);
    sync_forgotten(s);
    fuse_reply_none(req);
}

static void op_mknod(fuse_req_t req, fuse_ino_t parent_id, const char *name, mode_t mode,
                     dev_t rdev)
{
    Session *s = session_of(req);
    const uint64_t session = unsynced_session(s);
    Node *parent = USE_NODE_OR_REPLY(s, req, parent_id);
    OriginNew new = new_of(req, mode);
    new.rdev = rdev;
    OriginNode *made = NULL;
    OriginAttr attr;
    const NameAsked asked = name_asked(parent, name);
    int r = names_check(s, parent);
    if (r == 0)
        r = unsynced_changed(
            s, parent, session,
            s->origin->ops->mknod(s->origin, parent->origin, name, &new, &made, &attr));
    /* bind(2) does not walk again. */
    if (r == -ESTALE && S_ISSOCK(mode))
        r = -ENOENT;
    reply_entry(s, req, &asked, r, made, &attr);
    nodes_done(s->nodes, parent);
}

static void op_mkdir(fuse_req_t req, fuse_ino_t parent_id, const char *name, mode_t mode)
{
    Session *s = session_of(req);
    const uint64_t session = unsynced_session(s);
    Node *parent = USE_NODE_OR_REPLY(s, req, parent_id);
    const OriginNew new = new_of(req, mode);
    OriginNode *made = NULL;
    OriginAttr attr;
    const NameAsked asked = name_asked(parent, name);
    int r = names_check(s, parent);
    if (r == 0)
        r = unsynced_changed(
            s, parent, session,
            s->origin->ops->mkdir(s->origin, parent->origin, name, &new, &made, &attr));
    reply_entry(s, req, &asked, r, made, &attr);
    nodes_done(s->nodes, parent);
}

static void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent_id, const char *name)
{
    Session *s = session_of(req);
    const uint64_t session = unsynced_session(s);
    Node *parent = USE_NODE_OR_REPLY(s, req, parent_id);
    OriginNew new = new_of(req, 0777);
    new.target = target;
    OriginNode *made = NULL;
    OriginAttr attr;
    const NameAsked asked = name_asked(parent, name);
    int r = names_check(s, parent);
    if (r == 0)
        r = unsynced_changed(
            s, parent, session,
            s->origin->ops->symlink(s->origin, parent->origin, name, &new, &made, &attr));
    reply_entry(s, req, &asked, r, made, &attr);
    nodes_done(s->nodes, parent);
}

static void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent_id, const char *name)
{
    Session *s = session_of(req);
    const uint64_t session = unsynced_session(s);
    Node *node = USE_NODE_OR_REPLY(s, req, ino);
    int r;
    Node *parent = node_of_kernel(s, parent_id, &r);
    OriginNode *again = NULL;
    OriginAttr attr;
    if (parent) {
        const NameAsked asked = name_asked(parent, name);
        r = names_check(s, node);
        if (r == 0)
            r = names_check(s, parent);
        if (r == 0)
            r = unsynced_changed(
                s, parent, session,
                s->origin->ops->link(s->origin, node->origin, parent->origin, name, &attr));
        if (r == 0)
            r = s->origin->ops->lookup(s->origin, parent->origin, name, &again, &attr);
        reply_entry(s, req, &asked, r, again, &attr);
    } else {
        fuse_reply_err(req, -r);
    }
    nodes_done(s->nodes, parent);
    nodes_done(s->nodes, node);
}

static void op_unlink(fuse_req_t req, fuse_ino_t parent_id, const char *name)
{
    Session *s = session_of(req);
    const uint64_t session = unsynced_session(s);
    Node *parent = USE_NODE_OR_REPLY(s, req, parent_id);
    int r = names_check(s, parent);
    if (r == 0) {
        NameChange change = {.from = parent, .name = name};
        name_change_begin(s->nodes, &change);
        r = unsynced_changed(s, parent, session,
                             s->origin->ops->unlink(s->origin, parent->origin, name));
        name_change_end(s->nodes, &change, r == 0);
    }
    fuse_reply_err(req, -r);
    nodes_done(s->nodes, parent);
}

static void op_rmdir(fuse_req_t req, fuse_ino_t parent_id, const char *name)
{
    Session *s = session_of(req);
    const uint64_t session = unsynced_session(s);
    Node *parent = USE_NODE_OR_REPLY(s, req, parent_id);
    int r = names_check(s, parent);
    if (r == 0) {
        NameChange change = {.from = parent, .name = name};
        name_change_begin(s->nodes, &change);
        r = unsynced_changed(s, parent, session,
                             s->origin->ops->rmdir(s->origin, parent->origin, name));
        name_change_end(s->nodes, &change, r == 0);
    }
    fuse_reply_err(req, -r);
    nodes_done(s->nodes, parent);
}

static void op_rename(fuse_req_t req, fuse_ino_t from_id, const char *name, fuse_ino_t to_id,
                      const char *new_name, unsigned flags)
{
    Session *s = session_of(req);
    const uint64_t session = unsynced_session(s);
    Node *from = USE_NODE_OR_REPLY(s, req, from_id);
    int r;
    Node *to = node_of_kernel(s, to_id, &r);
    if (to)
        r = names_check(s, from);
    if (to && r == 0)
        r = names_check(s, to);
    if (to && r == 0) {
        NameChange change = {.from = from,
                             .name = name,
                             .to = to,
                             .new_name = new_name,
                             .exchange = (flags & RENAME_EXCHANGE) != 0};
        name_change_begin(s->nodes, &change);
        r = unsynced_changed(
            s, to, session,
            s->origin->ops->rename(s->origin, from->origin, name, to->origin, new_name, flags));
        r = unsynced_changed(s, from, session, r);
        name_change_end(s->nodes, &change, r == 0);
    }
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
    const uint64_t session = unsynced_session(s);
    Node *parent = USE_NODE_OR_REPLY(s, req, parent_id);
    const OriginNew new = new_of(req, mode);
    OriginCreated made;
    const NameAsked asked = name_asked(parent, name);
    int flags = fi->flags | O_CREAT;
    int r = names_check(s, parent);
    if (r == 0)
        r = unsynced_changed(
            s, parent, session,
            s->origin->ops->create(s->origin, parent->origin, name, &new, flags, &made));
    if (r < 0) {
        fuse_reply_err(req, -r);
        nodes_done(s->nodes, parent);
        return;
    }
    Node *node = nodes_found(s->nodes, made.node, &made.attr, &r);
    if (!node) {
        s->origin->ops->close(s->origin, made.file);
        fuse_reply_err(req, -r);
    } else {
        struct fuse_entry_param e;
        Handle *handle = handle_new(s, node, made.file, fi->flags);
        entry_fill(s, node, &made.attr, &asked, FALSE, &e);
        fi->fh = handle->fh;
        if (fuse_reply_create(req, &e, fi) != 0) {
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
