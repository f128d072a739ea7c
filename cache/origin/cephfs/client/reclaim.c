/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends the session of a client that died. As long as the session exists, the MDS waits for
 * capabilities that will never be returned. libcephfs waits without bound for an MDS that does not
 * answer, so this uses a connection and a thread of its own, which are left behind when it takes
 * too long; the thread ends when the MDS is back.
 */
#include <errno.h>
#include <gio/gio.h>
#include "cache/origin/aside.h"
#include "cache/origin/cephfs/client/client.h"

/* No more are begun while this many wait for an MDS. */
#define LEFT_BEHIND_MAX 64

typedef struct Reclaim {
    struct ceph_mount_info *mount;
    CephClient ceph;
    SessionName *name; /* not used for another session before this has ended */
    int result;
} Reclaim;

static void reclaim_free(void *data)
{
    Reclaim *r = data;
    if (r->mount)
        ceph_release(r->mount);
    ceph_client_clear(&r->ceph);
    session_name_release(r->name);
    g_free(r);
}

static void reclaim(void *data)
{
    Reclaim *r = data;
    r->result = -ENETUNREACH;
    if (!ceph_client_enter_network(&r->ceph, NULL))
        return;
    int result = ceph_init(r->mount);
    if (result == 0)
        result = ceph_start_reclaim(r->mount, session_name(r->name), CEPH_RECLAIM_RESET);
    if (result != -EOPNOTSUPP)
        ceph_finish_reclaim(r->mount);
    ceph_release(g_steal_pointer(&r->mount));
    r->result = result;
}

int cephfs_reclaim(struct ceph_mount_info *mount, const CephClient *ceph, const char *client,
                   unsigned limit_sec)
{
    Reclaim *r = g_new0(Reclaim, 1);
    *r = (Reclaim){.mount = mount, .name = session_name_again(client), .result = -ETIMEDOUT};
    ceph_client_copy(&r->ceph, ceph);
    if (aside_left_behind() < LEFT_BEHIND_MAX &&
        !aside_call(reclaim, r, reclaim_free, limit_sec * 1000))
        return -ETIMEDOUT;
    int result = r->result;
    reclaim_free(r);
    return result;
}
