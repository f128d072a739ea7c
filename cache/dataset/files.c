/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A manifest appears by one link(2) of a file that was complete and synced without a name, so that
 * a crash leaves it whole or not there. One that cannot be used is removed and built again.
 */
#include "cache/dataset/files.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "common/autofd.h"
#include "cache/store/disk/key.h"

static gboolean fail_errno(GError **error, const char *path, const char *what)
{
    int code = errno;
    g_set_error(error, G_IO_ERROR, g_io_error_from_errno(code), "%s: %s: %s", path, what,
                g_strerror(code));
    return FALSE;
}

char *manifests_dir(const char *cache_dir, GError **error)
{
    g_autofree char *dir = g_build_filename(cache_dir, MANIFESTS_DIR, NULL);
    if (mkdir(dir, 0700) < 0 && !(errno == EEXIST && g_file_test(dir, G_FILE_TEST_IS_DIR))) {
        fail_errno(error, dir, "cannot be made");
        return NULL;
    }
    return g_steal_pointer(&dir);
}

Manifest *manifests_open(const char *dir, const char *id, const Origin *origin,
                         const OriginAttr *root)
{
    g_autofree char *path = g_build_filename(dir, id, NULL);
    g_autoptr(GError) error = NULL;
    hearth_autofd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT)
        return NULL;
    if (fd < 0) {
        g_warning("manifest %s cannot be opened: %s", path, g_strerror(errno));
        return NULL;
    }
    g_autoptr(Manifest) manifest = manifest_open(fd, TRUE, &error);
    if (manifest && manifest_is_of(manifest, origin, root)) {
        futimens(fd, NULL);
        return g_steal_pointer(&manifest);
    }
    g_warning("manifest %s is removed and built again: %s", path,
              error ? error->message : "it is of another tree");
    if (unlink(path) < 0)
        g_warning("manifest %s cannot be removed: %s", path, g_strerror(errno));
    return NULL;
}

int manifests_create(const char *dir, GError **error)
{
    int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0)
        fail_errno(error, dir, "no file can be made in it");
    return fd;
}

gboolean manifests_publish(const char *dir, const char *id, int fd, GError **error)
{
    g_autofree char *path = g_build_filename(dir, id, NULL);
    char self[32];
    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    unlink(path);
    /* AT_EMPTY_PATH needs a capability, /proc a mount: either will do. */
    if (linkat(fd, "", AT_FDCWD, path, AT_EMPTY_PATH) < 0 &&
        linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) < 0)
        return fail_errno(error, path, "cannot be made");
    hearth_autofd int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return (dir_fd >= 0 && fsync(dir_fd) == 0) || fail_errno(error, dir, "cannot be synced");
}

/* ---- what is kept */

typedef struct Kept {
    char *name;
    uint64_t bytes;
    struct timespec used;
} Kept;

static void clear_kept(gpointer data)
{
    g_free(((Kept *)data)->name);
}

static gint older_first(gconstpointer a, gconstpointer b)
{
    const struct timespec *x = &((const Kept *)a)->used, *y = &((const Kept *)b)->used;
    if (x->tv_sec != y->tv_sec)
        return x->tv_sec < y->tv_sec ? -1 : 1;
    return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

static GArray *list_all(int dir_fd)
{
    GArray *all = g_array_new(FALSE, FALSE, sizeof(Kept));
    g_array_set_clear_func(all, clear_kept);
    int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    if (!dir) {
        hearth_close_fd(&copy);
        return all;
    }
    for (struct dirent *e; (e = readdir(dir));) {
        struct stat st;
        ObjectId id;
        if (!object_id_parse(e->d_name, &id) ||
            fstatat(dir_fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        Kept kept = {g_strdup(e->d_name), (uint64_t)st.st_size, st.st_mtim};
        g_array_append_val(all, kept);
    }
    closedir(dir);
    g_array_sort(all, older_first);
    return all;
}

uint64_t manifests_prune(const char *dir, GHashTable *keep, unsigned max_files, uint64_t max_bytes)
{
    hearth_autofd int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0)
        return 0;
    g_autoptr(GArray) all = list_all(dir_fd);
    uint64_t bytes = 0;
    unsigned files = all->len;
    for (guint i = 0; i < all->len; i++)
        bytes += g_array_index(all, Kept, i).bytes;
    for (guint i = 0; i < all->len; i++) {
        const Kept *kept = &g_array_index(all, Kept, i);
        if (files <= max_files && (!max_bytes || bytes <= max_bytes))
            break;
        if (g_hash_table_contains(keep, kept->name) || unlinkat(dir_fd, kept->name, 0) < 0)
            continue;
        g_message("manifest %s/%s is removed: it was used least recently", dir, kept->name);
        bytes -= kept->bytes;
        files--;
    }
    return bytes;
}

/* ---- what the kernel can use */

gboolean manifests_layer_works(const char *objects, GError **error)
{
    static const struct {
        unsigned long magic;
        const char *name;
    } refused[] = {
        {OVERLAYFS_SUPER_MAGIC, "overlayfs"},
        {NFS_SUPER_MAGIC, "NFS"},
        {0x65735546, "FUSE"},
        {0x00c36400, "CephFS"},
    };
    struct statfs fs;
    if (statfs(objects, &fs) < 0)
        return fail_errno(error, objects, "statfs");
    for (size_t i = 0; i < G_N_ELEMENTS(refused); i++)
        if (((unsigned long)fs.f_type & 0xffffffffUL) == refused[i].magic) {
            g_set_error(error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
                        "the cache directory is on %s, which overlayfs cannot use as a layer; name "
                        "one on a local ext4 or XFS file system",
                        refused[i].name);
            return FALSE;
        }
    hearth_autofd int fd = open(objects, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0)
        return fail_errno(error, objects, "no file can be made in it");
    if (fsetxattr(fd, "user.hearth.probe", "", 0, 0) < 0) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
                    "the cache directory's file system has no extended attributes (%s); name one "
                    "on a local ext4 or XFS file system",
                    g_strerror(errno));
        return FALSE;
    }
    return TRUE;
}
