/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CephFS as an origin: libcephfs's low-level calls, one for one. An OriginNode is libcephfs's Inode
 * with one reference. Attributes are asked for with every field wanted, so libcephfs answers from
 * memory exactly while its capabilities vouch for them, and asks the MDS otherwise.
 */
#include "cache/origin/cephfs/internal.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static struct ceph_mount_info *mount_of(Origin *o)
{
    return ((CephfsOrigin *)o)->mount;
}

static gboolean is_gone(Origin *o)
{
    return atomic_load(&((CephfsOrigin *)o)->gone);
}

static UserPerm *perms_of(Origin *o)
{
    return ((CephfsOrigin *)o)->perms;
}

static struct Inode *inode_of(OriginNode *node)
{
    return (struct Inode *)node;
}

static int op_root(Origin *o, OriginNode **node, OriginAttr *attr)
{
    CephfsOrigin *c = (CephfsOrigin *)o;
    struct Inode *in = c->root ? cephfs_get(c, c->root) : NULL;
    struct ceph_statx stx;
    int r = 0;
    if (!c->root)
        r = ceph_ll_lookup_root(mount_of(o), &in);
    else if (!in)
        r = -ESTALE;
    if (r < 0)
        return r;
    r = ceph_ll_getattr(mount_of(o), in, &stx, CEPHFS_WANT, 0, perms_of(o));
    if (r < 0) {
        ceph_ll_put(mount_of(o), in);
        return r;
    }
    cephfs_fill_attr(attr, &stx);
    *node = (OriginNode *)in;
    return 0;
}

static int op_lookup(Origin *o, OriginNode *parent, const char *name, OriginNode **node,
                     OriginAttr *attr)
{
    struct Inode *in;
    struct ceph_statx stx;
    cephfs_prime((CephfsOrigin *)o, inode_of(parent));
    int r =
        ceph_ll_lookup(mount_of(o), inode_of(parent), name, &in, &stx, CEPHFS_WANT, 0, perms_of(o));
    if (r < 0)
        return r;
    cephfs_fill_attr(attr, &stx);
    *node = (OriginNode *)in;
    return 0;
}

static int op_resolve(Origin *o, uint64_t ino, uint64_t snapshot, OriginNode **node,
                      OriginAttr *attr)
{
    struct Inode *in;
    struct ceph_statx stx;
    vinodeno_t vino = {{ino}, {snapshot ? snapshot : CEPHFS_NOSNAP}};
    int r = ceph_ll_lookup_vino(mount_of(o), vino, &in);
    if (r < 0)
        return r;
    r = ceph_ll_getattr(mount_of(o), in, &stx, CEPHFS_WANT, 0, perms_of(o));
    if (r < 0) {
        ceph_ll_put(mount_of(o), in);
        return r;
    }
    cephfs_fill_attr(attr, &stx);
    *node = (OriginNode *)in;
    return 0;
}

static OriginNode *op_get(Origin *o, OriginNode *node)
{
    return (OriginNode *)cephfs_get((CephfsOrigin *)o, inode_of(node));
}

static void op_put(Origin *o, OriginNode *node)
{
    if (!is_gone(o))
        ceph_ll_put(mount_of(o), inode_of(node));
}

static int op_getattr(Origin *o, OriginNode *node, OriginAttr *attr)
{
    struct ceph_statx stx;
    int r = ceph_ll_getattr(mount_of(o), inode_of(node), &stx, CEPHFS_WANT, 0, perms_of(o));
    if (r == 0)
        cephfs_fill_attr(attr, &stx);
    return r;
}

static int op_setattr(Origin *o, OriginNode *node, const struct stat *st, unsigned set,
                      OriginAttr *attr)
{
    struct ceph_statx stx = {
        .stx_mode = (uint16_t)st->st_mode,
        .stx_uid = st->st_uid,
        .stx_gid = st->st_gid,
        .stx_size = (uint64_t)st->st_size,
        .stx_atime = st->st_atim,
        .stx_mtime = st->st_mtim,
        .stx_ctime = st->st_ctim,
    };
    static const struct {
        unsigned ours;
        int theirs;
    } fields[] = {
        {ORIGIN_SET_MODE, CEPH_SETATTR_MODE},   {ORIGIN_SET_UID, CEPH_SETATTR_UID},
        {ORIGIN_SET_GID, CEPH_SETATTR_GID},     {ORIGIN_SET_SIZE, CEPH_SETATTR_SIZE},
        {ORIGIN_SET_ATIME, CEPH_SETATTR_ATIME}, {ORIGIN_SET_MTIME, CEPH_SETATTR_MTIME},
        {ORIGIN_SET_CTIME, CEPH_SETATTR_CTIME},
    };
    int mask = 0;
    for (size_t i = 0; i < G_N_ELEMENTS(fields); i++)
        if (set & fields[i].ours)
            mask |= fields[i].theirs;
    int r = ceph_ll_setattr(mount_of(o), inode_of(node), &stx, mask, perms_of(o));
    return r < 0 ? r : op_getattr(o, node, attr);
}

