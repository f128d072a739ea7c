/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An origin is where a volume's bytes come from: a CephFS subtree or, for development and unit
 * tests, a local directory. FUSE sessions, the store's fills and warm jobs see Ceph only
 * through this table, so only cache/origin/cephfs/ops.c includes Ceph's headers.
 *
 * Conventions: every function returns 0 or a count on success and -errno on failure; it may block
 * on the network, so no lock is held across a call; every function may be called from any thread.
 *
 * Ownership: OriginNode is a counted reference to an inode. Functions that give one out give the
 * caller a reference of its own, given back with put(). OriginFile belongs to the caller until
 * close().
 */
#ifndef HEARTH_CACHE_ORIGIN_ORIGIN_H
#define HEARTH_CACHE_ORIGIN_ORIGIN_H

#include <fcntl.h>
#include <glib.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include "cache/origin/ceph_client.h"

typedef struct Origin Origin;
typedef struct OriginNode OriginNode;
typedef struct OriginFile OriginFile;
typedef struct OriginDir OriginDir;
typedef struct OriginLocks OriginLocks;

/*
 * Attributes of an inode. `version` changes whenever the content or the metadata does (CephFS:
 * change attribute; dir: derived from ctime). `snapshot` is 0 for a live inode, else the id of
 * the snapshot the inode belongs to.
 */
typedef struct OriginAttr {
    struct stat st;
    uint64_t version;
    uint64_t snapshot;
} OriginAttr;

/* Which fields of a stat setattr() applies. */
enum {
    ORIGIN_SET_MODE = 1 << 0,
    ORIGIN_SET_UID = 1 << 1,
    ORIGIN_SET_GID = 1 << 2,
    ORIGIN_SET_SIZE = 1 << 3,
    ORIGIN_SET_ATIME = 1 << 4,
    ORIGIN_SET_MTIME = 1 << 5,
    ORIGIN_SET_CTIME = 1 << 6,
};

/* A new inode. The user that creates it becomes its owner. */
typedef struct OriginNew {
    mode_t mode;        /* with the type, for mknod(); symlink() ignores it */
    dev_t rdev;         /* for mknod() */
    const char *target; /* for symlink() */
    uid_t uid;
    gid_t gid;
} OriginNew;

/* What create() gives out. */
typedef struct OriginCreated {
    OriginNode *node;
    OriginFile *file;
    OriginAttr attr;
} OriginCreated;

/* One directory entry. `node` is NULL unless readdir was asked for attributes; the reader puts it.
 */
typedef struct OriginEntry {
    char name[256];
    uint64_t ino;
    mode_t type;  /* S_IFMT bits */
    int64_t next; /* offset to continue after this entry */
    OriginNode *node;
    OriginAttr attr;
} OriginEntry;

typedef enum OriginLease {
    ORIGIN_LEASE_NONE,
    /* No other client writes the inode while this is held. Other files of this origin may, when
     * they are open for writing at the time that it is granted. */
    ORIGIN_LEASE_READ,
    ORIGIN_LEASE_WRITE, /* no other client reads or writes it */
} OriginLease;

/*
 * Called once when a granted lease must be returned: return it soon, with
 * lease(file, ORIGIN_LEASE_NONE), after dropping what was cached under it. Runs on a thread of
 * the origin's that may hold its locks: it must only queue work, never call the origin.
 */
typedef void (*OriginRecall)(OriginFile *file, void *data);

/*
 * Notifications from the origin: content or a name may have changed. Called from a
 * thread of the origin's; same rule as OriginRecall.
 */
typedef struct OriginListener {
    void (*inode_changed)(void *data, uint64_t ino, uint64_t snapshot, int64_t off, int64_t len);
    void (*entry_changed)(void *data, uint64_t parent_ino, uint64_t parent_snapshot,
                          const char *name);
    /* The origin asks that the inode be given back, to bound what it holds (MDS cap recall). */
    void (*inode_unwanted)(void *data, uint64_t ino, uint64_t snapshot);
    /* Writes of the file have failed after they were answered. A sync that ends now or later would
     * have covered them. */
    void (*inode_failed)(void *data, uint64_t ino, int r);
    /* No lease is good any more: Ceph does not answer, or the session is lost. */
    void (*leases_void)(void *data);
    void *data;
} OriginListener;

