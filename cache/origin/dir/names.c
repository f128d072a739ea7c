/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory origin's names: making, moving, removing and listing them. A name is always one
 * component relative to its parent's descriptor, so no path of ours can be redirected.
 */
#include "cache/origin/dir/internal.h"
#include "common/autofd.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct OriginDir {
    pthread_mutex_t lock; /* one reader at a time */
    OriginNode *node;     /* a reference */
    DIR *stream;
    int64_t position;
};

/* What mkdir, mknod and symlink do once the name exists. */
static int own_new_entry(Origin *o, OriginNode *parent, const char *name, const OriginNew *new,
                         OriginNode **node, OriginAttr *attr)
{
    struct stat parent_st;
    if (fstatat(parent->fd, "", &parent_st, AT_EMPTY_PATH) < 0)
        return -errno;
    int result = dir_lookup(o, parent, name, node, attr);
    if (result < 0)
        return result;
    result = dir_give_to((*node)->fd, new, parent_st.st_mode);
    if (result == 0)
        result = dir_getattr(o, *node, attr);
    if (result < 0)
        dir_put(o, *node);
    return result;
}

int dir_mkdir(Origin *o, OriginNode *parent, const char *name, const OriginNew *new,
              OriginNode **node, OriginAttr *attr)
{
    int bad = dir_check_name(name);
    if (bad)
        return bad;
    if (mkdirat(parent->fd, name, 0700) < 0)
        return -errno;
    return own_new_entry(o, parent, name, new, node, attr);
}

int dir_mknod(Origin *o, OriginNode *parent, const char *name, const OriginNew *new,
              OriginNode **node, OriginAttr *attr)
{
    int bad = dir_check_name(name);
    if (bad)
        return bad;
    if (mknodat(parent->fd, name, (new->mode &S_IFMT) | 0600, new->rdev) < 0)
        return -errno;
    return own_new_entry(o, parent, name, new, node, attr);
}

int dir_symlink(Origin *o, OriginNode *parent, const char *name, const OriginNew *new,
                OriginNode **node, OriginAttr *attr)
{
    int bad = dir_check_name(name);
    if (bad)
        return bad;
    if (symlinkat(new->target, parent->fd, name) < 0)
        return -errno;
    return own_new_entry(o, parent, name, new, node, attr);
}

int dir_link(Origin *o, OriginNode *node, OriginNode *parent, const char *name, OriginAttr *attr)
{
    int bad = dir_check_name(name);
    if (bad)
        return bad;
    int result = S_ISLNK(node->type) ? linkat(node->fd, "", parent->fd, name, AT_EMPTY_PATH)
                                     : linkat(AT_FDCWD, dir_proc_path(node->fd).text, parent->fd,
                                              name, AT_SYMLINK_FOLLOW);
    return result < 0 ? -errno : dir_getattr(o, node, attr);
}

int dir_unlink(Origin *o, OriginNode *parent, const char *name)
{
    (void)o;
    int bad = dir_check_name(name);
    if (bad)
        return bad;
    return unlinkat(parent->fd, name, 0) < 0 ? -errno : 0;
}

int dir_rmdir(Origin *o, OriginNode *parent, const char *name)
{
    (void)o;
    int bad = dir_check_name(name);
    if (bad)
        return bad;
    return unlinkat(parent->fd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

int dir_rename(Origin *o, OriginNode *from, const char *name, OriginNode *to, const char *new_name,
               unsigned flags)
{
    (void)o;
    int bad = dir_check_name(name);
    if (!bad)
        bad = dir_check_name(new_name);
    if (bad)
        return bad;
    if (flags & ~(unsigned)(RENAME_NOREPLACE | RENAME_EXCHANGE))
        return -EINVAL;
    return renameat2(from->fd, name, to->fd, new_name, flags) < 0 ? -errno : 0;
}

int dir_opendir(Origin *o, OriginNode *node, OriginDir **dir)
{
    hearth_autofd int fd = openat(node->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    if (!stream)
        return -errno;
    hearth_steal_fd(&fd);
    OriginDir *d = g_new0(OriginDir, 1);
    pthread_mutex_init(&d->lock, NULL);
    d->node = dir_get(o, node);
    d->stream = stream;
    *dir = d;
    return 0;
}

static gboolean is_dot(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static void fill_entry(const struct dirent *d, OriginEntry *entry)
{
    memset(entry, 0, sizeof(*entry));
    g_strlcpy(entry->name, d->d_name, sizeof(entry->name));
    entry->ino = d->d_ino;
    entry->type = (mode_t)DTTOIF(d->d_type);
    entry->next = d->d_off;
    entry->attr.st.st_ino = d->d_ino;
    entry->attr.st.st_mode = entry->type;
}

/* "." and ".." come without a node, also when attributes are asked for. */
static int readdir_locked(Origin *o, OriginDir *dir, int64_t off, gboolean with_attr,
                          OriginEntry *entry)
{
    if (off != dir->position)
        seekdir(dir->stream, (long)off);
    for (;;) {
        errno = 0;
        const struct dirent *d = readdir(dir->stream);
        if (!d)
            return -errno;
        dir->position = d->d_off;
        fill_entry(d, entry);
        if (!with_attr || is_dot(d->d_name))
            return 1;
        int result = dir_lookup(o, dir->node, d->d_name, &entry->node, &entry->attr);
        if (result == 0) {
            entry->ino = entry->attr.st.st_ino;
            entry->type = entry->attr.st.st_mode & S_IFMT;
            return 1;
        }
        /* Removed since it was read, or another file system's mount point: not ours. */
        if (result != -ENOENT && result != -EXDEV)
            return result;
    }
}

int dir_readdir(Origin *o, OriginDir *dir, int64_t off, gboolean with_attr, OriginEntry *entry)
{
    pthread_mutex_lock(&dir->lock);
    int result = readdir_locked(o, dir, off, with_attr, entry);
    pthread_mutex_unlock(&dir->lock);
    return result;
}

int dir_closedir(Origin *o, OriginDir *dir)
{
    closedir(dir->stream);
    pthread_mutex_destroy(&dir->lock);
    dir_put(o, dir->node);
    g_free(dir);
    return 0;
}
