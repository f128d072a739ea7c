/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directory of the store. Files under objects/ are complete; incomplete files have no name there.
 * The header is replaced by rename, so it is the old or the new one. It is marked open, and synced,
 * before the first object is linked: so after a power cut the state of an earlier close is not
 * taken for that of the last run.
 */
#include "cache/store/disk/layout.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include "common/autofd.h"
#include "cache/store/disk/descriptors.h"
#include "cache/store/disk/header.h"
#include "common/io_error.h"

/* --- which directories are accepted --- */

static gboolean check_filesystem(int fd, const char *path, GError **error)
{
    static const struct {
        unsigned long magic;
        const char *name;
    } refused[] = {
        {OVERLAYFS_SUPER_MAGIC, "overlayfs"},
        {NFS_SUPER_MAGIC, "NFS"},
        {0xff534d42, "CIFS"},
        {0xfe534d42, "SMB"},
        {0x65735546, "FUSE"},
        {0x00c36400, "CephFS"},
    };
    struct statfs st;
    if (fstatfs(fd, &st) < 0)
        return layout_fail(error, errno, path, "statfs");
    for (size_t i = 0; i < G_N_ELEMENTS(refused); i++)
        if (((unsigned long)st.f_type & 0xffffffffUL) == refused[i].magic) {
            return io_fail(
                error, G_IO_ERROR_NOT_SUPPORTED,
                "cache directory %s is on %s: name a directory of a local ext4 or XFS file "
                "system (in a container: mount one there)",
                path, refused[i].name);
        }
    return TRUE;
}

/* Without a header only an empty directory is accepted, because its partial/ is emptied. */
static gboolean check_empty(int fd, const char *path, GError **error)
{
    static const char *const known[] = {".", "..", "lost+found", FORMAT_LOCK_NAME,
                                        FORMAT_HEADER_NEW_NAME};
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    if (!dir) {
        int errsv = errno;
        if (copy >= 0)
            close(copy);
        return layout_fail(error, errsv, path, "reading it");
    }
    gboolean empty = TRUE;
    for (struct dirent *e; empty && (e = readdir(dir));) {
        gboolean expected = FALSE;
        for (size_t i = 0; i < G_N_ELEMENTS(known); i++)
            expected |= strcmp(e->d_name, known[i]) == 0;
        if (!expected) {
            empty = FALSE;
            g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                        "cache directory %s has no file " FORMAT_HEADER_NAME
                        " but is not empty (%s): empty it or name another",
                        path, e->d_name);
        }
    }
    closedir(dir);
    return empty;
}

static gboolean take_lock(int dir_fd, const char *path, int *lock_fd, GError **error)
{
    hearth_autofd int fd = openat(dir_fd, FORMAT_LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return layout_fail(error, errno, path, "creating " FORMAT_LOCK_NAME);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK)
            return layout_fail(error, errno, path, "locking " FORMAT_LOCK_NAME);
        return io_fail(
            error, G_IO_ERROR_BUSY,
            "cache directory %s is in use by another hearthd: stop it, or give each its own", path);
    }
    *lock_fd = hearth_steal_fd(&fd);
    return TRUE;
}

/* --- the run before --- */

int layout_mark(Layout *layout, uint32_t state, uint32_t crashes)
{
    return header_write(layout->dir_fd, layout->boot_id, state, crashes);
}

static void read_boot_id(char *out, size_t size)
{
    memset(out, 0, size);
    hearth_autofd int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);
    if (n < 0)
        n = 0;
    out[n] = '\0';
    g_strchomp(out);
}

/* An unknown boot equals no other. */
static LayoutTrust trust_of(const FormatHeader *h, const char *boot_id)
{
    if (h->state == FORMAT_STATE_CLEAN)
        return LAYOUT_CLEAN;
    if (h->state == FORMAT_STATE_OPEN && boot_id[0] && strcmp(h->boot_id, boot_id) == 0)
        return LAYOUT_SAME_BOOT;
    return LAYOUT_UNTRUSTED;
}

/* --- directories --- */

