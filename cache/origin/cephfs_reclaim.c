/*
 * Ending the session of a client that died. While it stands, the MDS waits for capabilities that
 * nobody will give back. libcephfs waits without bound for an MDS that does not answer, so it is
 * asked on a connection and a thread of its own, and left behind when that takes too long; the
 * thread goes when the MDS is back.
 */
#include <errno.h>
#include <gio/gio.h>
#include "cache/origin/aside.h"
#include "cache/origin/cephfs_internal.h"

/* Beyond so many that an MDS has not answered, no more are begun: those that go on will do. */
#define LEFT_BEHIND_MAX 64

typedef struct Reclaim {
    struct ceph_mount_info *mount;
    CephClient ceph;
    SessionName *name; /* no new session has it before this has ended */
    gboolean ended; /* the session is no more */
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
    if (!ceph_client_enter_network(&r->ceph, NULL))
        return;
    int result = ceph_init(r->mount);
    if (result == 0)
        result = ceph_start_reclaim(r->mount, session_name(r->name), CEPH_RECLAIM_RESET);
    if (result != -EOPNOTSUPP)
        ceph_finish_reclaim(r->mount);
    ceph_release(g_steal_pointer(&r->mount));
    r->ended = result == 0 || result == -ENOENT;
}

gboolean cephfs_reclaim(struct ceph_mount_info *mount, const CephClient *ceph, const char *client,
                        unsigned limit_sec)
{
    Reclaim *r = g_new0(Reclaim, 1);
    *r = (Reclaim){.mount = mount, .name = session_name_again(client)};
    ceph_client_copy(&r->ceph, ceph);
    gboolean ended = FALSE;
    if (aside_left_behind() < LEFT_BEHIND_MAX) {
        if (!aside_call(reclaim, r, reclaim_free, limit_sec * 1000))
            return FALSE;
        ended = r->ended;
    }
    reclaim_free(r);
    return ended;
}
