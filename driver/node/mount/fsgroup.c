/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/mount/fsgroup.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/autofd.h"
#include "common/error.h"

/* kubelet's, pkg/volume/volume_linux.go. */
#define FILE_BITS 0660
#define DIR_BITS (FILE_BITS | 0110 | S_ISGID)

/*
 * The volume's owner chooses how deep its tree is, so a walk holds little for each level: only the
 * deepest few directories stay open. One above is opened again by "..", and read on where it was.
 */
#define OPEN_LEVELS 8
#define MAX_LEVELS 32768

typedef struct Level {
    ino_t ino;
    long at;  /* before the entry that the walk is at */
    DIR *dir; /* NULL: closed meanwhile */
} Level;

struct FsgroupWalk {
    gid_t group;
    dev_t dev;
    GArray *levels; /* of Level */
    ino_t skip_to;  /* the next entries were seen, up to this one; 0: none was */
    /* Fields of the current call: */
    const char *path;
    gint64 deadline_us;
    guint64 entries;
};
typedef FsgroupWalk Walk;

static mode_t bits_of(const struct stat *st)
{
    return S_ISDIR(st->st_mode) ? DIR_BITS : FILE_BITS;
}

static gboolean fits(const struct stat *st, gid_t group)
{
    if (st->st_gid != group)
        return FALSE;
    return S_ISLNK(st->st_mode) || (st->st_mode & bits_of(st)) == bits_of(st);
}

/* By an open O_PATH descriptor, so that no other file can take its place. */
static int change(int fd, const struct stat *st, gid_t group)
{
    char name[64];
    if (fits(st, group))
        return 0;
    if (st->st_gid != group && fchownat(fd, "", (uid_t)-1, group, AT_EMPTY_PATH) != 0)
        return errno;
    if (S_ISLNK(st->st_mode))
        return 0;
    /* After the owner, which takes the set-ID bits away. */
    snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    return chmod(name, (st->st_mode & 07777) | bits_of(st)) == 0 ? 0 : errno;
}

static gboolean fail_root(GError **error, const char *path, int rc)
{
    return hearth_fail(error, HEARTH_ERROR_INTERNAL, "giving %s to the pod's fsGroup: %s", path,
                       g_strerror(rc));
}

/* By its inode: a path could be of any length, and its bytes of any kind. */
static gboolean fail(const Walk *w, ino_t ino, int rc, GError **error)
{
    return hearth_fail(error, HEARTH_ERROR_INTERNAL,
                       "giving inode %" G_GUINT64_FORMAT
                       " (%u levels below %s) to the pod's fsGroup: %s",
                       (guint64)ino, w->levels->len, w->path, g_strerror(rc));
}

static gboolean changed_meanwhile(const Walk *w, GError **error)
{
    return hearth_fail(
        error, HEARTH_ERROR_UNAVAILABLE,
        "directories of %s were moved while its files were given to the pod's fsGroup; "
        "try again",
        w->path);
}

static Level *level_at(const Walk *w, guint i)
{
    return &g_array_index(w->levels, Level, i);
}

static void level_close(void *data)
{
    Level *level = data;
    if (level->dir)
        closedir(level->dir);
    level->dir = NULL;
}

/* errno when NULL. */
static DIR *open_dir(int fd, const char *name)
{
    hearth_autofd int opened = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = opened < 0 ? NULL : fdopendir(opened);
    if (dir)
        hearth_steal_fd(&opened);
    return dir;
}

static gboolean enter(Walk *w, int fd, ino_t ino, GError **error)
{
    const guint depth = w->levels->len;
    if (depth == MAX_LEVELS)
        return hearth_fail(
            error, HEARTH_ERROR_FAILED_PRECONDITION,
            "%s has directories nested more than %d levels deep, which are not given to a "
            "pod's fsGroup; remove them in a pod without fsGroup",
            w->path, MAX_LEVELS);
    Level level = {.ino = ino, .dir = open_dir(fd, ".")};
    if (!level.dir)
        return fail(w, ino, errno, error);
    if (depth >= OPEN_LEVELS)
        level_close(level_at(w, depth - OPEN_LEVELS));
    g_array_append_val(w->levels, level);
    return TRUE;
}

static gboolean leave(Walk *w, GError **error)
{
    const Level *child = level_at(w, w->levels->len - 1);
    Level *parent = w->levels->len > 1 ? level_at(w, w->levels->len - 2) : NULL;
    if (parent && !parent->dir) {
        struct stat st;
        parent->dir = open_dir(dirfd(child->dir), "..");
        if (!parent->dir || fstat(dirfd(parent->dir), &st) != 0)
            return fail(w, parent->ino, errno, error);
        if (st.st_dev != w->dev || st.st_ino != parent->ino)
            return changed_meanwhile(w, error);
        seekdir(parent->dir, parent->at);
        w->skip_to = child->ino;
    }
    g_array_set_size(w->levels, w->levels->len - 1);
    return TRUE;
}

