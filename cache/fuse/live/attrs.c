/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes and extended attributes, and the group that a mount shows. */
#include <errno.h>
#include <sys/xattr.h>
#include <time.h>
#include "cache/fuse/live/contents.h"
#include "cache/fuse/live/handles.h"
#include "cache/fuse/live/session_internal.h"

/* ---- the group that all files of a mount are for ---- */

/*
 * CSI's VOLUME_MOUNT_GROUP, a pod's fsGroup. What kubelet would do to every file by a recursive
 * chown is only shown to the kernel here, which then decides as if it had been done: the same bits,
 * no walk over a million files, nothing changed in Ceph, and a volume of many nodes can have
 * another group on each. New files belong to the group in Ceph too.
 */
#define READ_WRITE (S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP)
#define READ_ONLY (S_IRUSR | S_IRGRP)
#define SEARCH (S_IXUSR | S_IXGRP | S_ISGID)

void session_set_group(Session *s, gboolean any, gid_t group)
{
    atomic_store(&s->group, any ? (int64_t)group : -1);
}

gid_t group_of_new(Session *s, gid_t caller)
{
    int64_t group = atomic_load(&s->group);
    return group < 0 ? caller : (gid_t)group;
}

struct stat group_shown(Session *s, const struct stat *st)
{
    struct stat shown = *st;
    int64_t group = atomic_load(&s->group);
    if (group < 0)
        return shown;
    shown.st_gid = (gid_t)group;
    if (S_ISLNK(st->st_mode))
        return shown;
    shown.st_mode |= s->read_only ? READ_ONLY : READ_WRITE;
    if (S_ISDIR(st->st_mode))
        shown.st_mode |= SEARCH;
    return shown;
}

/* ---- operations ---- */

static void reply_attr(fuse_req_t req, Node *node, const OriginAttr *attr)
{
    atomic_store(&node->attr_version, attr->version);
    struct stat shown = group_shown(session_of(req), &attr->st);
    fuse_reply_attr(req, &shown, handles_attr_valid(session_of(req), node));
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)fi;
    Session *s = session_of(req);
    Node *node = USE_NODE_OR_REPLY(s, req, ino);
    OriginAttr attr;
    int r = s->origin->ops->getattr(s->origin, node->origin, &attr);
    if (r < 0)
        fuse_reply_err(req, -r);
    else
        reply_attr(req, node, &attr);
    nodes_done(s->nodes, node);
}

/* What is open is reached by its descriptor: the kernel does not walk again (session_internal.h).
 */
static gboolean is_open(Session *s, Node *node)
{
    pthread_mutex_lock(&node->mutex);
    gboolean open = !LIST_EMPTY(&node->handles) || atomic_load(&node->listings);
    pthread_mutex_unlock(&node->mutex);
    return open || (session_is_resumed(s) && (reopens_has(s->old_files, node->id) ||
                                              reopens_has(s->old_listings, node->id)));
}

static int check_unless_open(Session *s, Node *node)
{
    return is_open(s, node) ? 0 : names_check(s, node);
}