static int op_open(Origin *o, OriginNode *node, int flags, OriginFile **file)
{
    const int r = cephfs_file_open((CephfsOrigin *)o, inode_of(node), flags, file);
    if (r == 0)
        cephfs_file_is_witness((CephfsOrigin *)o, *file);
    return r;
}

static UserPerm *perms_of_new(const OriginNew *new)
{
    return ceph_userperm_new(new->uid, new->gid, 0, NULL);
}

static int op_create(Origin *o, OriginNode *parent, const char *name, const OriginNew *new,
                     int flags, OriginCreated *created)
{
    UserPerm *perms = perms_of_new(new);
    if (!perms)
        return -ENOMEM;
    struct Inode *in;
    Fh *fh = NULL;
    struct ceph_statx stx;
    int r = ceph_ll_create(mount_of(o), inode_of(parent), name, new->mode,
                           cephfs_handle_flags(flags) | (flags & (O_CREAT | O_EXCL | O_TRUNC)), &in,
                           &fh, &stx, CEPHFS_WANT, 0, perms);
    ceph_userperm_destroy(perms);
    if (r < 0)
        return r;
    cephfs_fill_attr(&created->attr, &stx);
    created->node = (OriginNode *)in;
    created->file = cephfs_file_new((CephfsOrigin *)o, fh, in, flags);
    return 0;
}

/* A write of the file; it may wait for capabilities. */
#define WRITING(o, file, fh, call)                                                                 \
    ({                                                                                             \
        CephfsHandle *used;                                                                        \
        int r_of = cephfs_write_begin((CephfsOrigin *)(o), file, &used);                           \
        if (r_of == 0) {                                                                           \
            Fh *fh = used->fh;                                                                     \
            r_of = CEPHFS_LISTED(o, (file)->inode, call);                                          \
            cephfs_write_end((CephfsOrigin *)(o), file, used, r_of >= 0);                          \
        }                                                                                          \
        r_of;                                                                                      \
    })

static ssize_t op_read(Origin *o, OriginFile *file, void *buf, size_t len, uint64_t off)
{
    CephfsHandle *used;
    int r = cephfs_read_begin((CephfsOrigin *)o, file, &used);
    if (r < 0)
        return r;
    r = CEPHFS_LISTED(o, file->inode, ceph_ll_read(mount_of(o), used->fh, (int64_t)off, len, buf));
    cephfs_read_end((CephfsOrigin *)o, used);
    int doubt = r > 0 ? cephfs_check_zeros((CephfsOrigin *)o, buf, (size_t)r, off) : 0;
    return doubt < 0 ? doubt : r;
}

static ssize_t op_write(Origin *o, OriginFile *file, const void *buf, size_t len, uint64_t off)
{
    /* -1, which ORIGIN_APPEND becomes: libcephfs looks at O_APPEND only when no offset is given. */
    return WRITING(o, file, fh, ceph_ll_write(mount_of(o), fh, (int64_t)off, len, buf));
}

/* Not ceph_ll_fsync(): that takes an error away that is noted in the handle, which other files have
 * as well. */
static int op_fsync(Origin *o, OriginFile *file, gboolean data_only)
{
    const uint64_t mark = cephfs_files_mark((CephfsOrigin *)o);
    int r = ceph_ll_sync_inode(mount_of(o), file->inode, data_only);
    int look = cephfs_files_look((CephfsOrigin *)o, file->inode, mark);
    return r < 0 ? r : look;
}

static int op_sync_node(Origin *o, OriginNode *node)
{
    const uint64_t mark = cephfs_files_mark((CephfsOrigin *)o);
    int r = ceph_ll_sync_inode(mount_of(o), inode_of(node), 0);
    int look = cephfs_files_look((CephfsOrigin *)o, inode_of(node), mark);
    return r < 0 ? r : look;
}

static int op_sync_all(Origin *o)
{
    const uint64_t mark = cephfs_files_mark((CephfsOrigin *)o);
    int r = ceph_sync_fs(mount_of(o));
    int look = cephfs_files_look_at_closed((CephfsOrigin *)o, mark);
    return r < 0 ? r : look;
}

static int op_fallocate(Origin *o, OriginFile *file, int mode, uint64_t off, uint64_t len)
{
    return WRITING(o, file, fh,
                   ceph_ll_fallocate(mount_of(o), fh, mode, (int64_t)off, (int64_t)len));
}

static int op_close(Origin *o, OriginFile *file)
{
    return cephfs_file_close((CephfsOrigin *)o, file);
}

