/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether Ceph lets this user read a file's data. The MDS does not know: capabilities of OSDs are
 * by pool and RADOS namespace. libcephfs knows a file's pool, but gets the namespace only by a
 * request to the MDS. So one byte of the file itself is read. For a pool with many files, an object
 * in a random namespace is tried once: if the user may read that, it may read the whole pool.
 *
 * The result holds for this connection.
 */
#include <errno.h>
#include <fcntl.h>
#include <rados/librados.h>
#include <stdio.h>
#include "common/monotonic.h"
#include "cache/origin/cephfs/internal.h"

/* Connecting to try the pool costs some 20 ms. */
#define FILES_BEFORE 8
#define POOL_WAIT_MS 5000

/* O_DIRECT: bytes that this client has written itself would prove nothing. */
static int read_one_byte(CephfsOrigin *o, struct Inode *inode)
{
    Fh *fh = NULL;
    CephfsWait wait;
    char byte;
    cephfs_wait_begin(o, &wait, inode);
    int r = ceph_ll_open(o->mount, inode, O_RDONLY | O_DIRECT, &fh, o->perms);
    if (r == 0) {
        r = ceph_ll_read(o->mount, fh, 0, 1, &byte);
        ceph_ll_close(o->mount, fh);
    }
    cephfs_wait_end(o, &wait);
    /* For an empty file Ceph was not asked. */
    if (r == 0)
        return -ENODATA;
    return MIN(r, 0);
}

typedef struct Answer {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    gboolean given; /* mutex */
} Answer;

static void answered(rados_completion_t completion, void *data)
{
    (void)completion;
    Answer *a = data;
    pthread_mutex_lock(&a->mutex);
    a->given = TRUE;
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->mutex);
}

/* -ENOENT: it may be read, and is not there. */
static int stat_object(rados_ioctx_t io, const char *name)
{
    Answer a = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    const struct timespec deadline = deadline_after_ms(POOL_WAIT_MS);
    rados_completion_t completion;
    uint64_t size;
    time_t mtime;
    cond_init_monotonic(&a.changed);
    int r = rados_aio_create_completion2(&a, answered, &completion);
    if (r < 0)
        return r;
    r = rados_aio_stat(io, name, completion, &size, &mtime);
    if (r == 0) {
        pthread_mutex_lock(&a.mutex);
        while (!a.given && pthread_cond_timedwait(&a.changed, &a.mutex, &deadline) != ETIMEDOUT)
            ;
        const gboolean given = a.given;
        pthread_mutex_unlock(&a.mutex);
        if (!given)
            rados_aio_cancel(io, completion);
        rados_aio_wait_for_complete_and_cb(completion);
        r = rados_aio_get_return_value(completion);
    }
    rados_aio_release(completion);
    pthread_cond_destroy(&a.changed);
    pthread_mutex_destroy(&a.mutex);
    return r;
}

static gboolean reads_all_of(CephfsOrigin *o, int64_t pool)
{
    rados_t cluster;
    rados_ioctx_t io;
    char name[64];
    int r = rados_create_with_context(&cluster, ceph_get_mount_context(o->mount));
    if (r < 0)
        return FALSE;
    r = rados_connect(cluster);
    if (r == 0)
        r = rados_ioctx_create2(cluster, pool, &io);
    if (r == 0) {
        snprintf(name, sizeof(name), "~%08x%08x%08x", g_random_int(), g_random_int(),
                 g_random_int());
        rados_ioctx_set_namespace(io, name);
        r = stat_object(io, name);
        rados_ioctx_destroy(io);
    }
    rados_shutdown(cluster);
    return r == -ENOENT;
}

/* Counts a file of the pool; TRUE: the caller tries the pool. *all: it was tried, and may be read.
 */
static gboolean is_due(CephfsRights *rights, int64_t pool, gboolean *all, unsigned *slot)
{
    gboolean due = FALSE;
    unsigned i = 0;
    pthread_mutex_lock(&rights->mutex);
    while (i < rights->n && rights->pools[i].id != pool)
        i++;
    if (i == rights->n && i < CEPHFS_RIGHTS_POOLS)
        rights->pools[rights->n++] = (CephfsPoolRights){.id = pool};
    if (i < rights->n) {
        CephfsPoolRights *p = &rights->pools[i];
        *all = p->all;
        due = !p->all && ++p->files == FILES_BEFORE;
    }
    pthread_mutex_unlock(&rights->mutex);
    *slot = i;
    return due;
}

int cephfs_may_read(Origin *origin, OriginNode *node)
{
    CephfsOrigin *o = (CephfsOrigin *)origin;
    struct Inode *inode = (struct Inode *)node;
    struct ceph_file_layout layout;
    gboolean all = FALSE;
    unsigned slot;
    int r = (int)ceph_ll_file_layout(o->mount, inode, &layout);
    if (r < 0)
        return r;
    const int64_t pool = layout.fl_pg_pool;
    const gboolean due = is_due(&o->rights, pool, &all, &slot);
    if (all)
        return 0;
    if (due && reads_all_of(o, pool)) {
        pthread_mutex_lock(&o->rights.mutex);
        o->rights.pools[slot].all = TRUE;
        pthread_mutex_unlock(&o->rights.mutex);
        return 0;
    }
    return read_one_byte(o, inode);
}
