/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks of the directory origin: the kernel's, of open file descriptions (fcntl_locking(2)), one
 * for each owner.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include "cache/origin/dir/internal.h"

struct OriginLocks {
    OriginNode *node; /* a reference */
    pthread_mutex_t mutex;
    GHashTable *fds; /* mutex; owner -> descriptor */
};

static void close_fd(gpointer fd)
{
    close(GPOINTER_TO_INT(fd));
}

int dir_locks_open(Origin *o, OriginNode *node, OriginLocks **locks)
{
    OriginLocks *l = g_new0(OriginLocks, 1);
    l->node = dir_get(o, node);
    pthread_mutex_init(&l->mutex, NULL);
    l->fds = g_hash_table_new_full(NULL, NULL, NULL, close_fd);
    *locks = l;
    return 0;
}

static int fd_of(OriginLocks *l, uint64_t owner)
{
    gpointer known = NULL, key = GSIZE_TO_POINTER(owner);
    pthread_mutex_lock(&l->mutex);
    if (!g_hash_table_lookup_extended(l->fds, key, NULL, &known)) {
        int fd = open(dir_proc_path(l->node->fd).text, O_RDWR | O_CLOEXEC);
        known = GINT_TO_POINTER(fd < 0 ? -errno : fd);
        if (fd >= 0)
            g_hash_table_insert(l->fds, key, known);
    }
    pthread_mutex_unlock(&l->mutex);
    return GPOINTER_TO_INT(known);
}

static int call(OriginLocks *l, int command, struct flock *lock, uint64_t owner)
{
    const int fd = fd_of(l, owner);
    if (fd < 0)
        return fd;
    lock->l_pid = 0;
    return fcntl(fd, command, lock) < 0 ? -errno : 0;
}

int dir_lock_set(Origin *o, OriginLocks *locks, const struct flock *lock, uint64_t owner)
{
    (void)o;
    struct flock set = *lock;
    return call(locks, F_OFD_SETLK, &set, owner);
}

int dir_lock_get(Origin *o, OriginLocks *locks, struct flock *lock, uint64_t owner)
{
    (void)o;
    return call(locks, F_OFD_GETLK, lock, owner);
}

void dir_locks_close(Origin *o, OriginLocks *locks)
{
    g_hash_table_unref(locks->fds);
    pthread_mutex_destroy(&locks->mutex);
    dir_put(o, locks->node);
    g_free(locks);
}
