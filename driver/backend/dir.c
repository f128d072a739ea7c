/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volumes as directories under one root, for development and for tests without Ceph:
 *
 *     ROOT/<name>                a volume
 *     ROOT/.hearth/vol.<name>    its record
 *     ROOT/.hearth/trash.<name>  a volume being removed: gone by one rename, then emptied
 *
 * Sizes are recorded and not enforced. Everything goes through directory descriptors and no
 * symbolic link is followed: what is in a volume is its user's.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "driver/backend/backend.h"
#include "driver/volume/record.h"

#define PRIVATE ".hearth"

typedef struct Dir {
    char *path;
    int root, private_fd;
} Dir;

static gboolean fail_by_errno(GError **error, const Dir *d, const char *what, const char *name)
{
    int failure = errno;
    HearthError code = HEARTH_ERROR_INTERNAL;
    if (failure == ENOSPC || failure == EDQUOT)
        code = HEARTH_ERROR_RESOURCE_EXHAUSTED;
    else if (failure == EACCES || failure == EPERM)
        code = HEARTH_ERROR_PERMISSION_DENIED;
    return hearth_fail(error, code, "%s %s under %s: %s", what, name, d->path, g_strerror(failure));
}

static VolumeId *locate(void *backend, const VolumeParams *params, GError **error)
{
    (void)backend, (void)params, (void)error;
    VolumeId *id = g_new0(VolumeId, 1);
    id->type = VOLUME_DIR;
    return id;
}

static void *session_open(void *backend, const VolumeId *where, const Secrets *secrets,
                          gint64 deadline_us, GError **error)
{
    (void)where, (void)secrets, (void)deadline_us, (void)error;
    return backend;
}

static void session_close(void *session)
{
    (void)session;
}

