/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcephfs 16 aborts its process in two places by its own fault:
 *   - ceph_mount() fails half way: it asks for the mounted directory first and for its parents
 *     after that, and if a parent is refused, it deletes the client while that still has an inode
 *     (Client.cc, inode_map.empty()). connect.c avoids failures there by waiting; the remaining
 *     case is that Ceph ends the session in between, by the blocklist or a refusal.
 *   - ceph_abort_conn() while an OSD has yet to answer a read (Inode.cc, oset.objects.empty()).
 *     cache/origin/reconnect/reconnect.c gives the OSDs time for that, but a cut network may last
 *     longer.
 *
 * hearthd must not end then, because the mounts of all pods would end with it. No other thread
 * knows this client. So the thread is stopped where it is, and the client's memory, some MB, and
 * its threads stay.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>
#include "cache/origin/cephfs/client/client.h"

/* In one run of hearthd. Later aborts end the process. */
#define STOPPED_MAX 32

static _Thread_local _Atomic gboolean *volatile may_stop; /* not NULL: within such a call */
static atomic_uint stopped;
static struct sigaction before; /* of SIGABRT */

static void on_abort(int number)
{
    static const char text[] = "hearthd: libcephfs has aborted the beginning or the end of a "
                               "connection; its thread is stopped, and hearthd continues\n";
    if (!may_stop || atomic_fetch_add(&stopped, 1) >= STOPPED_MAX) {
        sigaction(number, &before, NULL);
        raise(number); /* taken on return */
        return;
    }
    atomic_store(may_stop, TRUE);
    if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
        atomic_store(may_stop, TRUE);
    for (;;)
        pause();
}

static void handle_aborts(void)
{
    const struct sigaction action = {.sa_handler = on_abort};
    sigaction(SIGABRT, &action, &before);
}

int cephfs_mount_or_stop(struct ceph_mount_info *mount, const char *path, _Atomic gboolean *aborted)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, handle_aborts);
    may_stop = aborted;
    int r = ceph_mount(mount, path);
    may_stop = NULL;
    return r;
}

void cephfs_abort_or_stop(struct ceph_mount_info *mount)
{
    static _Atomic gboolean aborted; /* there has been a mount: the handler is there */
    may_stop = &aborted;
    ceph_abort_conn(mount);
    may_stop = NULL;
}
