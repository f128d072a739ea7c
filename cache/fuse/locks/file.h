/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The locks that processes of this node have on one file, and the origin is asked for. What is
 * known here of them serves to give them back, and to know when they were lost.
 *
 * An owner is a number of the kernel's: of a process for fcntl(2)'s locks, of an open file
 * description for those of flock(2) and F_OFD_SETLK. Ceph's client library has no flock() by
 * handle, so a lock by flock(2) is one on the last byte that a file could have, LOCK_FLOCK_BYTE.
 * Locks by fcntl(2) end before it.
 */
#ifndef HEARTH_CACHE_FUSE_LOCKS_FILE_H
#define HEARTH_CACHE_FUSE_LOCKS_FILE_H

#include <fcntl.h>
#include <glib.h>
#include <jansson.h>
#include "cache/fuse/locks/ranges.h"
#include "cache/origin/origin.h"

#define LOCK_FLOCK_BYTE INT64_MAX

typedef struct LockRequest {
    uint64_t fh; /* the handle that it is made with */
    uint64_t owner;
    gboolean is_flock;
    gboolean waits;    /* F_SETLKW, or no LOCK_NB */
    struct flock lock; /* as the kernel gave it; flock(2): only l_type counts */
} LockRequest;

typedef struct LockedFile LockedFile;

/* `node` NULL: a file that no other client can lock, in a snapshot. Takes a reference. */
LockedFile *locked_file_new(Origin *origin, OriginNode *node);
/* All locks go back. No call is running. */
void locked_file_free(LockedFile *file);

/* The bytes that the request means. FALSE: there are none. */
gboolean lock_request_range(const LockRequest *request, LockRange *range);

typedef struct LockEffect {
    gboolean freed;   /* some bytes may have become free for others */
    gboolean leaving; /* what is in the way may be a lock whose last handle here is closed */
} LockEffect;

/*
 * Does not wait for other locks: -EAGAIN then. -EIO: the owner's locks were lost. As flock(2) says,
 * a lock that cannot be changed into the other kind is gone.
 */
int locked_file_set(LockedFile *file, const LockRequest *request, LockEffect *effect);
/* As F_GETLK. l_pid is 0 for an owner on another node. */
int locked_file_get(LockedFile *file, const LockRequest *request, struct flock *lock);
/* close(2) of a duplicate of the handle by that owner: its fcntl locks go back. TRUE: there were
 * some. */
gboolean locked_file_flush(LockedFile *file, uint64_t fh, uint64_t owner);
/* The last close(2): the locks of the open file description go back. */
gboolean locked_file_release(LockedFile *file, uint64_t fh);

/* The owner has locks on the file. */
gboolean locked_file_is_owner(LockedFile *file, const LockRequest *request);
/* Owners have lost their locks with the session, and have not given them up. */
gboolean locked_file_is_lost(LockedFile *file);
/* Adds what owners have, to be given to another process, to the array: [id, handle, owner,
 * is_flock, pid, type, first, last] each. No call is running. */
void locked_file_leave(LockedFile *file, uint64_t id, json_t *lost);
/* One of these, in the other process. */
void locked_file_add_lost(LockedFile *file, const json_t *lost);
/* No owner is known. */
gboolean locked_file_is_idle(LockedFile *file);

#endif
