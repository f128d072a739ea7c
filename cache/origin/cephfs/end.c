/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a connection to CephFS lives and ends. The canary shows whether its session still lives. Its
 * end may wait for as long as Ceph is silent, so it runs on a thread of its own (aside.h), for
 * which the caller waits a bounded time; after that the connection is left behind.
 */
#include "cache/origin/aside.h"
#include "cache/origin/client_memory.h"
#include "cache/origin/cephfs/internal.h"
#include <fcntl.h>

/* How long a close waits for what a connection has to write; the writing goes on then. */
#define END_MS 30000
/* The keeper of connections waits this long. */
#define END_LOST_MS 5000

void cephfs_listen(Origin *origin, const OriginListener *listener)
{
    CephfsOrigin *o = (CephfsOrigin *)origin;
    pthread_mutex_lock(&o->listener_mutex);
    o->listener = listener ? *listener : (OriginListener){0};
    pthread_mutex_unlock(&o->listener_mutex);
}

/*
 * The canary: a lock on the directory that is held for as long as the session lives, and queried by
 * each check. libcephfs keeps locks over a failure of the MDS, and answers EIO once it has lost one
 * with its session. It is shared, on one byte that no file can have, so it disturbs no other lock.
 */
#define CANARY_OWNER 1

static struct flock canary_lock(void)
{
    return (struct flock){
        .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = (off_t)1 << 62, .l_len = 1};
}

int cephfs_canary_take(CephfsOrigin *o)
{
    struct Inode *root;
    struct flock lock = canary_lock();
    int r = ceph_ll_lookup_root(o->mount, &root);
    if (r < 0)
        return r;
    r = ceph_ll_open(o->mount, root, O_RDONLY | O_DIRECTORY, &o->canary, o->perms);
    ceph_ll_put(o->mount, root);
    return r < 0 ? r : ceph_ll_setlk(o->mount, o->canary, &lock, CANARY_OWNER, 0);
}

int cephfs_canary_check(Origin *origin)
{
    CephfsOrigin *o = (CephfsOrigin *)origin;
    struct flock lock = canary_lock();
    cephfs_names_share(o);
    return ceph_ll_getlk(o->mount, o->canary, &lock, CANARY_OWNER);
}

void cephfs_release(CephfsOrigin *o)
{
    if (atomic_fetch_sub(&o->holders, 1) != 1)
        return;
    pthread_mutex_destroy(&o->listener_mutex);
    pthread_mutex_destroy(&o->rights.mutex);
    pthread_mutex_destroy(&o->names.mutex);
    cephfs_files_clear(&o->files);
    client_memory_give(o->memory_bytes);
    g_free(o);
}

void cephfs_unmount(CephfsOrigin *o)
{
    if (o->canary)
        ceph_ll_close(o->mount, o->canary);
    if (o->root)
        ceph_ll_put(o->mount, o->root);
    if (o->mounted)
        ceph_unmount(o->mount);
    ceph_release(o->mount);
    session_name_release(o->name);
}

/* Writes go to Ceph first. */
static void end_written(void *data)
{
    CephfsOrigin *o = data;
    cephfs_files_stop(o, FALSE);
    cephfs_waits_stop(o);
    cephfs_prime_clear(&o->prime);
    cephfs_lookers_stop(o);
    if (o->canary)
        ceph_ll_close(o->mount, g_steal_pointer(&o->canary));
    if (o->root)
        ceph_ll_put(o->mount, g_steal_pointer(&o->root));
    const int r = ceph_sync_fs(o->mount);
    if (r < 0)
        g_warning("the last writes that were not synced may not be in Ceph: %s", g_strerror(-r));
}

/* May take a second: libcephfs releases the directories above a volume on its own clock. */
static void end_session(void *data)
{
    cephfs_unmount(data);
}

/* Nothing is written back. Open files are lost with it. */
static void end_lost(void *data)
{
    CephfsOrigin *o = data;
    cephfs_files_stop(o, TRUE);
    cephfs_waits_stop(o);
    cephfs_prime_clear(&o->prime);
    cephfs_lookers_stop(o);
    /* It may stop this thread. */
    session_name_release(g_steal_pointer(&o->name));
    cephfs_abort_or_stop(o->mount);
    ceph_release(o->mount);
}

static void end_holder(void *data)
{
    cephfs_release(data);
}

/* Once. Callbacks may come until it has ended, which may be later. */
static void disconnect(CephfsOrigin *o, gboolean lost)
{
    atomic_store(&o->gone, TRUE);
    atomic_fetch_add(&o->holders, 1);
    const unsigned limit_ms = lost ? END_LOST_MS : END_MS;
    const gboolean done = lost ? aside_call(end_lost, o, end_holder, limit_ms)
                               : aside_call_then(end_written, end_session, o, end_holder, limit_ms);
    if (done && lost)
        cephfs_release(o);
    if (done)
        return;
    atomic_store(&o->left, TRUE);
    g_message("a connection with Ceph has not ended within %u s: it is left behind",
              limit_ms / 1000);
}

void cephfs_abandon(Origin *origin)
{
    cephfs_listen(origin, NULL);
    disconnect((CephfsOrigin *)origin, TRUE);
}

void cephfs_destroy(Origin *origin)
{
    CephfsOrigin *o = (CephfsOrigin *)origin;
    cephfs_listen(origin, NULL);
    if (!atomic_load(&o->gone))
        disconnect(o, FALSE);
    cephfs_release(o);
}