static gboolean write_all(int fd, const char *text)
{
    gsize left = strlen(text);
    while (left) {
        ssize_t n = write(fd, text, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return FALSE;
        text += n;
        left -= (gsize)n;
    }
    return fsync(fd) == 0;
}

/* Written under another name and linked in, so that a record is whole or absent. */
static gboolean record_create(void *session, const char *name, const char *text, gboolean *existed,
                              gint64 deadline_us, GError **error)
{
    (void)deadline_us;
    Dir *d = session;
    g_autofree char *temporary = g_strconcat("new.", name, NULL);
    int fd = openat(d->private_fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                    0600);
    gboolean good = fd >= 0 && write_all(fd, text);
    if (good) {
        *existed = linkat(d->private_fd, temporary, d->private_fd, name, 0) != 0;
        good = (!*existed || errno == EEXIST) && fsync(d->private_fd) == 0;
    }
    if (!good)
        fail_by_errno(error, d, "creating the record of", name);
    if (fd >= 0) {
        close(fd);
        unlinkat(d->private_fd, temporary, 0);
    }
    return good;
}

static char *record_read(void *session, const char *name, gsize *length, gint64 deadline_us,
                         GError **error)
{
    (void)deadline_us;
    Dir *d = session;
    int fd = openat(d->private_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        if (errno == ENOENT)
            hearth_fail(error, HEARTH_ERROR_NOT_FOUND, "there is no record %s", name);
        else
            fail_by_errno(error, d, "reading the record of", name);
        return NULL;
    }
    g_autofree char *data = g_malloc0(RECORD_MAX + 1);
    gsize have = 0;
    ssize_t n = 0;
    while (have < RECORD_MAX && (n = read(fd, data + have, RECORD_MAX - have)) > 0)
        have += (gsize)n;
    if (n < 0)
        fail_by_errno(error, d, "reading the record of", name);
    close(fd);
    *length = have;
    return n < 0 ? NULL : g_steal_pointer(&data);
}

static gboolean record_remove(void *session, const char *name, gint64 deadline_us, GError **error)
{
    (void)deadline_us;
    Dir *d = session;
    if (unlinkat(d->private_fd, name, 0) != 0 && errno != ENOENT)
        return fail_by_errno(error, d, "removing the record of", name);
    return fsync(d->private_fd) == 0 || fail_by_errno(error, d, "removing the record of", name);
}

/* The names in a directory that begin with `prefix`. */
static GPtrArray *list_names(Dir *d, int parent, const char *path, const char *prefix,
                             GError **error)
{
    int fd = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        fail_by_errno(error, d, "listing", path);
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    struct dirent *entry;
    while ((entry = readdir(dir))) {
        if (g_str_has_prefix(entry->d_name, prefix))
            g_ptr_array_add(names, g_strdup(entry->d_name));
    }
    closedir(dir);
    return names;
}

static GPtrArray *record_list(void *session, gint64 deadline_us, GError **error)
{
    (void)deadline_us;
    Dir *d = session;
    return list_names(d, d->private_fd, PRIVATE, "vol.", error);
}

/* What is no directory, and ours, are no volumes to volume_look(), nor are names they cannot have.
 */
static GPtrArray *volume_list(void *session, const VolumeId *where, gint64 deadline_us,
                              GError **error)
{
    (void)where, (void)deadline_us;
    Dir *d = session;
    return list_names(d, d->root, ".", "", error);
}

static gboolean capacity(void *session, const char *pool, gint64 *available, gint64 deadline_us,
                         GError **error)
{
    (void)pool, (void)deadline_us;
    Dir *d = session;
    struct statvfs st;
    if (fstatvfs(d->root, &st) != 0)
        return fail_by_errno(error, d, "looking at", ".");
    *available = (gint64)(st.f_bavail * st.f_frsize);
    return TRUE;
}

static void free_location(gpointer location)
{
    volume_id_free(location);
}

static GPtrArray *clusters(void *backend, GError **error)
{
    GPtrArray *list = g_ptr_array_new_with_free_func(free_location);
    g_ptr_array_add(list, locate(backend, NULL, error));
    return list;
}

static GPtrArray *locations(void *backend, const VolumeId *cluster, const Secrets *secrets,
                            gint64 deadline_us, GError **error)
{
    (void)cluster, (void)secrets, (void)deadline_us;
    return clusters(backend, error);
}

static gboolean make_directory(Dir *d, const char *name, GError **error)
{
    if (mkdirat(d->root, name, 0777) != 0 && errno != EEXIST)
        return fail_by_errno(error, d, "creating", name);
    /* The umask must not narrow it: as a subvolume, it is for any user of a pod. */
    int fd = openat(d->root, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    gboolean good = fd >= 0 && fchmod(fd, 0777) == 0 && fsync(d->root) == 0;
    if (!good)
        fail_by_errno(error, d, "creating", name);
    if (fd >= 0)
        close(fd);
    return good;
}

/* Empties and removes a directory. errno is that of the first failure. */
static gboolean remove_tree(int parent, const char *name)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT ||
               ((errno == ENOTDIR || errno == ELOOP) && unlinkat(parent, name, 0) == 0);
    DIR *dir = fdopendir(fd);
    if (!dir) {
        close(fd);
        return FALSE;
    }
    gboolean good = TRUE;
    struct dirent *entry;
    while (good && (entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        good = unlinkat(fd, entry->d_name, 0) == 0 || errno == ENOENT ||
               ((errno == EISDIR || errno == EPERM) && remove_tree(fd, entry->d_name));
    }
    int failure = errno;
    closedir(dir);
    errno = failure;
    return good && unlinkat(parent, name, AT_REMOVEDIR) == 0;
}

static gboolean volume_remove(void *session, const VolumeId *id, gboolean keep_snapshots,
                              gint64 deadline_us, GError **error)
{
    (void)keep_snapshots, (void)deadline_us;
    Dir *d = session;
    g_autofree char *trash = g_strconcat("trash.", id->name, NULL);
    /* What an interrupted removal left. */
    if (!remove_tree(d->private_fd, trash))
        return fail_by_errno(error, d, "removing", id->name);
    if (renameat(d->root, id->name, d->private_fd, trash) != 0)
        return errno == ENOENT || fail_by_errno(error, d, "removing", id->name);
    return remove_tree(d->private_fd, trash) || fail_by_errno(error, d, "removing", id->name);
}

static BackendVolume *volume_look(void *session, const VolumeId *id, gint64 deadline_us,
                                  GError **error)
{
    (void)deadline_us;
    Dir *d = session;
    struct stat st;
    gboolean there = fstatat(d->root, id->name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (!there && errno != ENOENT) {
        fail_by_errno(error, d, "looking at", id->name);
        return NULL;
    }
    if (!there || !S_ISDIR(st.st_mode)) {
        hearth_fail(error, HEARTH_ERROR_NOT_FOUND, "there is no directory %s/%s", d->path,
                    id->name);
        return NULL;
    }
    BackendVolume *volume = g_new0(BackendVolume, 1);
    volume->path = g_build_filename(d->path, id->name, NULL);
    volume->created = st.st_mtim.tv_sec;
    return volume;
}

static BackendVolume *volume_create(void *session, const VolumeId *id, const VolumeParams *params,
                                    gint64 bytes, gint64 deadline_us, GError **error)
{
    (void)params, (void)bytes;
    return make_directory(session, id->name, error) ? volume_look(session, id, deadline_us, error)
                                                    : NULL;
}

static gboolean probe(void *backend, gint64 deadline_us, GError **error)
{
    (void)deadline_us;
    Dir *d = backend;
    if (faccessat(d->root, ".", W_OK | X_OK, AT_EACCESS) == 0)
        return TRUE;
    return fail_by_errno(error, d, "writing to", ".");
}

static void dir_free(void *backend)
{
    Dir *d = backend;
    if (d->root >= 0)
        close(d->root);
    if (d->private_fd >= 0)
        close(d->private_fd);
    g_free(d->path);
    g_free(d);
}

static const BackendOps ops = {
    .type = VOLUME_DIR,
    .needs_secrets = FALSE,
    .locate = locate,
    .open = session_open,
    .close = session_close,
    .record_create = record_create,
    .record_read = record_read,
    .record_remove = record_remove,
    .record_list = record_list,
    .capacity = capacity,
    .clusters = clusters,
    .locations = locations,
    .volume_create = volume_create,
    .volume_remove = volume_remove,
    .volume_look = volume_look,
    .volume_list = volume_list,
    .probe = probe,
    .free = dir_free,
};

Backend *backend_dir_new(const char *root, GError **error)
{
    Dir *d = g_new0(Dir, 1);
    d->private_fd = -1;
    d->path = g_canonicalize_filename(root, NULL);
    d->root = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    gboolean good = d->root >= 0 && (mkdirat(d->root, PRIVATE, 0700) == 0 || errno == EEXIST);
    if (good)
        d->private_fd = openat(d->root, PRIVATE, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (d->private_fd < 0) {
        fail_by_errno(error, d, "opening", PRIVATE);
        dir_free(d);
        return NULL;
    }
    Backend *backend = g_new0(Backend, 1);
    backend->ops = &ops;
    backend->impl = d;
    return backend;
}
