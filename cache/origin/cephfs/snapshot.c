/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What only a deleted snapshot had is gone from the OSDs soon, while a client that knows its files
 * may open them still: they then read as holes. So the zeros of a snapshot count only if the MDS
 * lists it after they were read. Listing snapshots always asks the MDS (LSSNAP); looking one up may
 * not.
 */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include "cache/origin/cephfs/internal.h"

/* Whole objects are missing, so whole stripe units are: multiples of CEPH_MIN_STRIPE_UNIT
 * (include/ceph_fs.h). */
#define UNIT 65536

static gboolean has_hole(const char *buf, size_t len, uint64_t off)
{
    for (size_t at = 0, n; at < len; at += n) {
        n = MIN(len - at, UNIT - (off + at) % UNIT);
        if (buf[at] == 0 && memcmp(buf + at, buf + at + 1, n - 1) == 0)
            return TRUE;
    }
    return FALSE;
}

static int is_listed(CephfsOrigin *o, uint64_t snapid)
{
    struct ceph_dir_result *dir;
    struct ceph_statx stx;
    struct dirent entry;
    int r = ceph_opendir(o->mount, "/" CEPHFS_SNAPSHOT_DIR, &dir);
    if (r < 0)
        return r;
    gboolean found = FALSE;
    while (!found &&
           (r = ceph_readdirplus_r(o->mount, dir, &entry, &stx, CEPH_STATX_INO, 0, NULL)) > 0)
        found = stx.stx_dev == snapid;
    ceph_closedir(o->mount, dir);
    if (found)
        return 0;
    return r < 0 ? r : -ESTALE;
}

int cephfs_check_zeros(CephfsOrigin *o, const void *buf, size_t len, uint64_t off)
{
    struct ceph_statx stx;
    if (!o->root || !has_hole(buf, len, off))
        return 0;
    int r = ceph_ll_getattr(o->mount, o->root, &stx, CEPH_STATX_INO, 0, o->perms);
    return r < 0 ? r : is_listed(o, stx.stx_dev);
}
