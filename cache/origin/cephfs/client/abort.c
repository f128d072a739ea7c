/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcephfs 16 aborts its process in two places where it has only itself to blame:
 *   - ceph_mount() fails half way: it asks for the mounted directory first and for its parents
 * then, and if one of these cannot be had any more, the client is deleted while it still has an
 * inode (Client.cc, inode_map.empty()). connect.c lets nothing fail there that can wait;
 * what is left is Ceph ending the session in between, by the blocklist or a refusal.
 *   - ceph_abort_conn() while an OSD has yet to answer a read (Inode.cc, oset.objects.empty()).
 *     cache/origin/reconnect/reconnect.c gives the OSDs time for that, which a cut network may use
 * up. hearthd must not end for that, as the mounts of all pods would with it. The client in
 * question is known to nobody else: no other thread waits for it or looks at it. So the thread is
 * stopped where it is, and the client's memory, some MB, and threads stay.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>
#include "cache/origin/cephfs/client/client.h"

/* Of a run. After so many an abort is one. */
#define STOPPED_MAX 32

static _Thread_local _Atomic gboolean *volatile may_stop; /* not NULL: within such a call */
static atomic_uint stopped;

static void on_abort(int number)
{
    static const char text[] = "hearthd: libcephfs has aborted the beginning or the end of a "
                               "connection; its thread is stopped, and hearthd goes on\n";
    (void)number;
    /* With the default action abort() raises the signal again on return. */
    if (!may_stop || atomic_fetch_add(&stopped, 1) >= STOPPED_MAX)
        return;
    atomic_store(may_stop, TRUE);
    if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
        atomic_store(may_stop, TRUE);
    for (;;)
        pause();
}

static void handle_aborts(void)
{
    struct sigaction before, action = {.sa_handler = on_abort};
    sigaction(SIGABRT, NULL, &before);
    if (before.sa_handler == SIG_DFL)
        sigaction(SIGABRT, &action, NULL);
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
