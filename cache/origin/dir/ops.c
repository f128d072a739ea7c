/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A local directory as origin, for development, unit tests and machines without Ceph.
 *
 * As in libfuse's passthrough_ll, a node is an O_PATH descriptor: it names the inode even after a
 * rename or removal of its path. Names are resolved one component at a time beneath it by
 * openat2(2), never through a symbolic link and never onto another mount, so nothing outside the
 * directory can be reached. One inode has one node, found by (dev, ino); so resolve() knows only
 * inodes that are in use. Each node costs a descriptor: the process' limit bounds how many there
 * can be.
 *
 * `version` is the ctime in nanoseconds. Kernels before 6.13 advance it once a tick, so two changes
 * made behind this origin's back within one tick look like one; changes made through it are
 * covered by leases.
 */
#include "common/monotonic.h"
#include "cache/origin/dir/internal.h"
#include "common/autofd.h"
#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <string.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

static int dir_root(Origin *o, OriginNode **node, OriginAttr *attr)
{
    DirOrigin *origin = (DirOrigin *)o;
    int result = dir_getattr(o, origin->root, attr);
    if (result == 0)
        *node = dir_get(o, origin->root);
    return result;
}

static int dir_resolve(Origin *o, uint64_t ino, uint64_t snapshot, OriginNode **node,
                       OriginAttr *attr)
{
    DirOrigin *origin = (DirOrigin *)o;
    OriginNode key = {.dev = origin->dev, .ino = ino};
    pthread_mutex_lock(&origin->lock);
    OriginNode *known = snapshot ? NULL : g_hash_table_lookup(origin->nodes, &key);
    if (known)
        known->refs++;
    pthread_mutex_unlock(&origin->lock);
    if (!known)
        return -ESTALE;
    int result = dir_getattr(o, known, attr);
    if (result == 0)
        *node = known;
    else
        dir_put(o, known);
    return result;
}

static struct timespec time_to_set(unsigned set, unsigned flag, struct timespec value)
{
    return set & flag ? value : (struct timespec){.tv_nsec = UTIME_OMIT};
}

