/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NodeBlock over the kernel: mounts of file systems, device nodes as files, notes; the table.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "common/autofd.h"
#include "driver/node/image/block_internal.h"
#include "driver/node/mount/mount.h"

#define MAX_STUCK 32
#define NOTE_PREFIX "user.hearth."
#define FILE_TAG "trusted.hearth.tag"
#define FILE_TAG_MAX 128

static void set_errno(GError **error, int code, int rc, const char *what, const char *path)
{
    hearth_fail(error, code, "%s %s: %s", what, path, g_strerror(rc));
}

/* ---- mounting ---- */

typedef struct MountJob {
    char device[LOOP_PATH_MAX];
    char *type;
    char **options;
    uint64_t attrs;
    int fd, rc;
    char *said;
} MountJob;

static void mount_job_free(void *data)
{
    MountJob *job = data;
    if (job->fd >= 0)
        close(job->fd);
    g_free(job->type);
    g_strfreev(job->options);
    g_free(job->said);
    g_free(job);
}

static int set_option(int context, const char *option)
{
    const char *value = strchr(option, '=');
    if (!value)
        return fsconfig(context, FSCONFIG_SET_FLAG, option, NULL, 0);
    g_autofree char *name = g_strndup(option, (gsize)(value - option));
    return fsconfig(context, FSCONFIG_SET_STRING, name, value + 1, 0);
}

static void mount_run(void *data)
{
    MountJob *job = data;
    hearth_autofd int context = fsopen(job->type, FSOPEN_CLOEXEC);
    int rc = context < 0 ? -1 : 0;
    if (rc == 0)
        rc = fsconfig(context, FSCONFIG_SET_STRING, "source", job->device, 0);
    for (char **option = job->options; rc == 0 && *option; option++)
        rc = set_option(context, *option);
    if (rc == 0)
        rc = fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
    if (rc == 0)
        job->fd = fsmount(context, FSMOUNT_CLOEXEC, (unsigned)job->attrs);
    job->rc = job->fd < 0 ? errno : 0;
    if (context >= 0 && job->rc != 0)
        job->said = mount_context_message(context);
}

static HearthError mount_code(int rc)
{
    switch (rc) {
    case ENODEV:
    case EUCLEAN:
        return HEARTH_ERROR_FAILED_PRECONDITION;
    case EINVAL:
        return HEARTH_ERROR_INVALID_ARGUMENT;
    default:
        return HEARTH_ERROR_INTERNAL;
    }
}

static void set_mount_error(GError **error, const MountJob *job)
{
    const char *colon = job->said ? ": " : "";
    const char *said = job->said ? job->said : "";
    const char *hint = job->rc == ENODEV ? " (the kernel has no such file system)" : "";
    hearth_fail(error, mount_code(job->rc), "mounting %s as %s: %s%s%s%s", job->device, job->type,
                g_strerror(job->rc), colon, said, hint);
}

static int block_mount(NodeBlock *b, const BlockMount *mount, gint64 timeout_ms, GError **error)
{
    KernelBlock *k = (KernelBlock *)b;
    MountJob *job = g_new0(MountJob, 1);
    loop_path(mount->number, job->device);
    job->type = g_strdup(mount->type);
    job->options = g_strdupv((char **)mount->options);
    job->attrs = mount->attrs;
    job->fd = -1;
    g_autofree char *what = g_strdup_printf("mounting %s", job->device);
    if (!bounded_run(k->bounded, what, what, &(BoundedJob){mount_run, job, mount_job_free},
                     timeout_ms, error))
        return -1;
    int fd = hearth_steal_fd(&job->fd);
    if (fd < 0)
        set_mount_error(error, job);
    mount_job_free(job);
    return fd;
}

/* ---- device nodes as files ---- */

static int open_point(const char *path)
{
    return open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}

/* 0: an empty file, and no mount; else an errno that says what it is. */
static int check_point(int point)
{
    struct statx stx;
    if (statx(point, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_SIZE, &stx) != 0)
        return errno;
    if (stx.stx_attributes & STATX_ATTR_MOUNT_ROOT)
        return EBUSY;
    return S_ISREG(stx.stx_mode) && stx.stx_size == 0 ? 0 : EEXIST;
}

static gboolean refuse_point(int rc, const char *path, GError **error)
{
    if (rc == EEXIST)
        hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                    "%s exists and is no empty file; remove it", path);
    else if (rc == EBUSY)
        hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                    "%s: something was mounted there meanwhile; try again", path);
    else
        set_errno(error, HEARTH_ERROR_INTERNAL, rc, "the file", path);
    return FALSE;
}

/* A descriptor opened with O_PATH has no attributes but by its name. */
static void fd_name(int fd, char name[64])
{
    g_snprintf(name, 64, "/proc/self/fd/%d", fd);
}

static gboolean block_make_file(NodeBlock *b, const char *path, const char *tag, gboolean *made,
                                GError **error)
{
    char name[64];
    (void)b;
    hearth_autofd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    *made = fd >= 0;
    if (!*made && errno != EEXIST)
        return refuse_point(errno, path, error);
    hearth_autofd int point = open_point(path);
    int rc = point < 0 ? errno : check_point(point);
    if (rc != 0)
        return refuse_point(rc, path, error);
    fd_name(point, name);
    if (setxattr(name, FILE_TAG, tag, strlen(tag), 0) != 0)
        g_info("%s: %s: %s", path, FILE_TAG, g_strerror(errno));
    return TRUE;
}