static gboolean visit(Walk *w, const struct dirent *entry, GError **error)
{
    struct stat st;
    const Level *level = level_at(w, w->levels->len - 1);
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
        return TRUE;
    hearth_autofd int fd =
        openat(dirfd(level->dir), entry->d_name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0)
        return fail(w, entry->d_ino, errno, error);
    if (st.st_dev != w->dev)
        return TRUE;
    if (w->skip_to) {
        if (st.st_ino == w->skip_to)
            w->skip_to = 0;
        return TRUE;
    }
    int rc = change(fd, &st, w->group);
    if (rc != 0)
        return fail(w, st.st_ino, rc, error);
    return !S_ISDIR(st.st_mode) || enter(w, fd, st.st_ino, error);
}

/* Closes all open files, and notes where to continue. */
static gboolean stop(Walk *w, GError **error)
{
    Level *last = level_at(w, w->levels->len - 1);
    if (!w->skip_to)
        last->at = telldir(last->dir);
    for (guint i = 0; i < w->levels->len; i++)
        level_close(level_at(w, i));
    return hearth_fail(
        error, HEARTH_ERROR_DEADLINE_EXCEEDED,
        "giving all files of %s to the pod's fsGroup takes longer than the call; the "
        "next goes on",
        w->path);
}

static gboolean step(Walk *w, GError **error)
{
    if (w->entries == 0 || g_get_monotonic_time() > w->deadline_us)
        return stop(w, error);
    w->entries--;
    Level *level = level_at(w, w->levels->len - 1);
    level->at = telldir(level->dir);
    errno = 0;
    const struct dirent *entry = readdir(level->dir);
    if (entry)
        return visit(w, entry, error);
    if (errno != 0)
        return fail(w, level->ino, errno, error);
    return w->skip_to ? changed_meanwhile(w, error) : leave(w, error);
}

/* The directory below an open one in which the walk was, or -1: something was moved meanwhile. */
static int open_below(const Level *level, ino_t ino)
{
    struct stat st;
    seekdir(level->dir, level->at);
    const struct dirent *entry = readdir(level->dir);
    hearth_autofd int fd =
        entry ? openat(dirfd(level->dir), entry->d_name, O_PATH | O_NOFOLLOW | O_CLOEXEC) : -1;
    return fd >= 0 && fstat(fd, &st) == 0 && st.st_ino == ino ? hearth_steal_fd(&fd) : -1;
}

/* Goes down to where an earlier call has stopped, by the inodes and places that were noted. */
static gboolean go_back(Walk *w, int root)
{
    hearth_autofd int fd = openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (guint i = 0; i < w->levels->len && fd >= 0; i++) {
        Level *level = level_at(w, i);
        level->dir = open_dir(fd, ".");
        close(hearth_steal_fd(&fd));
        if (!level->dir)
            return FALSE;
        if (i >= OPEN_LEVELS)
            level_close(level_at(w, i - OPEN_LEVELS));
        if (i + 1 == w->levels->len) {
            seekdir(level->dir, level->at);
            return TRUE;
        }
        fd = open_below(level, level_at(w, i + 1)->ino);
    }
    return FALSE;
}

static gboolean walk(Walk *w, int fd, const struct stat *st, GError **error)
{
    gboolean good = w->levels->len > 0 && go_back(w, fd);
    if (!good) {
        g_array_set_size(w->levels, 0);
        w->skip_to = 0;
        good = enter(w, fd, st->st_ino, error);
    }
    while (good && w->levels->len > 0)
        good = step(w, error);
    return good;
}

static gboolean look(const char *path, struct stat *st, GError **error)
{
    return lstat(path, st) == 0 || fail_root(error, path, errno);
}

gboolean fsgroup_fits(const char *path, gid_t group, gboolean *it_fits, GError **error)
{
    struct stat st;
    if (!look(path, &st, error))
        return FALSE;
    *it_fits = fits(&st, group);
    return TRUE;
}

void fsgroup_walk_free(FsgroupWalk *w)
{
    if (!w)
        return;
    g_array_unref(w->levels);
    g_free(w);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(FsgroupWalk, fsgroup_walk_free)

/* The walk that was left, if it is of this group and file system; else a new one. */
static FsgroupWalk *take_up(FsgroupWalk **left, gid_t group, dev_t dev)
{
    g_autoptr(FsgroupWalk) w = g_steal_pointer(left);
    if (w && w->group == group && w->dev == dev)
        return g_steal_pointer(&w);
    FsgroupWalk *fresh = g_new0(FsgroupWalk, 1);
    fresh->group = group;
    fresh->dev = dev;
    fresh->levels = g_array_new(FALSE, FALSE, sizeof(Level));
    g_array_set_clear_func(fresh->levels, level_close);
    return fresh;
}

gboolean fsgroup_apply(const char *path, gid_t group, gint64 deadline_us, guint64 entries,
                       FsgroupWalk **left, GError **error)
{
    struct stat st;
    g_autoptr(GError) cause = NULL;
    if (!look(path, &st, error))
        return FALSE;
    if (fits(&st, group))
        return TRUE;
    hearth_autofd int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0)
        return fail_root(error, path, errno);
    g_autoptr(FsgroupWalk) w = take_up(left, group, st.st_dev);
    w->path = path;
    w->deadline_us = deadline_us;
    w->entries = entries;
    if (S_ISDIR(st.st_mode) && !walk(w, fd, &st, &cause)) {
        if (g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_DEADLINE_EXCEEDED))
            *left = g_steal_pointer(&w);
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    int rc = change(fd, &st, group);
    return rc == 0 || fail_root(error, path, rc);
}
