/* What cephfs_mount.c (connection) and cephfs.c (operations) share. */
#ifndef HEARTH_ORIGIN_CEPHFS_INTERNAL_H
#define HEARTH_ORIGIN_CEPHFS_INTERNAL_H

#include <cephfs/libcephfs.h>
#include <pthread.h>
#include <sys/queue.h>
#include "cache/origin/origin.h"

/* An operation under way that may wait for capabilities; on its thread's stack. */
typedef struct CephfsWait {
    LIST_ENTRY(CephfsWait) link;
    struct Inode *inode; /* lives as long as this */
    int64_t ask_at_ms;   /* when its attributes are asked for; CLOCK_MONOTONIC */
} CephfsWait;

/* Operations that may wait for capabilities (cephfs_wait.c). */
typedef struct CephfsWaits {
    pthread_mutex_t mutex; /* guards all but the thread */
    pthread_cond_t changed;
    LIST_HEAD(, CephfsWait) list;
    gboolean resting; /* the thread, until there is somebody */
    gboolean stopping;
    pthread_t thread;
} CephfsWaits;

/* What was listed for lookups to come (cephfs_prime.c). */
typedef struct CephfsPrime {
    pthread_mutex_t mutex;
    GHashTable *lookups; /* mutex; directory's Inode, only compared -> how many, or all listed */
    unsigned unused;     /* mutex; entries listed and not yet looked up, about */
} CephfsPrime;

typedef struct CephfsPoolRights {
    int64_t id;
    unsigned files; /* that were asked for */
    gboolean all;   /* of it may be read, whatever the namespace */
} CephfsPoolRights;

/* What this user may read (cephfs_rights.c). */
#define CEPHFS_RIGHTS_POOLS 16
typedef struct CephfsRights {
    pthread_mutex_t mutex; /* a leaf */
    unsigned n;            /* mutex, as the next */
    CephfsPoolRights pools[CEPHFS_RIGHTS_POOLS];
} CephfsRights;

typedef struct CephfsOrigin {
    Origin base;
    struct ceph_mount_info *mount;  /* NULL: abandoned */
    UserPerm *perms;                /* the mount's own (root); borrowed */
    struct Inode *root;             /* in a snapshot; NULL: what is mounted */
    struct Fh *canary;              /* what is mounted; a lock on it lives as long as the session */
    gboolean leases;                /* delegations are switched on */
    pthread_mutex_t listener_mutex; /* guards listener, also while it is called */
    OriginListener listener;
    CephfsWaits waits;
    CephfsPrime prime;
    CephfsRights rights;
} CephfsOrigin;

/* src/include/types.h: CEPH_NOSNAP marks what is live. */
#define CEPHFS_NOSNAP ((uint64_t)-2)

#define CEPHFS_SNAPSHOT_DIR ".snap"

static inline uint64_t cephfs_snapshot(uint64_t snapid)
{
    return snapid == CEPHFS_NOSNAP ? 0 : snapid;
}

/*
 * Ends the MDS session of the dead client of that name, by `mount`, which is configured, not yet
 * initialised, and taken over. Returns when done, or after limit_sec. TRUE: an MDS answered, and
 * there is no such session now.
 */
gboolean cephfs_reclaim(struct ceph_mount_info *mount, const char *client, unsigned limit_sec);

/* -ESTALE: what was just read has holes, and the snapshot that it was read of is no more. Other
 * -errno: that cannot be told. */
int cephfs_check_zeros(CephfsOrigin *o, const void *buf, size_t len, uint64_t off);

/* Another reference to an inode, or NULL. */
struct Inode *cephfs_get(CephfsOrigin *o, struct Inode *inode);

/* Before a lookup in the directory. */
void cephfs_prime(CephfsOrigin *o, struct Inode *dir);
void cephfs_prime_init(CephfsPrime *p);
void cephfs_prime_clear(CephfsPrime *p);

void cephfs_waits_start(CephfsOrigin *o);
void cephfs_waits_stop(CephfsOrigin *o);
void cephfs_wait_begin(CephfsOrigin *o, CephfsWait *wait, struct Inode *inode);
void cephfs_wait_end(CephfsOrigin *o, CephfsWait *wait);
/* A lease of the inode has gone back, by itself or with its file. */
void cephfs_lease_returned(CephfsOrigin *o, struct Inode *inode);

int cephfs_may_read(Origin *o, OriginNode *node);

extern const OriginOps cephfs_origin_ops;

void cephfs_destroy(Origin *origin);
void cephfs_listen(Origin *origin, const OriginListener *listener);

#endif
