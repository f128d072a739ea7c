/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to CephFS, for the files of this folder, from the bottom up: inode.c (references,
 * attributes), wait.c, prime.c, rights.c, rename.c; witness.c, handle.c (handles of open files,
 * leases), share.c (which file has which), file.c (their writes), listing.c; end.c (how a
 * connection ends); ops.c (the table of operations); mount.c (how it is made); connect.c (attempts
 * with a bounded wait); open.c (connections that follow one another).
 */
#ifndef HEARTH_CACHE_ORIGIN_CEPHFS_INTERNAL_H
#define HEARTH_CACHE_ORIGIN_CEPHFS_INTERNAL_H

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>
#include "cache/origin/cephfs/client/client.h"
#include "common/tasks.h"

/* An operation under way that may wait for capabilities; on its thread's stack. */
typedef struct CephfsWait {
    LIST_ENTRY(CephfsWait) link;
    struct Inode *inode; /* lives as long as this */
    int64_t ask_at_ms;   /* when its attributes are asked for; CLOCK_MONOTONIC */
    int64_t patience_ms; /* from then to the next time */
} CephfsWait;

/* Operations that may wait for capabilities (wait.c). */
typedef struct CephfsWaits {
    pthread_mutex_t mutex; /* guards all but the thread */
    pthread_cond_t changed;
    LIST_HEAD(, CephfsWait) list;
    GHashTable *asked; /* inodes that are asked for now */
    gboolean resting;  /* the thread, until there is an operation */
    gboolean stopping;
    pthread_t thread;
    Tasks *askers;
} CephfsWaits;

/* Listings that prepare later lookups (prime.c). */
typedef struct CephfsPrime {
    pthread_mutex_t mutex;
    GHashTable *lookups; /* mutex; directory's Inode, only compared -> how many, or all listed */
    unsigned unused;     /* mutex; entries listed and not yet looked up, about */
} CephfsPrime;

/* How many names libcephfs keeps (rename.c). */
typedef struct CephfsNames {
    pthread_mutex_t mutex; /* a leaf */
    unsigned moves;        /* mutex; that want none kept */
    unsigned kept;         /* mutex; while there are no such moves */
    unsigned most;
} CephfsNames;

/* An open file of libcephfs (handle.c). */
typedef struct CephfsHandle {
    struct CephfsOrigin *origin;
    struct Inode *inode; /* which it keeps */
    Fh *fh;
    int flags;         /* to open it with again */
    int64_t opened_ms; /* CephfsFiles.beside: CLOCK_MONOTONIC */
    unsigned files;    /* that have it; CephfsFiles.mutex, as all below */
    unsigned uses;     /* running calls, of which these are reads and writes: */
    unsigned reads, writes;
    unsigned writing;   /* writes of its files that wait, run, or run with one that it replaced */
    gboolean abandoned; /* no file has it, and the last call closes it */
    gboolean awaited;   /* a sync waits for that: CephfsFiles.leaving */
    uint64_t round;     /* of the last look at it (file.c) */
    /* The number of the last write that no sync has covered (CephfsFiles.writes); 0: there is none,
     * as always when it cannot write. */
    uint64_t written;
    gboolean leasing;   /* a thread asks libcephfs for its lease, or gives it back */
    gboolean recalled;  /* the lease */
    gboolean narrows;   /* no lease is granted */
    GPtrArray *lessees; /* OriginFiles that have the lease */
} CephfsHandle;

struct OriginFile {
    struct Inode *inode;  /* of the handle, which keeps it */
    int flags;            /* that it was opened with */
    CephfsHandle *handle; /* CephfsFiles.mutex, as the next two */
    unsigned writing;     /* writes, from before they begin */
    CephfsHandle *leased; /* whose lease it has; NULL: none */
    OriginRecall recall;
    void *data;
};