typedef struct OriginOps {
    const char *type;
    /*
     * Where to begin a directory without its entries "." and ".." (they may come nevertheless).
     * libcephfs asks the MDS for the attributes of both.
     */
    int64_t after_dots;

    /* Flushes, disconnects and frees. All nodes and files must have been given back. */
    void (*destroy)(Origin *o);
    /*
     * Sets the receiver of notifications (copied). NULL: none, and no call is running any more on
     * return. The member itself is NULL for an origin that never notifies.
     */
    void (*listen)(Origin *o, const OriginListener *listener);
    /*
     * The number of the session with Ceph, from 1. It changes when a session is lost: writes that
     * were not synced may be lost with it. NULL: that never happens.
     */
    uint64_t (*session)(Origin *o);
    /*
     * Ceph has accepted another key of the same user, or other monitors: later connections use
     * these. NULL: there are no later connections.
     */
    void (*reach)(Origin *o, const char *monitors, const char *key, unsigned timeout_sec);
    /* Whether leases are good now: Ceph was heard from lately. NULL: always. */
    gboolean (*vouches)(Origin *o);
    /*
     * For how long Ceph has been silent although it was asked, in milliseconds; 0 if it is not. A
     * caller that waits for Ceph calls this once in a while: it has Ceph asked. Does not block.
     * NULL: it is never silent.
     */
    uint64_t (*silent_ms)(Origin *o);
    /* Whether it has no connection now, because nobody used it. The next call makes one. NULL: it
     * always has one. */
    gboolean (*rests)(Origin *o);

    int (*root)(Origin *o, OriginNode **node, OriginAttr *attr);
    int (*lookup)(Origin *o, OriginNode *parent, const char *name, OriginNode **node,
                  OriginAttr *attr);
    /* Finds an inode by number, without a path (after a restart). */
    int (*resolve)(Origin *o, uint64_t ino, uint64_t snapshot, OriginNode **node, OriginAttr *attr);
    OriginNode *(*get)(Origin *o, OriginNode *node);
    void (*put)(Origin *o, OriginNode *node);

    /*
     * Whether the origin's user may read the bytes of a file that is not empty: 0; -EPERM or
     * -EACCES: it may not; other errors: unknown now. A user may see a file's name without this
     * right. NULL: it may.
     */
    int (*may_read)(Origin *o, OriginNode *node);

    /* Current attributes; asks the origin unless what is known is guaranteed current. */
    int (*getattr)(Origin *o, OriginNode *node, OriginAttr *attr);
    int (*setattr)(Origin *o, OriginNode *node, const struct stat *st, unsigned set,
                   OriginAttr *attr);

    /* flags as open(2); O_DIRECT asks that the bytes read not be cached in memory. */
    int (*open)(Origin *o, OriginNode *node, int flags, OriginFile **file);
    int (*create)(Origin *o, OriginNode *parent, const char *name, const OriginNew *new, int flags,
                  OriginCreated *created);
    ssize_t (*read)(Origin *o, OriginFile *file, void *buf, size_t len, uint64_t off);
    /* off ORIGIN_APPEND: at the end, of a file opened with O_APPEND; else O_APPEND says nothing. */
    ssize_t (*write)(Origin *o, OriginFile *file, const void *buf, size_t len, uint64_t off);
    int (*fsync)(Origin *o, OriginFile *file, gboolean data_only);
    /* Writes back all that is dirty of an inode, whichever file it was written through. */
    int (*sync_node)(Origin *o, OriginNode *node);
    /* The same for all inodes. NULL: nothing is ever dirty. */
    int (*sync_all)(Origin *o);
    int (*fallocate)(Origin *o, OriginFile *file, int mode, uint64_t off, uint64_t len);
    int (*close)(Origin *o, OriginFile *file);

    /*
     * Takes or gives back a lease on an open file's inode. -EAGAIN: the inode is in use in a
     * way that conflicts; -EOPNOTSUPP: this origin cannot promise anything.
     */
    int (*lease)(Origin *o, OriginFile *file, OriginLease kind, OriginRecall recall, void *data);

    /*
     * Locks of ranges of a file's bytes, which exclude all clients of the origin. They are taken
     * through an OriginLocks of the file, by any number of owners, and go with it. NULL, all four:
     * it has none.
     */
    int (*locks_open)(Origin *o, OriginNode *node, OriginLocks **locks);
    /* As fcntl(2)'s F_SETLK, l_whence being SEEK_SET. -EAGAIN: another lock is in the way; -EIO:
     * the locks are lost with the session that they were taken in. */
    int (*lock_set)(Origin *o, OriginLocks *locks, const struct flock *lock, uint64_t owner);
    /* As F_GETLK. l_pid is what the other owner has set, on whichever node. */
    int (*lock_get)(Origin *o, OriginLocks *locks, struct flock *lock, uint64_t owner);
    void (*locks_close)(Origin *o, OriginLocks *locks);

    int (*mkdir)(Origin *o, OriginNode *parent, const char *name, const OriginNew *new,
                 OriginNode **node, OriginAttr *attr);
    int (*mknod)(Origin *o, OriginNode *parent, const char *name, const OriginNew *new,
                 OriginNode **node, OriginAttr *attr);
    int (*symlink)(Origin *o, OriginNode *parent, const char *name, const OriginNew *new,
                   OriginNode **node, OriginAttr *attr);
    int (*link)(Origin *o, OriginNode *node, OriginNode *parent, const char *name,
                OriginAttr *attr);
    int (*unlink)(Origin *o, OriginNode *parent, const char *name);
    int (*rmdir)(Origin *o, OriginNode *parent, const char *name);
    /* flags: 0 or RENAME_NOREPLACE/RENAME_EXCHANGE; -EINVAL where not supported. */
    int (*rename)(Origin *o, OriginNode *from, const char *name, OriginNode *to,
                  const char *new_name, unsigned flags);
    int (*readlink)(Origin *o, OriginNode *node, char *buf, size_t size);

    int (*opendir)(Origin *o, OriginNode *node, OriginDir **dir);
    /* Continues at `off` (0 or an entry's `next`). 1: *entry is filled; 0: end of directory. */
    int (*readdir)(Origin *o, OriginDir *dir, int64_t off, gboolean with_attr, OriginEntry *entry);
    int (*closedir)(Origin *o, OriginDir *dir);

    /* As getxattr(2): size 0 asks for the length. */
    ssize_t (*getxattr)(Origin *o, OriginNode *node, const char *name, void *buf, size_t size);
    ssize_t (*listxattr)(Origin *o, OriginNode *node, char *buf, size_t size);
    int (*setxattr)(Origin *o, OriginNode *node, const char *name, const void *value, size_t size,
                    int flags);
    int (*removexattr)(Origin *o, OriginNode *node, const char *name);

    int (*statfs)(Origin *o, OriginNode *node, struct statvfs *st);
} OriginOps;

