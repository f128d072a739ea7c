/* SPDX-License-Identifier: Apache-2.0 */
/* Inodes of libcephfs: references to them, their attributes as an origin's, holes of snapshots. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>
#include "cache/origin/cephfs/internal.h"

/* Other clients store a device's number as Linux has it inside: 12 bits of major, 20 of minor. */
static dev_t device_of(uint64_t stored)
{
    return makedev((unsigned)(stored >> 20), (unsigned)(stored & 0xfffff));
}

dev_t cephfs_stored_device(dev_t device)
{
    return (dev_t)major(device) << 20 | minor(device);
}

void cephfs_fill_attr(OriginAttr *attr, const struct ceph_statx *stx)
{
    *attr = (OriginAttr){
        .st =
            {
                .st_dev = stx->stx_dev,
                .st_ino = stx->stx_ino,
                .st_mode = stx->stx_mode,
                .st_nlink = stx->stx_nlink,
                .st_uid = stx->stx_uid,
                .st_gid = stx->stx_gid,
                .st_rdev = device_of(stx->stx_rdev),
                .st_size = (off_t)stx->stx_size,
                .st_blksize = stx->stx_blksize,
                .st_blocks = (blkcnt_t)stx->stx_blocks,
                .st_atim = stx->stx_atime,
                .st_mtim = stx->stx_mtime,
                .st_ctim = stx->stx_ctime,
            },
        .version = stx->stx_version,
        /* libcephfs gives the snapshot an inode belongs to as its device. */
        .snapshot = cephfs_snapshot(stx->stx_dev),
    };
}

/* libcephfs counts references but offers only "find by number" to take another. */
struct Inode *cephfs_get(CephfsOrigin *o, struct Inode *inode)
{
    struct ceph_statx stx;
    if (ceph_ll_getattr(o->mount, inode, &stx, CEPH_STATX_INO, AT_STATX_DONT_SYNC, o->perms) != 0)
        return NULL;
    vinodeno_t vino = {{stx.stx_ino}, {stx.stx_dev}};
    return ceph_ll_get_inode(o->mount, vino);
}

/*
 * What only a deleted snapshot had is gone from the OSDs soon, while a client that knows its files
 * may open them still: they then read as holes. So the zeros of a snapshot count only if the MDS
 * lists it after they were read. Listing snapshots always asks the MDS (LSSNAP); looking one up may
 * not.
 */

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