/* A copy of the directory's mount without the mounts in it shows the files below them. */
static char *block_file_tag(NodeBlock *b, const char *path)
{
    char tag[FILE_TAG_MAX + 1], name[64];
    g_autofree char *parent = g_path_get_dirname(path), *last = g_path_get_basename(path);
    (void)b;
    hearth_autofd int tree = open_tree(AT_FDCWD, parent, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    hearth_autofd int fd = tree < 0 ? -1 : openat(tree, last, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    fd_name(fd, name);
    ssize_t n = getxattr(name, FILE_TAG, tag, FILE_TAG_MAX);
    return n > 0 ? g_strndup(tag, (gsize)n) : NULL;
}

static gboolean block_remove_file(NodeBlock *b, const char *path, GError **error)
{
    (void)b;
    struct stat st;
    hearth_autofd int point = open_point(path);
    if (point < 0)
        return errno == ENOENT || refuse_point(errno, path, error);
    if (fstat(point, &st) == 0 && S_ISDIR(st.st_mode))
        return TRUE;
    int rc = check_point(point);
    if (rc != 0)
        return refuse_point(rc, path, error);
    return unlink(path) == 0 || errno == ENOENT || refuse_point(errno, path, error);
}

static gboolean block_bind(NodeBlock *b, int number, const char *path, GError **error)
{
    (void)b;
    char device[LOOP_PATH_MAX];
    loop_path(number, device);
    hearth_autofd int tree =
        open_tree(AT_FDCWD, device, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
                              .attr_clr = MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY};
    if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) != 0) {
        set_errno(error, HEARTH_ERROR_INTERNAL, errno, "binding", device);
        return FALSE;
    }
    hearth_autofd int point = open_point(path);
    int rc = point < 0 ? errno : check_point(point);
    if (rc != 0)
        return refuse_point(rc, path, error);
    if (move_mount(tree, "", point, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == 0)
        return TRUE;
    set_errno(error, HEARTH_ERROR_INTERNAL, errno, "mounting on", path);
    return FALSE;
}

static gboolean block_make_root(NodeBlock *b, const char *path, GError **error)
{
    (void)b;
    if (g_mkdir_with_parents(path, 0700) == 0)
        return TRUE;
    set_errno(error, HEARTH_ERROR_INTERNAL, errno, "creating (see --device-dir)", path);
    return FALSE;
}

/* ---- notes ---- */

typedef struct NoteJob {
    char *file, *name;
    enum { NOTE_HAS, NOTE_SET, NOTE_REMOVE } kind;
    int rc;
} NoteJob;

static void note_free(void *data)
{
    NoteJob *job = data;
    g_free(job->file);
    g_free(job->name);
    g_free(job);
}

static void note_run(void *data)
{
    NoteJob *job = data;
    ssize_t r = -1;
    switch (job->kind) {
    case NOTE_HAS:
        r = getxattr(job->file, job->name, NULL, 0);
        break;
    case NOTE_SET:
        r = setxattr(job->file, job->name, "1", 1, 0);
        break;
    case NOTE_REMOVE:
        r = removexattr(job->file, job->name);
        break;
    }
    job->rc = r < 0 ? errno : 0;
}

/* 0, or ENODATA: there is no such note; -1 with the error. */
static int do_note(NodeBlock *b, const char *file, const char *name, int kind, gint64 timeout_ms,
                   GError **error)
{
    KernelBlock *k = (KernelBlock *)b;
    NoteJob *job = g_new0(NoteJob, 1);
    job->file = g_strdup(file);
    job->name = g_strconcat(NOTE_PREFIX, name, NULL);
    job->kind = kind;
    g_autofree char *what = g_strdup_printf("the image's metadata through %s", file);
    if (!bounded_run(k->bounded, what, what, &(BoundedJob){note_run, job, note_free}, timeout_ms,
                     error))
        return -1;
    const int rc = job->rc;
    note_free(job);
    if (rc == 0 || rc == ENODATA)
        return rc;
    set_errno(error, HEARTH_ERROR_UNAVAILABLE, rc, "the image's metadata through", file);
    return -1;
}

static gboolean block_has_note(NodeBlock *b, const char *file, const char *name, gint64 timeout_ms,
                               gboolean *has, GError **error)
{
    const int rc = do_note(b, file, name, NOTE_HAS, timeout_ms, error);
    *has = rc == 0;
    return rc >= 0;
}

static gboolean block_set_note(NodeBlock *b, const char *file, const char *name, gboolean present,
                               gint64 timeout_ms, GError **error)
{
    return do_note(b, file, name, present ? NOTE_SET : NOTE_REMOVE, timeout_ms, error) >= 0;
}

static void block_free(NodeBlock *b)
{
    KernelBlock *k = (KernelBlock *)b;
    bounded_free(k->bounded);
    g_free(k);
}

static const NodeBlockOps kernel_ops = {
    .free = block_free,
    .loop_find = loop_find,
    .loop_attach = loop_attach,
    .loop_hold = loop_hold,
    .loop_detach = loop_detach,
    .loop_grow = loop_grow,
    .loop_set_read_only = loop_set_read_only,
    .loop_is_free = loop_is_free,
    .look = look_at_device,
    .make = mkfs_make,
    .check = mkfs_check,
    .mount = block_mount,
    .grow = mkfs_grow,
    .can_grow_mounted = mkfs_can_grow_mounted,
    .make_file = block_make_file,
    .file_tag = block_file_tag,
    .remove_file = block_remove_file,
    .bind = block_bind,
    .make_root = block_make_root,
    .has_note = block_has_note,
    .set_note = block_set_note,
};

NodeBlock *node_block_new(void)
{
    KernelBlock *k = g_new0(KernelBlock, 1);
    k->base.ops = &kernel_ops;
    k->bounded = bounded_new(MAX_STUCK);
    bounded_set_of_mounts(k->bounded);
    return &k->base;
}