/* Writes that are not synced (file.c). */
typedef struct CephfsFiles {
    _Atomic uint64_t writes; /* of all files; what a sync covers has a number known before it */
    pthread_mutex_t mutex;   /* guards all below but the threads */
    pthread_cond_t changed;
    GHashTable *open;    /* inode -> GPtrArray of its OriginFiles */
    GHashTable *beside;  /* inode -> CephfsHandle for reads beside writes; it has a file then */
    GHashTable *leaving; /* inode -> how many of its handles are awaited */
    /* Inodes of which a handle that can write is being closed; no file that has one is freed. */
    GHashTable *looked_at;
    uint64_t looks;                        /* so many began */
    GHashTable *witness_of;                /* inode -> CephfsWitness */
    TAILQ_HEAD(, CephfsWitness) witnesses; /* the oldest first */
    unsigned heard;                        /* witnesses that are being closed */
    gboolean stopping;
    pthread_t thread;
    Tasks *hearers;
    Tasks *narrowers;
} CephfsFiles;

typedef struct CephfsPoolRights {
    int64_t id;
    unsigned files; /* that were asked for */
    gboolean all;   /* of it may be read, whatever the namespace */
} CephfsPoolRights;

/* What this user may read (rights.c). */
#define CEPHFS_RIGHTS_POOLS 16
typedef struct CephfsRights {
    pthread_mutex_t mutex; /* a leaf */
    unsigned n;            /* mutex, as the next */
    CephfsPoolRights pools[CEPHFS_RIGHTS_POOLS];
} CephfsRights;

/* Whether a file that is opened as a directory keeps a reference (witness.c). */
typedef enum CephfsPin { CEPHFS_PIN_UNKNOWN, CEPHFS_PIN_GIVEN_BACK, CEPHFS_PIN_KEPT } CephfsPin;

typedef struct CephfsOrigin {
    Origin base;
    _Atomic unsigned holders; /* its owner, and the thread that ends it */
    struct ceph_mount_info *mount;
    SessionName *name;     /* until it has ended; NULL: none */
    uint64_t memory_bytes; /* taken of client_memory.h */
    gboolean mounted;
    _Atomic gboolean gone;          /* it has ended or is about to: no more calls */
    _Atomic gboolean left;          /* its end did not return in time, and libcephfs lives on */
    UserPerm *perms;                /* the mount's own (root); borrowed */
    struct Inode *root;             /* in a snapshot; NULL: what is mounted */
    struct Fh *canary;              /* what is mounted; a lock on it lives as long as the session */
    gboolean leases;                /* delegations are switched on */
    pthread_mutex_t listener_mutex; /* guards listener, also while it is called */
    OriginListener listener;
    CephfsWaits waits;
    CephfsPrime prime;
    CephfsRights rights;
    CephfsNames names;
    CephfsFiles files;
    CephfsPin pin;
    Tasks *lookers; /* of entries of snapshots (listing.c) */
} CephfsOrigin;

/* flags as open(2). */
static inline gboolean cephfs_can_write(int flags)
{
    return (flags & O_ACCMODE) != O_RDONLY;
}

/* Attributes that are asked for. */
#define CEPHFS_WANT (CEPH_STATX_BASIC_STATS | CEPH_STATX_VERSION)

/* src/include/types.h: CEPH_NOSNAP marks what is live. */
#define CEPHFS_NOSNAP ((uint64_t)-2)

static inline uint64_t cephfs_snapshot(uint64_t snapid)
{
    return snapid == CEPHFS_NOSNAP ? 0 : snapid;
}

/* -ESTALE: the bytes just read have holes, and their snapshot does not exist any more. Other
 * -errno: unknown. */
int cephfs_check_zeros(CephfsOrigin *o, const void *buf, size_t len, uint64_t off);

/* --- inode.c --- */
/* Another reference to an inode, or NULL. */
struct Inode *cephfs_get(CephfsOrigin *o, struct Inode *inode);
void cephfs_fill_attr(OriginAttr *attr, const struct ceph_statx *stx);
/* A device's number as CephFS stores it. */
dev_t cephfs_stored_device(dev_t device);

/* Before a lookup in the directory. */
void cephfs_prime(CephfsOrigin *o, struct Inode *dir);
void cephfs_prime_init(CephfsPrime *p);
void cephfs_prime_clear(CephfsPrime *p);