static void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *st, int to_set,
                       struct fuse_file_info *fi)
{
    static const struct {
        int theirs;
        unsigned ours;
    } fields[] = {
        {FUSE_SET_ATTR_MODE, ORIGIN_SET_MODE},   {FUSE_SET_ATTR_UID, ORIGIN_SET_UID},
        {FUSE_SET_ATTR_GID, ORIGIN_SET_GID},     {FUSE_SET_ATTR_SIZE, ORIGIN_SET_SIZE},
        {FUSE_SET_ATTR_ATIME, ORIGIN_SET_ATIME}, {FUSE_SET_ATTR_MTIME, ORIGIN_SET_MTIME},
        {FUSE_SET_ATTR_CTIME, ORIGIN_SET_CTIME},
    };
    Session *s = session_of(req);
    Node *node = USE_NODE_OR_REPLY(s, req, ino);
    unsigned set = 0;
    for (size_t i = 0; i < G_N_ELEMENTS(fields); i++)
        if (to_set & fields[i].theirs)
            set |= fields[i].ours;
    if (to_set & FUSE_SET_ATTR_ATIME_NOW) {
        clock_gettime(CLOCK_REALTIME, &st->st_atim);
        set |= ORIGIN_SET_ATIME;
    }
    if (to_set & FUSE_SET_ATTR_MTIME_NOW) {
        clock_gettime(CLOCK_REALTIME, &st->st_mtim);
        set |= ORIGIN_SET_MTIME;
    }
    /* ftruncate() means the open file, even if its name has changed. */
    int r = 0;
    if (!fi)
        r = set & ORIGIN_SET_SIZE ? names_check(s, node) : check_unless_open(s, node);
    if (r == 0 && set & ORIGIN_SET_SIZE && is_unlocked_by_loss(s, node))
        r = -EIO;
    if (r < 0) {
        fuse_reply_err(req, -r);
        nodes_done(s->nodes, node);
        return;
    }
    if (set & ORIGIN_SET_SIZE) {
        handles_return_leases(s, node);
        contents_resize_begin(s, node);
    }
    OriginAttr attr;
    const uint64_t session = unsynced_session(s);
    atomic_store(&node->dirty, 1);
    r = s->origin->ops->setattr(s->origin, node->origin, st, set, &attr);
    if (set & ORIGIN_SET_SIZE)
        contents_resize_end(node);
    if (r == 0)
        unsynced_wrote(s, node, session);
    atomic_store(&node->dirty, 1);
    if (r < 0)
        fuse_reply_err(req, -r);
    else
        reply_attr(req, node, &attr);
    nodes_done(s->nodes, node);
}

static void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
    Session *s = session_of(req);
    Node *node = USE_NODE_OR_REPLY(s, req, ino);
    g_autofree char *value = size ? g_malloc(size) : NULL;
    ssize_t r = s->origin->ops->getxattr(s->origin, node->origin, name, value, size);
    nodes_done(s->nodes, node);
    if (r < 0)
        fuse_reply_err(req, (int)-r);
    else if (size == 0)
        fuse_reply_xattr(req, (size_t)r);
    else
        fuse_reply_buf(req, value, (size_t)r);
}

static void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
    Session *s = session_of(req);
    Node *node = USE_NODE_OR_REPLY(s, req, ino);
    g_autofree char *names = size ? g_malloc(size) : NULL;
    ssize_t r = s->origin->ops->listxattr(s->origin, node->origin, names, size);
    nodes_done(s->nodes, node);
    if (r < 0)
        fuse_reply_err(req, (int)-r);
    else if (size == 0)
        fuse_reply_xattr(req, (size_t)r);
    else
        fuse_reply_buf(req, names, (size_t)r);
}

static void op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
                        size_t size, int flags)
{
    Session *s = session_of(req);
    const uint64_t session = unsynced_session(s);
    Node *node = USE_NODE_OR_REPLY(s, req, ino);
    int r = check_unless_open(s, node);
    if (r == 0)
        r = unsynced_changed(
            s, node, session,
            s->origin->ops->setxattr(s->origin, node->origin, name, value, size, flags));
    fuse_reply_err(req, -r);
    nodes_done(s->nodes, node);
}

static void op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
    Session *s = session_of(req);
    const uint64_t session = unsynced_session(s);
    Node *node = USE_NODE_OR_REPLY(s, req, ino);
    int r = check_unless_open(s, node);
    if (r == 0)
        r = unsynced_changed(s, node, session,
                             s->origin->ops->removexattr(s->origin, node->origin, name));
    fuse_reply_err(req, -r);
    nodes_done(s->nodes, node);
}

void attrs_ops(struct fuse_lowlevel_ops *ops)
{
    ops->getattr = op_getattr;
    ops->setattr = op_setattr;
    ops->getxattr = op_getxattr;
    ops->listxattr = op_listxattr;
    ops->setxattr = op_setxattr;
    ops->removexattr = op_removexattr;
}
