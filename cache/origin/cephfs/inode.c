/* SPDX-License-Identifier: Apache-2.0 */
/* Inodes of libcephfs: references to them, and their attributes as an origin's. */
#include <fcntl.h>
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
