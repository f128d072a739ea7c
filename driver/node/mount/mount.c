/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NodeMounter over the kernel. What could block on a dead or hung file system runs in bounded
 * threads. Mount points are reached through their parent directory with O_NOFOLLOW, never by a path
 * whose last component could be a symlink planted by a pod.
 */
#include "driver/node/mount/mount.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "common/autofd.h"
#include "common/bounded.h"
#include "driver/node/mount/fuse_abort.h"
#include "driver/node/mount/fuse_mount.h"
#include "driver/node/mount/mount_lookup.h"
#include "driver/node/mount/selinux.h"

/* Threads left behind in hung mounts, all volumes together. */
#define MAX_STUCK 32

typedef struct KernelMounter {
    NodeMounter base;
    Bounded *bounded;
} KernelMounter;

static void set_errno(GError **error, int code, int rc, const char *format, ...)
    G_GNUC_PRINTF(4, 5);
static void set_errno(GError **error, int code, int rc, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *what = g_strdup_vprintf(format, args);
    va_end(args);
    hearth_fail(error, code, "%s: %s", what, g_strerror(rc));
}

static GPtrArray *kernel_list(NodeMounter *m, GError **error)
{
    (void)m;
    g_autofree char *text = NULL;
    g_autoptr(GError) cause = NULL;
    if (!g_file_get_contents("/proc/self/mountinfo", &text, NULL, &cause)) {
        hearth_fail(error, HEARTH_ERROR_INTERNAL, "reading the mount table: %s", cause->message);
        return NULL;
    }
    return mount_parse(text);
}

static gboolean kernel_find(NodeMounter *m, const char *path, MountEntry **entry, GError **error)
{
    if (mount_lookup(path, entry))
        return TRUE;
    g_autoptr(GPtrArray) table = kernel_list(m, error);
    guint at;
    if (!table)
        return FALSE;
    if (g_ptr_array_find(table, mount_find(table, path), &at))
        *entry = g_ptr_array_steal_index(table, at);
    return TRUE;
}

static gboolean kernel_abort_fuse(NodeMounter *m, dev_t dev, GError **error)
{
    (void)m;
    return fuse_abort(dev, error);
}

static int kernel_mount_fuse(NodeMounter *m, const char *volume, const MountOptions *options,
                             int *fuse_fd, GError **error)
{
    (void)m;
    return mount_fuse_detached(volume, options, fuse_fd, error);
}

/* The device of an open mount, without asking the file system. */
static gboolean fd_dev(int fd, dev_t *dev)
{
    struct statx stx;
    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &stx) != 0)
        return FALSE;
    *dev = makedev(stx.stx_dev_major, stx.stx_dev_minor);
    return TRUE;
}

static int kernel_clone(NodeMounter *m, const char *path, dev_t dev, uint64_t attrs, GError **error)
{
    (void)m;
    hearth_autofd int fd =
        open_tree(AT_FDCWD, path,
                  OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_NO_AUTOMOUNT | AT_SYMLINK_NOFOLLOW);
    if (fd < 0) {
        set_errno(error, HEARTH_ERROR_INTERNAL, errno, "binding %s", path);
        return -1;
    }
    dev_t found;
    if (!fd_dev(fd, &found) || found != dev) {
        hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                    "%s: the mount was replaced meanwhile; try again", path);
        return -1;
    }
    struct mount_attr attr = {
        .attr_set = attrs,
        .attr_clr =
            MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC | MOUNT_ATTR__ATIME | MOUNT_ATTR_NODIRATIME,
    };
    if (mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) != 0) {
        set_errno(error, HEARTH_ERROR_INTERNAL, errno,
                  "mount options for a bind of %s (Linux 5.12 is needed)", path);
        return -1;
    }
    return hearth_steal_fd(&fd);
}

/* Opens `path`, or the root of a mount there, without a request to the file system. */
static int open_path(const char *path, int flags)
{
    return open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC | flags);
}

typedef struct ProbeJob {
    int fd;
    int rc;
} ProbeJob;

static void probe_run(void *data)
{
    ProbeJob *job = data;
    struct statx stx;
    if (statx(job->fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &stx) != 0)
        job->rc = errno;
    else if (stx.stx_nlink == 0)
        /* It was removed, and processes that have it open still see it. */
        job->rc = ENOENT;
    else
        job->rc = 0;
}

