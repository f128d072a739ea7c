/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File locks of a session, fcntl(2)'s and flock(2)'s, which the origin keeps so that they exclude
 * processes of all nodes. The origin is asked without waiting. A request that is to wait is put in
 * a list, so it costs no thread; one thread asks for it again. A signal ends the wait (EINTR).
 */
#ifndef HEARTH_CACHE_FUSE_LOCKS_LOCKS_H
#define HEARTH_CACHE_FUSE_LOCKS_LOCKS_H

#include <fuse_lowlevel.h>
#include "cache/fuse/locks/file.h"

typedef struct Locks Locks;

/* `granted` is called before a lock is answered: what the kernel has of the file may be older than
 * the lock. From any thread, with no lock held. */
Locks *locks_new(Origin *origin, void (*granted)(void *data, uint64_t id), void *data);
/* Answers those who wait and gives all locks back. No request is being read any more. NULL is fine.
 */
void locks_free(Locks *locks);

/* The file of a request: its node ID, and its node; NULL: in a snapshot, which is locked for this
 * node alone. */
typedef struct LocksFile {
    uint64_t id;
    OriginNode *node;
} LocksFile;

/* Answers the request, now or later. */
void locks_set(Locks *locks, fuse_req_t req, LocksFile file, const LockRequest *request);
void locks_get(Locks *locks, fuse_req_t req, LocksFile file, const LockRequest *request);
/* close(2) of the handle, or of a duplicate, by that owner. */
void locks_flush(Locks *locks, uint64_t id, uint64_t fh, uint64_t owner);
/* The handle is released. */
void locks_release(Locks *locks, uint64_t id, uint64_t fh);

/* Before locks_leave(): who waits is granted nothing any more. */
void locks_stop_asking(Locks *locks);
/*
 * As locks_free(), for another process that goes on with the session: who waits is not answered,
 * and the result, the caller's, says which owners have locks: they lose them.
 */
json_t *locks_leave(Locks *locks);
/* One of them, of that file, in the other process. */
void locks_add_lost(Locks *locks, LocksFile file, const json_t *lost);

/* Somebody here has lost locks of the file with the session: until they are given up, others may
 * have the locks, and the file is neither to be read nor written. */
gboolean locks_lost(Locks *locks, uint64_t id);

#endif