static int make_dir(int at, const char *name)
{
    if (mkdirat(at, name, 0700) < 0 && errno != EEXIST)
        return -errno;
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* ext4 puts the directories in this one far apart, and the inodes of files near their directory.
 * All in one place, each new file would pass by every inode that was freed in the last minute. */
static void spread_dirs(int fd)
{
    int flags;
    if (ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && !(flags & FS_TOPDIR_FL)) {
        flags |= FS_TOPDIR_FL;
        ioctl(fd, FS_IOC_SETFLAGS, &flags); /* other file systems have no such flag */
    }
}

static int empty_dir(int fd)
{
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    if (!dir) {
        int rc = -errno;
        if (copy >= 0)
            close(copy);
        return rc;
    }
    int rc = 0;
    for (struct dirent *e; (e = readdir(dir));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            unlinkat(fd, e->d_name, 0) < 0)
            rc = -errno;
    closedir(dir);
    return rc;
}

static int link_partial(const Layout *layout, const Partial *partial, const char *name)
{
    if (partial->name[0])
        return linkat(layout->partial_fd, partial->name, layout->objects_fd, name, 0) < 0 ? -errno
                                                                                          : 0;
    /* AT_EMPTY_PATH needs a capability, /proc a mount: either will do. */
    if (linkat(partial->fd, "", layout->objects_fd, name, AT_EMPTY_PATH) == 0)
        return 0;
    if (errno == EEXIST)
        return -errno;
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", partial->fd);
    return linkat(AT_FDCWD, path, layout->objects_fd, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

static gboolean tmpfile_works(const Layout *layout)
{
    static const char name[] = "probe";
    hearth_autofd int fd = openat(layout->partial_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0)
        return FALSE;
    Partial partial = {.fd = fd};
    unlinkat(layout->objects_fd, name, 0);
    if (link_partial(layout, &partial, name) < 0)
        return FALSE;
    return unlinkat(layout->objects_fd, name, 0) == 0;
}

static gboolean same_file(int fd, int at, const char *name)
{
    struct stat held, named;
    return fstat(fd, &held) == 0 && fstatat(at, name, &named, 0) == 0 &&
           held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

/* `held_lock` is -1, or the lock of the owner that opens its own directory again. */
static gboolean open_all(Layout *l, const char *path, const LayoutOptions *options, int held_lock,
                         LayoutTrust *trust, GError **error)
{
    if (g_mkdir_with_parents(path, 0700) < 0)
        return layout_fail(error, errno, path, "creating it");
    l->dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (l->dir_fd < 0)
        return layout_fail(error, errno, path, "opening it");
    if (!options->any_filesystem && !check_filesystem(l->dir_fd, path, error))
        return FALSE;

    FormatHeader h;
    gboolean found;
    if (!header_read(l->dir_fd, path, &h, &found, error))
        return FALSE;
    if (!found && held_lock < 0 && !check_empty(l->dir_fd, path, error))
        return FALSE;
    if (held_lock >= 0 && same_file(held_lock, l->dir_fd, FORMAT_LOCK_NAME))
        l->lock_fd = fcntl(held_lock, F_DUPFD_CLOEXEC, 0);
    else if (!take_lock(l->dir_fd, path, &l->lock_fd, error))
        return FALSE;
    /* Only now is it certain that no other process writes it. */
    if (!header_read(l->dir_fd, path, &h, &found, error))
        return FALSE;
    *trust = found ? trust_of(&h, l->boot_id) : LAYOUT_CLEAN;
    l->crashes = *trust == LAYOUT_CLEAN ? 0 : h.crashes;

    uint32_t state = *trust == LAYOUT_UNTRUSTED ? FORMAT_STATE_UNTRUSTED : FORMAT_STATE_OPEN;
    int rc = header_write(l->dir_fd, l->boot_id, state, l->crashes + 1);
    if (rc < 0)
        return layout_fail(error, -rc, path, "writing " FORMAT_HEADER_NAME);
    l->objects_fd = make_dir(l->dir_fd, FORMAT_OBJECTS_NAME);
    if (l->objects_fd < 0)
        return layout_fail(error, -l->objects_fd, path, "creating " FORMAT_OBJECTS_NAME);
    spread_dirs(l->objects_fd);
    l->partial_fd = make_dir(l->dir_fd, FORMAT_PARTIAL_NAME);
    if (l->partial_fd < 0)
        return layout_fail(error, -l->partial_fd, path, "creating " FORMAT_PARTIAL_NAME);
    for (int i = 0; i < 256; i++) {
        char name[3];
        snprintf(name, sizeof(name), "%02x", i);
        if (mkdirat(l->objects_fd, name, 0700) < 0 && errno != EEXIST)
            return layout_fail(error, errno, path, "creating a directory of " FORMAT_OBJECTS_NAME);
    }
    rc = empty_dir(l->partial_fd);
    if (rc < 0)
        return layout_fail(error, -rc, path, "emptying " FORMAT_PARTIAL_NAME);
    return TRUE;
}

static void close_all(Layout *l)
{
    int *fds[] = {&l->partial_fd, &l->objects_fd, &l->dir_fd, &l->lock_fd};
    for (size_t i = 0; i < G_N_ELEMENTS(fds); i++) {
        if (*fds[i] >= 0)
            close(*fds[i]);
        *fds[i] = -1;
    }
}

gboolean layout_open(Layout *layout, const char *path, const LayoutOptions *options,
                     LayoutTrust *trust, GError **error)
{
    *layout = (Layout){.dir_fd = -1, .objects_fd = -1, .partial_fd = -1, .lock_fd = -1};
    if (options->boot_id)
        g_strlcpy(layout->boot_id, options->boot_id, sizeof(layout->boot_id));
    else
        read_boot_id(layout->boot_id, sizeof(layout->boot_id));
    if (!open_all(layout, path, options, -1, trust, error)) {
        close_all(layout);
        return FALSE;
    }
    layout->path = g_strdup(path);
    layout->tmpfile = !options->named_partials && tmpfile_works(layout);
    return TRUE;
}

/* Puts the files of a fresh layout in place of those that the layout has open. */
static gboolean take_files(const Layout *layout, const Layout *fresh)
{
    const int from[] = {fresh->dir_fd, fresh->objects_fd, fresh->partial_fd, fresh->lock_fd};
    const int to[] = {layout->dir_fd, layout->objects_fd, layout->partial_fd, layout->lock_fd};
    for (size_t i = 0; i < G_N_ELEMENTS(to); i++) {
        if (dup3(from[i], to[i], O_CLOEXEC) < 0)
            return FALSE;
    }
    return TRUE;
}

gboolean layout_reopen(Layout *layout, const LayoutOptions *options, LayoutTrust *trust,
                       GError **error)
{
    Layout fresh = {.dir_fd = -1, .objects_fd = -1, .partial_fd = -1, .lock_fd = -1};
    memcpy(fresh.boot_id, layout->boot_id, sizeof(fresh.boot_id));
    gboolean ok = open_all(&fresh, layout->path, options, layout->lock_fd, trust, error);
    if (ok && !take_files(layout, &fresh))
        ok = layout_fail(error, errno, layout->path, "taking it over again");
    close_all(&fresh);
    return ok;
}

gboolean layout_present(const Layout *layout)
{
    return same_file(layout->dir_fd, AT_FDCWD, layout->path) &&
           same_file(layout->objects_fd, layout->dir_fd, FORMAT_OBJECTS_NAME) &&
           same_file(layout->partial_fd, layout->dir_fd, FORMAT_PARTIAL_NAME) &&
           same_file(layout->lock_fd, layout->dir_fd, FORMAT_LOCK_NAME);
}

void layout_close(Layout *layout)
{
    close_all(layout);
    g_clear_pointer(&layout->path, g_free);
}

/* --- objects --- */

void layout_name(const ObjectId *id, char name[LAYOUT_NAME_BYTES])
{
    object_id_hex(id, name + 3);
    name[0] = name[3];
    name[1] = name[4];
    name[2] = '/';
}

int layout_open_object(const Layout *layout, const ObjectId *id)
{
    char name[LAYOUT_NAME_BYTES];
    layout_name(id, name);
    int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    int fd = openat(layout->objects_fd, name, flags | O_NOATIME);
    if (fd < 0 && errno == EPERM) /* O_NOATIME is the owner's */
        fd = openat(layout->objects_fd, name, flags);
    return descriptors_admit(fd);
}

int layout_unlink_object(const Layout *layout, const ObjectId *id)
{
    char name[LAYOUT_NAME_BYTES];
    layout_name(id, name);
    return unlinkat(layout->objects_fd, name, 0) < 0 ? -errno : 0;
}

/* An unnamed file; in the directory where it will be named, if that is there (spread_dirs). */
static int create_unnamed(const Layout *layout, const ObjectId *id)
{
    char name[LAYOUT_NAME_BYTES];
    int fd = -1;
    if (id) {
        layout_name(id, name);
        name[2] = '\0';
        fd = openat(layout->objects_fd, name, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    }
    if (fd < 0 && (!id || errno == ENOENT))
        fd = openat(layout->partial_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    return descriptors_admit(fd);
}

int layout_partial_create(Layout *layout, const ObjectId *id, Partial *partial)
{
    partial->name[0] = '\0';
    if (layout->tmpfile) {
        partial->fd = create_unnamed(layout, id);
        return MIN(partial->fd, 0);
    }
    snprintf(partial->name, sizeof(partial->name), "%lx",
             atomic_fetch_add(&layout->next_partial, 1));
    partial->fd = descriptors_admit(
        openat(layout->partial_fd, partial->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (partial->fd >= 0)
        return 0;
    if (partial->fd == -EMFILE)
        layout_partial_forget(layout, partial);
    partial->name[0] = '\0';
    return partial->fd;
}

int layout_partial_allocate(const Partial *partial, uint64_t off, uint64_t bytes)
{
    int rc;
    do
        rc = fallocate(partial->fd, 0, (off_t)off, (off_t)bytes);
    while (rc < 0 && errno == EINTR);
    return rc == 0 || errno == EOPNOTSUPP || errno == ENOSYS ? 0 : -errno;
}

int layout_partial_direct(const Partial *partial, uint64_t size, int *direct)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", partial->fd);
    *direct = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
    return *direct >= 0 && size ? layout_partial_allocate(partial, 0, size) : 0;
}

int layout_partial_link(Layout *layout, Partial *partial, const ObjectId *id)
{
    char name[LAYOUT_NAME_BYTES];
    layout_name(id, name);
    int rc = link_partial(layout, partial, name);
    if (rc == -ENOENT) { /* the directory of these two digits was removed */
        char dir[3] = {name[0], name[1], '\0'};
        if (mkdirat(layout->objects_fd, dir, 0700) == 0 || errno == EEXIST)
            rc = link_partial(layout, partial, name);
    }
    if (rc == 0)
        layout_partial_forget(layout, partial);
    return rc;
}

void layout_partial_forget(Layout *layout, Partial *partial)
{
    if (partial->name[0])
        unlinkat(layout->partial_fd, partial->name, 0);
    partial->name[0] = '\0';
}