/* The order matters: a change of owner clears set-ID bits, and each step moves the times. */
static int dir_setattr(Origin *o, OriginNode *node, const struct stat *st, unsigned set,
                       OriginAttr *attr)
{
    ProcPath path = dir_proc_path(node->fd);
    if (set & ORIGIN_SET_SIZE) {
        int result = dir_truncate((DirOrigin *)o, node, st->st_size);
        if (result < 0)
            return result;
    }
    if (set & (ORIGIN_SET_UID | ORIGIN_SET_GID)) {
        uid_t uid = set & ORIGIN_SET_UID ? st->st_uid : (uid_t)-1;
        gid_t gid = set & ORIGIN_SET_GID ? st->st_gid : (gid_t)-1;
        if (fchownat(node->fd, "", uid, gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0)
            return -errno;
    }
    if (set & ORIGIN_SET_MODE) {
        if (S_ISLNK(node->type))
            return -EOPNOTSUPP;
        if (chmod(path.text, st->st_mode & 07777) < 0)
            return -errno;
    }
    if (set & (ORIGIN_SET_ATIME | ORIGIN_SET_MTIME)) {
        struct timespec times[2] = {time_to_set(set, ORIGIN_SET_ATIME, st->st_atim),
                                    time_to_set(set, ORIGIN_SET_MTIME, st->st_mtim)};
        if (utimensat(node->fd, "", times, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0)
            return -errno;
    }
    return dir_getattr(o, node, attr);
}

static int dir_readlink(Origin *o, OriginNode *node, char *buf, size_t size)
{
    (void)o;
    ssize_t n = readlinkat(node->fd, "", buf, size);
    if (n < 0)
        return errno == ENOENT ? -EINVAL : -errno;
    if ((size_t)n < size)
        buf[n] = '\0';
    return (int)n;
}

/* The attributes of a symbolic link cannot be reached through its descriptor: it has none. */
static ssize_t dir_getxattr(Origin *o, OriginNode *node, const char *name, void *buf, size_t size)
{
    (void)o;
    if (S_ISLNK(node->type))
        return -ENODATA;
    ssize_t n = getxattr(dir_proc_path(node->fd).text, name, buf, size);
    return n < 0 ? -errno : n;
}

static ssize_t dir_listxattr(Origin *o, OriginNode *node, char *buf, size_t size)
{
    (void)o;
    if (S_ISLNK(node->type))
        return 0;
    ssize_t n = listxattr(dir_proc_path(node->fd).text, buf, size);
    return n < 0 ? -errno : n;
}

static int dir_setxattr(Origin *o, OriginNode *node, const char *name, const void *value,
                        size_t size, int flags)
{
    (void)o;
    if (S_ISLNK(node->type))
        return -EPERM;
    return setxattr(dir_proc_path(node->fd).text, name, value, size, flags) < 0 ? -errno : 0;
}

static int dir_removexattr(Origin *o, OriginNode *node, const char *name)
{
    (void)o;
    if (S_ISLNK(node->type))
        return -EPERM;
    return removexattr(dir_proc_path(node->fd).text, name) < 0 ? -errno : 0;
}

static int dir_statfs(Origin *o, OriginNode *node, struct statvfs *st)
{
    (void)o;
    return fstatvfs(node->fd, st) < 0 ? -errno : 0;
}

static void dir_destroy(Origin *o)
{
    DirOrigin *origin = (DirOrigin *)o;
    dir_put(o, origin->root);
    dir_nodes_free(origin->nodes);
    pthread_cond_destroy(&origin->returned);
    pthread_mutex_destroy(&origin->lock);
    g_free(origin);
}

static const OriginOps dir_ops = {
    .type = "dir",
    .destroy = dir_destroy,
    .root = dir_root,
    .lookup = dir_lookup,
    .resolve = dir_resolve,
    .get = dir_get,
    .put = dir_put,
    .getattr = dir_getattr,
    .setattr = dir_setattr,
    .open = dir_open,
    .create = dir_create,
    .read = dir_read,
    .write = dir_write,
    .fsync = dir_fsync,
    .sync_node = dir_sync_node,
    .fallocate = dir_fallocate,
    .close = dir_close,
    .lease = dir_lease,
    .locks_open = dir_locks_open,
    .lock_set = dir_lock_set,
    .lock_get = dir_lock_get,
    .locks_close = dir_locks_close,
    .mkdir = dir_mkdir,
    .mknod = dir_mknod,
    .symlink = dir_symlink,
    .link = dir_link,
    .unlink = dir_unlink,
    .rmdir = dir_rmdir,
    .rename = dir_rename,
    .readlink = dir_readlink,
    .opendir = dir_opendir,
    .readdir = dir_readdir,
    .closedir = dir_closedir,
    .getxattr = dir_getxattr,
    .listxattr = dir_listxattr,
    .setxattr = dir_setxattr,
    .removexattr = dir_removexattr,
    .statfs = dir_statfs,
};

/* Inode numbers belong to a file system: its id, or the device's when it has none. */
static void fill_space(DirOrigin *origin, const struct statfs *fs)
{
    uint64_t id;
    memcpy(&id, &fs->f_fsid, sizeof(id));
    if (id == 0)
        id = origin->dev;
    uint64_t type = GUINT64_TO_LE((uint64_t)fs->f_type);
    id = GUINT64_TO_LE(id);
    memcpy(origin->base.space, "dir", 4);
    memcpy(origin->base.space + 8, &type, sizeof(type));
    memcpy(origin->base.space + 16, &id, sizeof(id));
}

Origin *origin_dir_open(const char *path, GError **error)
{
    struct statfs fs;
    OriginAttr attr;
    hearth_autofd int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstatfs(fd, &fs) < 0) {
        int code = errno;
        g_set_error(error, G_IO_ERROR, g_io_error_from_errno(code),
                    "rootPath %s: %s; it must be an existing directory of this machine", path,
                    g_strerror(code));
        return NULL;
    }
    DirOrigin *origin = g_new0(DirOrigin, 1);
    origin->base.ops = &dir_ops;
    pthread_mutex_init(&origin->lock, NULL);
    cond_init_monotonic(&origin->returned);
    origin->nodes = dir_nodes_new();
    int result = dir_node_from_fd(origin, hearth_steal_fd(&fd), &origin->root, &attr);
    if (result < 0) {
        g_set_error(error, G_IO_ERROR, g_io_error_from_errno(-result),
                    "rootPath %s: cannot read its attributes: %s", path, g_strerror(-result));
        dir_destroy(&origin->base);
        return NULL;
    }
    origin->dev = origin->root->dev;
    fill_space(origin, &fs);
    return &origin->base;
}
