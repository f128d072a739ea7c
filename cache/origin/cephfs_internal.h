/* What cephfs_mount.c (connection) and cephfs.c (operations) share. */
#ifndef HEARTH_ORIGIN_CEPHFS_INTERNAL_H
#define HEARTH_ORIGIN_CEPHFS_INTERNAL_H

#include <cephfs/libcephfs.h>
#include <pthread.h>
#include "cache/origin/origin.h"

typedef struct CephfsOrigin {
    Origin base;
    struct ceph_mount_info *mount;
    UserPerm *perms; /* the mount's own (root); borrowed */
    char *user_id;
    struct Inode *root;             /* in a snapshot; NULL: what is mounted */
    gboolean leases;                /* delegations are switched on */
    pthread_mutex_t listener_mutex; /* guards listener, also while it is called */
    OriginListener listener;
} CephfsOrigin;

/* src/include/types.h: CEPH_NOSNAP marks what is live. */
#define CEPHFS_NOSNAP ((uint64_t)-2)

static inline uint64_t cephfs_snapshot(uint64_t snapid)
{
    return snapid == CEPHFS_NOSNAP ? 0 : snapid;
}

/*
 * Ends the MDS session of the dead client of that name, by `mount`, which is configured, not yet
 * initialised, and taken over. Returns when done, or after limit_sec.
 */
void cephfs_reclaim(struct ceph_mount_info *mount, const char *client, unsigned limit_sec);

/* Another reference to an inode, or NULL. */
struct Inode *cephfs_get(CephfsOrigin *o, struct Inode *inode);

extern const OriginOps cephfs_origin_ops;

/* cephfs_blobs.c */
int cephfs_blobs_open(Origin *origin, OriginBlobs **blobs);
void cephfs_blobs_close(OriginBlobs *blobs);
ssize_t cephfs_blob_read(OriginBlobs *blobs, const char *name, void *buf, size_t len, uint64_t off);
int cephfs_blob_write(OriginBlobs *blobs, const char *name, const void *buf, size_t len,
                      gboolean exclusive);
int cephfs_blob_remove(OriginBlobs *blobs, const char *name);

void cephfs_destroy(Origin *origin);
void cephfs_listen(Origin *origin, const OriginListener *listener);

#endif