#define ORIGIN_APPEND UINT64_MAX

/* Implementations embed this as their first member. */
struct Origin {
    const OriginOps *ops;
    /* Names the namespace inode numbers belong to: cluster fsid (16 bytes) and file system id. */
    uint8_t space[24];
};

/* What it takes to reach a CephFS subtree. Borrowed for the call; the key is not logged. */
typedef struct CephfsOriginConfig {
    const char *monitors; /* comma separated host:port or [v2:..,v1:..] */
    const char *user_id;  /* without "client." */
    const char *key;
    const char *fs_name; /* NULL: the cluster's default */
    /* Within a snapshot, a name "*" that does not exist means the only directory there: the mgr
     * chooses the name of a subvolume's content. */
    const char *root_path;
    unsigned timeout_sec;
    const char *client;      /* name of this session, unique for ever; NULL: none */
    const char *dead_client; /* of a session whose owner died: it is ended first; NULL: none */
    uint64_t memory_bytes;   /* of files that libcephfs keeps; 0: the least */
    CephClient ceph;
} CephfsOriginConfig;

/* Errors are in G_IO_ERROR: TIMED_OUT, PERMISSION_DENIED, NOT_FOUND, FAILED; they name the value
 * and the fix. */
Origin *origin_cephfs_open(const CephfsOriginConfig *config, GError **error);
/* After a close has written everything, or 30 s have passed, the session ends. This waits until the
 * process has no session. FALSE: it may still have one after timeout_ms. */
gboolean origin_cephfs_await_ends(unsigned timeout_ms);
/* How many connections to CephFS the process has. */
unsigned origin_cephfs_connections(void);
/* A local directory as origin: development and tests. Leases are granted and recalled among the
 * openers of this origin only. */
Origin *origin_dir_open(const char *path, GError **error);

/*
 * The inode of a path beneath the root, its names separated by single slashes; "" is the root.
 * Symbolic links are not followed.
 */
int origin_find(Origin *o, const char *path, OriginNode **node, OriginAttr *attr);

static inline uint64_t origin_session(Origin *o)
{
    return o->ops->session ? o->ops->session(o) : 1;
}

static inline int origin_may_read(Origin *o, OriginNode *node)
{
    return o->ops->may_read ? o->ops->may_read(o, node) : 0;
}

static inline gboolean origin_vouches(Origin *o)
{
    return !o->ops->vouches || o->ops->vouches(o);
}

static inline uint64_t origin_silent_ms(Origin *o)
{
    return o->ops->silent_ms ? o->ops->silent_ms(o) : 0;
}

static inline gboolean origin_rests(Origin *o)
{
    return o->ops->rests && o->ops->rests(o);
}

static inline void origin_reach(Origin *o, const char *monitors, const char *key,
                                unsigned timeout_sec)
{
    if (o->ops->reach)
        o->ops->reach(o, monitors, key, timeout_sec);
}

static inline void origin_close(Origin *o)
{
    if (o)
        o->ops->destroy(o);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Origin, origin_close)

#endif
