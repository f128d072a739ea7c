/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles that need no capabilities: the witnesses of file.c, and those through which locks are
 * taken. A file's locks need one of their own: libcephfs gives back the locks of a handle when it
 * is closed, and file.c replaces handles.
 *
 * Since Ceph 19 or 20, ceph_ll_open() with O_DIRECTORY takes a reference to the inode that
 * ceph_ll_close() does not give back (Client::_open, Client::close: only close by descriptor does).
 * The inode of a file that was removed then stays in the MDS, with its bytes in Ceph, for as long
 * as the mount lives. The library's behaviour is tested on `.snap` of the root, to which there is
 * no other reference. A file system's own root shows nothing: libcephfs counts no references to
 * inode 1.
 */
#include <errno.h>
#include <fcntl.h>
#include "cache/origin/cephfs/internal.h"

#define PINNING (O_RDONLY | O_DIRECTORY)

static CephfsPin find_out(CephfsOrigin *o)
{
    struct Inode *root, *snapshots;
    struct ceph_statx stx = {0};
    Fh *fh;
    CephfsPin pin = CEPHFS_PIN_UNKNOWN;
    if (ceph_ll_lookup_root(o->mount, &root) < 0)
        return pin;
    int r = ceph_ll_getattr(o->mount, root, &stx, CEPH_STATX_INO, AT_STATX_DONT_SYNC, o->perms);
    if (r == 0 && stx.stx_ino == CEPH_INO_ROOT)
        r = -ENOENT;
    if (r == 0)
        r = ceph_ll_lookup(o->mount, root, CEPHFS_SNAPSHOT_DIR, &snapshots, &stx, CEPH_STATX_INO, 0,
                           o->perms);
    ceph_ll_put(o->mount, root);
    if (r < 0)
        return pin;
    /* Not listed among the waits: a question about an inode takes another reference to it. */
    if (ceph_ll_open(o->mount, snapshots, PINNING, &fh, o->perms) == 0) {
        ceph_ll_close(o->mount, fh);
        pin = ceph_ll_put(o->mount, snapshots) ? CEPHFS_PIN_GIVEN_BACK : CEPHFS_PIN_KEPT;
    }
    if (pin != CEPHFS_PIN_GIVEN_BACK)
        ceph_ll_put(o->mount, snapshots);
    return pin;
}

void cephfs_pin_init(CephfsOrigin *o)
{
    static _Atomic CephfsPin known = CEPHFS_PIN_UNKNOWN; /* the same for the whole process */
    o->pin = atomic_load(&known);
    if (o->pin == CEPHFS_PIN_UNKNOWN && (o->pin = find_out(o)) != CEPHFS_PIN_UNKNOWN)
        atomic_store(&known, o->pin);
}

int cephfs_open_witness(CephfsOrigin *o, struct Inode *inode, Fh **fh)
{
    *fh = NULL;
    if (o->pin != CEPHFS_PIN_UNKNOWN &&
        CEPHFS_LISTED(o, inode, ceph_ll_open(o->mount, inode, PINNING, fh, o->perms)) == 0) {
        if (o->pin == CEPHFS_PIN_KEPT)
            ceph_ll_put(o->mount, inode);
        return 0;
    }
    *fh = NULL;
    return CEPHFS_LISTED(o, inode, ceph_ll_open(o->mount, inode, O_RDONLY, fh, o->perms));
}

/* ---- locks ---- */

struct OriginLocks {
    Fh *fh;
};

int cephfs_locks_open(Origin *origin, OriginNode *node, OriginLocks **locks)
{
    Fh *fh;
    int r = cephfs_open_witness((CephfsOrigin *)origin, (struct Inode *)node, &fh);
    if (r < 0)
        return r;
    *locks = g_new0(OriginLocks, 1);
    (*locks)->fh = fh;
    return 0;
}

int cephfs_lock_set(Origin *origin, OriginLocks *locks, const struct flock *lock, uint64_t owner)
{
    struct flock set = *lock;
    return ceph_ll_setlk(((CephfsOrigin *)origin)->mount, locks->fh, &set, owner, 0);
}

int cephfs_lock_get(Origin *origin, OriginLocks *locks, struct flock *lock, uint64_t owner)
{
    return ceph_ll_getlk(((CephfsOrigin *)origin)->mount, locks->fh, lock, owner);
}

void cephfs_locks_close(Origin *origin, OriginLocks *locks)
{
    CephfsOrigin *o = (CephfsOrigin *)origin;
    if (!atomic_load(&o->gone))
        ceph_ll_close(o->mount, locks->fh);
    g_free(locks);
}