/* FALSE: no thread could be made. */
gboolean cephfs_waits_start(CephfsOrigin *o);
void cephfs_waits_stop(CephfsOrigin *o);
void cephfs_wait_begin(CephfsOrigin *o, CephfsWait *wait, struct Inode *inode);
void cephfs_wait_end(CephfsOrigin *o, CephfsWait *wait);
/* A lease of the inode was returned, by itself or with its file. */
void cephfs_lease_returned(CephfsOrigin *o, struct Inode *inode);

/* The call's result; it is listed among those that may wait for capabilities of the inode. */
#define CEPHFS_LISTED(o, inode, call)                                                              \
    ({                                                                                             \
        CephfsWait wait;                                                                           \
        cephfs_wait_begin((CephfsOrigin *)(o), &wait, inode);                                      \
        int listed = (call);                                                                       \
        cephfs_wait_end((CephfsOrigin *)(o), &wait);                                               \
        listed;                                                                                    \
    })

/* Once mounted, before any other call. */
void cephfs_pin_init(CephfsOrigin *o);
/* A handle of a file that needs as few capabilities as possible. */
int cephfs_open_witness(CephfsOrigin *o, struct Inode *inode, Fh **fh);

int cephfs_locks_open(Origin *origin, OriginNode *node, OriginLocks **locks);
int cephfs_lock_set(Origin *origin, OriginLocks *locks, const struct flock *lock, uint64_t owner);
int cephfs_lock_get(Origin *origin, OriginLocks *locks, struct flock *lock, uint64_t owner);
void cephfs_locks_close(Origin *origin, OriginLocks *locks);

/* --- handle.c --- */
/* Of the handle for a file that is opened with these. */
int cephfs_handle_flags(int flags);
int cephfs_open_again(CephfsOrigin *o, struct Inode *inode, int flags, Fh **fh);
/* Reports the error of a close to the listener. A lost session is reported elsewhere. */
void cephfs_report_failed_write(CephfsOrigin *o, uint64_t ino, int r);
uint64_t cephfs_number_of(CephfsOrigin *o, struct Inode *inode);
CephfsHandle *cephfs_handle_new(CephfsOrigin *o, struct Inode *inode, Fh *fh, int flags);
/* Closes it and frees it. No file or call has it. */
int cephfs_handle_close(CephfsHandle *handle);
void cephfs_handle_free(CephfsHandle *handle);
/* No file has it any more. It is closed by the call that uses it last; or it is added to `unused`,
 * which is for cephfs_handles_close() once it is unlocked. */
void cephfs_handle_abandon_locked(CephfsHandle *handle, GPtrArray *unused);
/* They report errors of writes that went through them. */
void cephfs_handles_close(const GPtrArray *abandoned);
/* Whether handles that had writes are still to be closed, and then report. */
gboolean cephfs_handles_leave_locked(const CephfsFiles *f, const struct Inode *inode);
/* Ends the use of a handle, which was counted in `uses`. */
void cephfs_handle_done(CephfsOrigin *o, CephfsHandle *handle);
/* The inode's handle for reads beside writes, opened if need be; used by one more. */
int cephfs_beside_use(CephfsOrigin *o, struct Inode *inode, CephfsHandle **used);
/* Gives it up; as abandon(). */
void cephfs_beside_drop_locked(CephfsFiles *f, struct Inode *inode, GPtrArray *unused);
/* There is one, and it was opened just now. */
gboolean cephfs_beside_is_new_locked(const CephfsFiles *f, struct Inode *inode);
/* Gives back a file's part in a lease, if it has one. */
void cephfs_lease_give(CephfsOrigin *o, OriginFile *file);
void cephfs_lease_recall_locked(CephfsHandle *handle);
int cephfs_lease(Origin *origin, OriginFile *file, OriginLease kind, OriginRecall recall,
                 void *data);

