/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes of a local directory: one for each inode that is in use, found by (dev, ino). Looking up
 * names, attributes, and the owner of new entries.
 */
#include "cache/origin/dir/internal.h"
#include "common/autofd.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static guint node_hash(gconstpointer key)
{
    const OriginNode *node = key;
    return (guint)(node->ino ^ (node->ino >> 32) ^ node->dev * 31);
}

static gboolean node_equal(gconstpointer a, gconstpointer b)
{
    const OriginNode *x = a, *y = b;
    return x->ino == y->ino && x->dev == y->dev;
}

static void fill_attr(const DirOrigin *origin, const struct stat *st, OriginAttr *attr)
{
    attr->st = *st;
    attr->snapshot = 0;
    attr->version = (uint64_t)st->st_ctim.tv_sec * 1000000000u + (uint64_t)st->st_ctim.tv_nsec;
    /* overlayfs gives inodes of one tree several devices, in each of which numbers repeat. */
    if (st->st_dev != origin->dev)
        attr->version ^= ((uint64_t)st->st_dev + 1) * 0x9e3779b97f4a7c15u;
}

int dir_node_from_fd(DirOrigin *origin, int fd, OriginNode **node, OriginAttr *attr)
{
    struct stat st;
    if (fstatat(fd, "", &st, AT_EMPTY_PATH) < 0) {
        int result = -errno;
        close(fd);
        return result;
    }
    OriginNode key = {.dev = st.st_dev, .ino = st.st_ino};
    pthread_mutex_lock(&origin->lock);
    OriginNode *known = g_hash_table_lookup(origin->nodes, &key);
    if (known) {
        known->refs++;
    } else {
        known = g_new0(OriginNode, 1);
        *known = key;
        known->type = st.st_mode & S_IFMT;
        known->fd = hearth_steal_fd(&fd);
        known->refs = 1;
        g_hash_table_add(origin->nodes, known);
    }
    pthread_mutex_unlock(&origin->lock);
    if (fd >= 0)
        close(fd);
    fill_attr(origin, &st, attr);
    *node = known;
    return 0;
}

OriginNode *dir_get(Origin *o, OriginNode *node)
{
    DirOrigin *origin = (DirOrigin *)o;
    pthread_mutex_lock(&origin->lock);
    node->refs++;
    pthread_mutex_unlock(&origin->lock);
    return node;
}

GHashTable *dir_nodes_new(void)
{
    return g_hash_table_new(node_hash, node_equal);
}

static void free_node(gpointer data)
{
    OriginNode *node = data;
    close(node->fd);
    g_free(node);
}

void dir_put(Origin *o, OriginNode *node)
{
    DirOrigin *origin = (DirOrigin *)o;
    if (!node)
        return;
    pthread_mutex_lock(&origin->lock);
    gboolean last = --node->refs == 0;
    if (last)
        g_hash_table_remove(origin->nodes, node);
    pthread_mutex_unlock(&origin->lock);
    if (last)
        free_node(node);
}

int dir_check_name(const char *name)
{
    if (strlen(name) > NAME_MAX)
        return -ENAMETOOLONG;
    if (!name[0] || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return -EINVAL;
    return 0;
}

int dir_lookup(Origin *o, OriginNode *parent, const char *name, OriginNode **node, OriginAttr *attr)
{
    int bad = dir_check_name(name);
    if (bad)
        return bad;
    struct open_how how = {.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
                                      RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV};
    int fd = (int)syscall(SYS_openat2, parent->fd, name, &how, sizeof(how));
    if (fd < 0)
        return -errno;
    return dir_node_from_fd((DirOrigin *)o, fd, node, attr);
}

int dir_getattr(Origin *o, OriginNode *node, OriginAttr *attr)
{
    struct stat st;
    if (fstatat(node->fd, "", &st, AT_EMPTY_PATH) < 0)
        return -errno;
    fill_attr((DirOrigin *)o, &st, attr);
    return 0;
}

void dir_nodes_free(GHashTable *nodes)
{
    GHashTableIter iter;
    gpointer node;
    g_hash_table_iter_init(&iter, nodes);
    while (g_hash_table_iter_next(&iter, &node, NULL))
        free_node(node);
    g_hash_table_unref(nodes);
}

int dir_give_to(int fd, const OriginNew *new, mode_t parent_mode)
{
    mode_t wanted = new->mode & 07777;
    if (geteuid() == 0) {
        gid_t gid = parent_mode & S_ISGID ? (gid_t)-1 : new->gid;
        if (fchownat(fd, "", new->uid, gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0)
            return -errno;
    }
    struct stat st;
    if (fstatat(fd, "", &st, AT_EMPTY_PATH) < 0)
        return -errno;
    if (S_ISLNK(st.st_mode))
        return 0;
    if (S_ISDIR(st.st_mode) && (parent_mode & S_ISGID))
        wanted |= S_ISGID;
    return chmod(dir_proc_path(fd).text, wanted) < 0 ? -errno : 0;
}
