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

typedef struct Walk {
    gid_t group;
    dev_t dev;
    gint64 deadline_us;
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

static gboolean fail(GError **error, const char *path, int rc)
{
    g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_INTERNAL, "giving %s to the pod's fsGroup: %s",
                path, g_strerror(rc));
    return FALSE;
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

static gboolean walk_entry(Walk *w, int dir, const char *name, const char *path, GError **error);

static gboolean walk_dir(Walk *w, int fd, const char *path, GError **error)
{
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    if (!dir) {
        int rc = errno;
        if (copy >= 0)
            close(copy);
        return fail(error, path, rc);
    }
    gboolean good = TRUE;
    const struct dirent *entry;
    while (good && (entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        g_autofree char *below = g_strconcat(path, "/", entry->d_name, NULL);
        good = walk_entry(w, fd, entry->d_name, below, error);
    }
    closedir(dir);
    return good;
}

static gboolean walk_entry(Walk *w, int dir, const char *name, const char *path, GError **error)
{
    struct stat st;
    if (g_get_monotonic_time() > w->deadline_us) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_DEADLINE_EXCEEDED,
                    "giving all files to the pod's fsGroup takes longer than the call; it goes on "
                    "from %s with the next",
                    path);
        return FALSE;
    }
    hearth_autofd int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0)
        return fail(error, path, errno);
    if (st.st_dev != w->dev)
        return TRUE;
    if (S_ISDIR(st.st_mode) && !walk_dir(w, fd, path, error))
        return FALSE;
    int rc = change(fd, &st, w->group);
    return rc == 0 || fail(error, path, rc);
}

static gboolean look(const char *path, struct stat *st, GError **error)
{
    return lstat(path, st) == 0 || fail(error, path, errno);
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
    Walk w = {.group = group, .dev = st.st_dev, .deadline_us = deadline_us};
    return walk_entry(&w, AT_FDCWD, path, path, error);
}