/* --- share.c --- */
/* flags as open(2). */
int cephfs_file_open(CephfsOrigin *o, struct Inode *inode, int flags, OriginFile **file);
/* `flags`: those that fh was opened with. */
OriginFile *cephfs_file_new(CephfsOrigin *o, Fh *fh, struct Inode *inode, int flags);
/* The inode's files, borrowed; NULL: none. */
GPtrArray *cephfs_files_of_locked(CephfsFiles *f, struct Inode *inode);
/* Whether one of them can write. */
gboolean cephfs_files_write_locked(CephfsFiles *f, struct Inode *inode);
/* The handle that it had, which may have no file now. */
CephfsHandle *cephfs_file_unlist_locked(CephfsFiles *f, OriginFile *file);
/* The last file that can write was closed: the others get handles of their own. Waits until the
 * lease has gone back, or the connection ends. Adds the handles that have no file then, in use, for
 * the caller to close. */
void cephfs_share_narrow(CephfsOrigin *o, struct Inode *inode, GPtrArray *left);
/*
 * Replaces a handle in all its files by a new one, and closes it: *told is the result of that. The
 * caller has used it, which this ends. `mark`: of cephfs_files_look(). -errno: there is no new one.
 */
int cephfs_handle_renew(CephfsOrigin *o, CephfsHandle *handle, uint64_t mark, int *told);
/* The handle that a read of the file uses until its end. -errno: there is none. */
int cephfs_read_begin(CephfsOrigin *o, OriginFile *file, CephfsHandle **used);
void cephfs_read_end(CephfsOrigin *o, CephfsHandle *used);
/* The same of a write. `wrote`: it may have changed something. */
int cephfs_write_begin(CephfsOrigin *o, OriginFile *file, CephfsHandle **used);
void cephfs_write_end(CephfsOrigin *o, OriginFile *file, CephfsHandle *used, gboolean wrote);

/* --- file.c --- */
/* A file that was opened: if its handle can write, it takes the place of the inode's witness. */
void cephfs_file_is_witness(CephfsOrigin *o, OriginFile *file);
int cephfs_file_close(CephfsOrigin *o, OriginFile *file);
/* Taken before a sync: the writes up to this one are covered by it. */
uint64_t cephfs_files_mark(CephfsOrigin *o);
/* After a sync of the inode: reports writes up to the mark that have failed to the listener
 * (inode_failed). -errno: this cannot be checked now. */
int cephfs_files_look(CephfsOrigin *o, struct Inode *inode, uint64_t mark);
/* The same for closed files, after a sync of all. */
int cephfs_files_look_at_closed(CephfsOrigin *o, uint64_t mark);
/* FALSE: no thread could be made. */
gboolean cephfs_files_start(CephfsOrigin *o);
/* `lost`: open files are lost with the connection. */
void cephfs_files_stop(CephfsOrigin *o, gboolean lost);
void cephfs_files_clear(CephfsFiles *f);

int cephfs_opendir(Origin *origin, OriginNode *node, OriginDir **dir);
int cephfs_readdir(Origin *origin, OriginDir *dir, int64_t off, gboolean with_attr,
                   OriginEntry *entry);
int cephfs_closedir(Origin *origin, OriginDir *dir);
void cephfs_lookers_start(CephfsOrigin *o);
void cephfs_lookers_stop(CephfsOrigin *o);

int cephfs_may_read(Origin *o, OriginNode *node);

/* Has libcephfs keep as many names as are the connection's share now (client_memory.h). */
void cephfs_names_share(CephfsOrigin *o);
int cephfs_rename(Origin *origin, OriginNode *from, const char *name, OriginNode *to,
                  const char *new_name, unsigned flags);

extern const OriginOps cephfs_origin_ops;

/* --- end.c --- */
/* Asks whether the session still lives: 0 or -errno of Ceph. */
int cephfs_canary_check(Origin *origin);
int cephfs_canary_take(CephfsOrigin *o);
/* Ends what mount_all() has begun, when the connection was never used. */
void cephfs_unmount(CephfsOrigin *o);
/* Gives up one of the holders' references. */
void cephfs_release(CephfsOrigin *o);
/* Ends a connection that was lost: nothing is written back. */
void cephfs_abandon(Origin *origin);
void cephfs_destroy(Origin *origin);
void cephfs_listen(Origin *origin, const OriginListener *listener);

#endif