static void fd_job_free(void *data)
{
    /* Every job begins with its descriptor. */
    close(*(int *)data);
    g_free(data);
}

static gboolean kernel_probe(NodeMounter *m, int mount_fd, const char *path, gint64 timeout_ms,
                             GError **error)
{
    KernelMounter *k = (KernelMounter *)m;
    int fd = mount_fd >= 0 ? fcntl(mount_fd, F_DUPFD_CLOEXEC, 3) : open_path(path, 0);
    if (fd < 0) {
        set_errno(error, HEARTH_ERROR_INTERNAL, errno, "%s", path);
        return FALSE;
    }
    ProbeJob *job = g_new0(ProbeJob, 1);
    job->fd = fd;
    g_autofree char *what = g_strdup_printf("attributes of %s", path);
    if (!bounded_run(k->bounded, what, what, &(BoundedJob){probe_run, job, fd_job_free}, timeout_ms,
                     error))
        return FALSE;
    int rc = job->rc;
    fd_job_free(job);
    if (rc != 0)
        set_errno(error,
                  rc == ENOTCONN || rc == ECONNABORTED ? HEARTH_ERROR_FAILED_PRECONDITION
                                                       : HEARTH_ERROR_UNAVAILABLE,
                  rc, "%s does not answer", path);
    return rc == 0;
}

static HearthError open_code(int rc)
{
    switch (rc) {
    case ENOENT:
        return HEARTH_ERROR_NOT_FOUND;
    case ENOTDIR:
        return HEARTH_ERROR_FAILED_PRECONDITION;
    default:
        return HEARTH_ERROR_INTERNAL;
    }
}

/* A directory's descriptor, reached without following a symlink at the last component. */
static int open_mount_point(const char *path, GError **error)
{
    int fd = open_path(path, O_DIRECTORY);
    if (fd < 0)
        set_errno(error, open_code(errno), errno, "%s", path);
    return fd;
}

/* FALSE with the error when the open directory is the root of a mount. */
static gboolean check_no_mount(int point, const char *path, GError **error)
{
    struct statx stx;
    if (statx(point, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &stx) != 0) {
        set_errno(error, HEARTH_ERROR_INTERNAL, errno, "%s", path);
        return FALSE;
    }
    if (!(stx.stx_attributes & STATX_ATTR_MOUNT_ROOT))
        return TRUE;
    return hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                       "%s: something was mounted there meanwhile; try again", path);
}

static gboolean kernel_place(NodeMounter *m, int mount_fd, const char *path, GError **error)
{
    (void)m;
    hearth_autofd int point = open_mount_point(path, error);
    if (point < 0)
        return FALSE;
    if (!check_no_mount(point, path, error))
        return FALSE;
    if (move_mount(mount_fd, "", point, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) !=
        0) {
        set_errno(error, HEARTH_ERROR_INTERNAL, errno, "mounting on %s", path);
        return FALSE;
    }
    return TRUE;
}

typedef struct UnmountJob {
    char *path;
    int flags;
    int rc;
} UnmountJob;

static void unmount_run(void *data)
{
    UnmountJob *job = data;
    job->rc = umount2(job->path, job->flags) == 0 ? 0 : errno;
}

static void unmount_free(void *data)
{
    UnmountJob *job = data;
    g_free(job->path);
    g_free(job);
}

static gboolean kernel_unmount(NodeMounter *m, const char *path, gboolean lazy, gint64 timeout_ms,
                               GError **error)
{
    KernelMounter *k = (KernelMounter *)m;
    UnmountJob *job = g_new0(UnmountJob, 1);
    job->path = g_strdup(path);
    job->flags = UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0);
    g_autofree char *what = g_strdup_printf("unmounting %s", path);
    /* The last unmount writes dirty pages back, which a hung server never answers. */
    if (!bounded_run(k->bounded, what, what, &(BoundedJob){unmount_run, job, unmount_free},
                     timeout_ms, error))
        return FALSE;
    int rc = job->rc;
    unmount_free(job);
    if (rc == 0 || rc == EINVAL || rc == ENOENT) /* not mounted (any more) */
        return TRUE;
    if (rc == EBUSY)
        hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                    "%s is in use: a process has a file open or its working directory there, or a "
                    "call on it hangs "
                    "(fuser -vm %s shows which)",
                    path, path);
    else
        set_errno(error, HEARTH_ERROR_INTERNAL, rc, "unmounting %s", path);
    return FALSE;
}

