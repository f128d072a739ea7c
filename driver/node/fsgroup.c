#include "driver/node/fsgroup.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cache/autofd.h"
#include "driver/error.h"

/* kubelet's, pkg/volume/volume_linux.go. */
#define FILE_BITS 0660
#define DIR_BITS (FILE_BITS | 0110 | S_ISGID)

/*
 * The volume's owner chooses how deep its tree is, so a walk holds little for each level: only the
 * deepest few directories stay open. One above is opened again by "..", and read on where it was.
 */
#define OPEN_LEVELS 8
#define MAX_LEVELS 8192

typedef struct Level {
    ino_t ino;
    long at;  /* before the entry that the walk is at */
    DIR *dir; /* NULL: closed meanwhile */
} Level;

typedef struct Walk {
    const char *path;
    gid_t group;
    dev_t dev;
    gint64 deadline_us;
    GArray *levels;
    ino_t skip_to; /* the next entries were seen, up to this one; 0: none was */
} Walk;

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

/* Of an open O_PATH descriptor, so that nobody can put another file in its place. */
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
    g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_INTERNAL, "giving %s to the pod's fsGroup: %s",
                path, g_strerror(rc));
    return FALSE;
}

/* By its inode: a path could be of any length, and its bytes of any kind. */
static gboolean fail(const Walk *w, ino_t ino, int rc, GError **error)
{
    g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_INTERNAL,
                "giving inode %" G_GUINT64_FORMAT " (%u levels below %s) to the pod's fsGroup: %s",
                (guint64)ino, w->levels->len, w->path, g_strerror(rc));
    return FALSE;
}

static gboolean changed_meanwhile(const Walk *w, GError **error)
{
    g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_UNAVAILABLE,
                "directories of %s were moved while its files were given to the pod's fsGroup; "
                "try again",
                w->path);
    return FALSE;
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
    if (depth == MAX_LEVELS) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION,
                    "%s has directories nested more than %d levels deep, which are not given to a "
                    "pod's fsGroup; remove them in a pod without fsGroup",
                    w->path, MAX_LEVELS);
        return FALSE;
    }
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

static gboolean step(Walk *w, GError **error)
{
    if (g_get_monotonic_time() > w->deadline_us) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_DEADLINE_EXCEEDED,
                    "giving all files of %s to the pod's fsGroup takes longer than the call; the "
                    "next goes on",
                    w->path);
        return FALSE;
    }
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

static gboolean walk(Walk *w, int fd, const struct stat *st, GError **error)
{
    g_autoptr(GArray) levels = g_array_new(FALSE, FALSE, sizeof(Level));
    g_array_set_clear_func(levels, level_close);
    w->levels = levels;
    gboolean good = enter(w, fd, st->st_ino, error);
    while (good && levels->len > 0)
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

gboolean fsgroup_apply(const char *path, gid_t group, gint64 deadline_us, GError **error)
{
    struct stat st;
    if (!look(path, &st, error))
        return FALSE;
    if (fits(&st, group))
        return TRUE;
    hearth_autofd int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0)
        return fail_root(error, path, errno);
    Walk w = {.path = path, .group = group, .dev = st.st_dev, .deadline_us = deadline_us};
    if (S_ISDIR(st.st_mode) && !walk(&w, fd, &st, error))
        return FALSE;
    int rc = change(fd, &st, group);
    return rc == 0 || fail_root(error, path, rc);
}