static int op_mkdir(Origin *o, OriginNode *parent, const char *name, const OriginNew *new,
                    OriginNode **node, OriginAttr *attr)
{
    UserPerm *perms = perms_of_new(new);
    if (!perms)
        return -ENOMEM;
    struct Inode *in;
    struct ceph_statx stx;
    int r = ceph_ll_mkdir(mount_of(o), inode_of(parent), name, new->mode, &in, &stx, CEPHFS_WANT, 0,
                          perms);
    ceph_userperm_destroy(perms);
    if (r < 0)
        return r;
    cephfs_fill_attr(attr, &stx);
    *node = (OriginNode *)in;
    return 0;
}

static int op_mknod(Origin *o, OriginNode *parent, const char *name, const OriginNew *new,
                    OriginNode **node, OriginAttr *attr)
{
    UserPerm *perms = perms_of_new(new);
    if (!perms)
        return -ENOMEM;
    struct Inode *in;
    struct ceph_statx stx;
    int r = ceph_ll_mknod(mount_of(o), inode_of(parent), name, new->mode,
                          cephfs_stored_device(new->rdev), &in, &stx, CEPHFS_WANT, 0, perms);
    ceph_userperm_destroy(perms);
    if (r < 0)
        return r;
    cephfs_fill_attr(attr, &stx);
    *node = (OriginNode *)in;
    return 0;
}

static int op_symlink(Origin *o, OriginNode *parent, const char *name, const OriginNew *new,
                      OriginNode **node, OriginAttr *attr)
{
    UserPerm *perms = perms_of_new(new);
    if (!perms)
        return -ENOMEM;
    struct Inode *in;
    struct ceph_statx stx;
    int r = ceph_ll_symlink(mount_of(o), inode_of(parent), name, new->target, &in, &stx,
                            CEPHFS_WANT, 0, perms);
    ceph_userperm_destroy(perms);
    if (r < 0)
        return r;
    cephfs_fill_attr(attr, &stx);
    *node = (OriginNode *)in;
    return 0;
}

static int op_link(Origin *o, OriginNode *node, OriginNode *parent, const char *name,
                   OriginAttr *attr)
{
    int r = ceph_ll_link(mount_of(o), inode_of(node), inode_of(parent), name, perms_of(o));
    return r < 0 ? r : op_getattr(o, node, attr);
}

static int op_unlink(Origin *o, OriginNode *parent, const char *name)
{
    return ceph_ll_unlink(mount_of(o), inode_of(parent), name, perms_of(o));
}

static int op_rmdir(Origin *o, OriginNode *parent, const char *name)
{
    return ceph_ll_rmdir(mount_of(o), inode_of(parent), name, perms_of(o));
}

static int op_readlink(Origin *o, OriginNode *node, char *buf, size_t size)
{
    return ceph_ll_readlink(mount_of(o), inode_of(node), buf, size, perms_of(o));
}

static ssize_t op_getxattr(Origin *o, OriginNode *node, const char *name, void *buf, size_t size)
{
    return ceph_ll_getxattr(mount_of(o), inode_of(node), name, buf, size, perms_of(o));
}

static ssize_t op_listxattr(Origin *o, OriginNode *node, char *buf, size_t size)
{
    size_t length = 0;
    int r = ceph_ll_listxattr(mount_of(o), inode_of(node), buf, size, &length, perms_of(o));
    return r < 0 ? r : (ssize_t)length;
}

static int op_setxattr(Origin *o, OriginNode *node, const char *name, const void *value,
                       size_t size, int flags)
{
    return ceph_ll_setxattr(mount_of(o), inode_of(node), name, value, size, flags, perms_of(o));
}

static int op_removexattr(Origin *o, OriginNode *node, const char *name)
{
    return ceph_ll_removexattr(mount_of(o), inode_of(node), name, perms_of(o));
}

static int op_statfs(Origin *o, OriginNode *node, struct statvfs *st)
{
    return ceph_ll_statfs(mount_of(o), inode_of(node), st);
}

const OriginOps cephfs_origin_ops = {
    .type = "cephfs",
    .after_dots = 2,
    .destroy = cephfs_destroy,
    .listen = cephfs_listen,
    .root = op_root,
    .lookup = op_lookup,
    .resolve = op_resolve,
    .get = op_get,
    .put = op_put,
    .may_read = cephfs_may_read,
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
    .lease = cephfs_lease,
    .locks_open = cephfs_locks_open,
    .lock_set = cephfs_lock_set,
    .lock_get = cephfs_lock_get,
    .locks_close = cephfs_locks_close,
    .mkdir = op_mkdir,
    .mknod = op_mknod,
    .symlink = op_symlink,
    .link = op_link,
    .unlink = op_unlink,
    .rmdir = op_rmdir,
    .rename = cephfs_rename,
    .readlink = op_readlink,
    .opendir = cephfs_opendir,
    .readdir = cephfs_readdir,
    .closedir = cephfs_closedir,
    .getxattr = op_getxattr,
    .listxattr = op_listxattr,
    .setxattr = op_setxattr,
    .removexattr = op_removexattr,
    .statfs = op_statfs,
};