static gboolean kernel_make_dir(NodeMounter *m, const char *path, gboolean *made, GError **error)
{
    (void)m;
    *made = mkdir(path, 0750) == 0;
    if (*made)
        return TRUE;
    if (errno != EEXIST) {
        set_errno(error, HEARTH_ERROR_INTERNAL, errno, "creating %s", path);
        return FALSE;
    }
    hearth_autofd int point = open_path(path, O_DIRECTORY);
    if (point < 0) {
        if (errno == ENOTDIR)
            hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                        "%s exists and is no directory; remove it", path);
        else
            set_errno(error, HEARTH_ERROR_INTERNAL, errno, "%s", path);
        return FALSE;
    }
    /* Reading a directory could hang if it is a mount. */
    if (!check_no_mount(point, path, error))
        return FALSE;
    int fd = openat(point, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        set_errno(error, HEARTH_ERROR_INTERNAL, errno, "%s", path);
        return FALSE;
    }
    DIR *dir = fdopendir(fd);
    const struct dirent *entry;
    while ((entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            break;
    if (entry)
        hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                    "%s is not empty (there is \"%s\"); a mount would hide that: move it away",
                    path, entry->d_name);
    gboolean empty = entry == NULL;
    closedir(dir);
    return empty;
}

static gboolean kernel_remove_dir(NodeMounter *m, const char *path, GError **error)
{
    (void)m;
    if (rmdir(path) == 0 || errno == ENOENT)
        return TRUE;
    set_errno(error,
              errno == ENOTDIR || errno == ENOTEMPTY || errno == EEXIST || errno == EBUSY
                  ? HEARTH_ERROR_FAILED_PRECONDITION
                  : HEARTH_ERROR_INTERNAL,
              errno, "removing the mount point %s", path);
    return FALSE;
}

typedef struct StatvfsJob {
    int fd;
    int rc;
    struct statvfs st;
} StatvfsJob;

static void statvfs_run(void *data)
{
    StatvfsJob *job = data;
    job->rc = fstatvfs(job->fd, &job->st) == 0 ? 0 : errno;
}

static gboolean kernel_statvfs(NodeMounter *m, const char *path, dev_t dev, gint64 timeout_ms,
                               struct statvfs *st, GError **error)
{
    KernelMounter *k = (KernelMounter *)m;
    hearth_autofd int fd = open_mount_point(path, error);
    if (fd < 0)
        return FALSE;
    dev_t found;
    if (!fd_dev(fd, &found) || found != dev)
        return hearth_fail(error, HEARTH_ERROR_NOT_FOUND, "%s: not mounted any more", path);
    StatvfsJob *job = g_new0(StatvfsJob, 1);
    job->fd = hearth_steal_fd(&fd);
    g_autofree char *what = g_strdup_printf("usage of %s", path);
    if (!bounded_run(k->bounded, what, what, &(BoundedJob){statvfs_run, job, fd_job_free},
                     timeout_ms, error))
        return FALSE;
    int rc = job->rc;
    *st = job->st;
    fd_job_free(job);
    if (rc != 0)
        set_errno(error, HEARTH_ERROR_UNAVAILABLE, rc, "usage of %s", path);
    return rc == 0;
}

static void kernel_free(NodeMounter *m)
{
    KernelMounter *k = (KernelMounter *)m;
    bounded_free(k->bounded);
    g_free(k);
}

static const NodeMounterOps kernel_ops = {
    .free = kernel_free,
    .list = kernel_list,
    .find = kernel_find,
    .mount_fuse = kernel_mount_fuse,
    .abort_fuse = kernel_abort_fuse,
    .clone = kernel_clone,
    .probe = kernel_probe,
    .place = kernel_place,
    .unmount = kernel_unmount,
    .make_dir = kernel_make_dir,
    .remove_dir = kernel_remove_dir,
    .statvfs = kernel_statvfs,
};

NodeMounter *node_mounter_new(void)
{
    KernelMounter *k = g_new0(KernelMounter, 1);
    k->base.ops = &kernel_ops;
    k->base.selinux = selinux_is_enabled();
    k->bounded = bounded_new(MAX_STUCK);
    bounded_set_of_mounts(k->bounded);
    return &k->base;
}
