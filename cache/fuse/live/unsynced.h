/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unsynced writes of an inode, and whether they may be lost: when the origin loses its session,
 * such writes may be gone, or were never more than in memory. Each handle that is open then gets
 * EIO once from its next fsync, as with the kernel's errseq_t (lib/errseq.c); one opened later gets
 * it when no other has had it. Each close of a handle that was open then gets EIO too, until an
 * fsync of it has: a close takes nothing away, for it may be that of a copy, in a child that was
 * forked. The same goes for writes that were found to have failed when their handle was closed.
 */
#ifndef HEARTH_CACHE_FUSE_LIVE_UNSYNCED_H
#define HEARTH_CACHE_FUSE_LIVE_UNSYNCED_H

#include <glib.h>
#include <stdint.h>
#include "cache/origin/origin.h"

typedef struct Session Session;
typedef struct Node Node;

/* Of a node, guarded by its mutex; zero at first. */
typedef struct Unsynced {
    uint64_t writes;   /* number of writes */
    uint64_t synced;   /* number of these that are safe, or were reported lost */
    uint64_t session;  /* the origin's, of the first that is not */
    unsigned losses;   /* how often some were lost */
    unsigned reported; /* number of losses that an fsync has reported */
    int error;         /* of the last loss, negative */
} Unsynced;

/* Of a handle, guarded by its node's mutex: the number of losses that it has seen. */
typedef struct UnsyncedSeen {
    unsigned by_fsync;
    unsigned by_close;
} UnsyncedSeen;

/* Notes that writes have failed, with r. The caller has the lock. */
void unsynced_lose(Unsynced *unsynced, int r);

/* The origin's session, to be asked for before a write begins. */
uint64_t unsynced_session(Session *session);
/* A write, or another change that a sync is to make safe, was made; begun in that session. */
void unsynced_wrote(Session *session, Node *node, uint64_t in_session);
/* The same, if r, which the change came to, is 0. Returns r. */
int unsynced_changed(Session *session, Node *node, uint64_t in_session, int r);
/* What a sync that begins now will make safe: for unsynced_synced(). */
uint64_t unsynced_mark(Node *node);
/* A sync that began at `mark` has succeeded. */
void unsynced_synced(Session *session, Node *node, uint64_t mark);
/* Whether there are writes that no sync has made safe. */
gboolean unsynced_any(Node *node);
/* A message for the log. */
void unsynced_report(const char *volume, uint64_t ino, int r);
/* Writes before have failed, with r. */
void unsynced_failed(Node *node, int r);
/* Of a handle that is opened now. */
UnsyncedSeen unsynced_seen(Session *session, Node *node);
/* For an fsync: the error when something was lost since *seen, which is brought up to date; else 0.
 */
int unsynced_error(Session *session, Node *node, UnsyncedSeen *seen);
/* The same for a close, which changes nothing. */
int unsynced_error_at_close(Session *session, Node *node, const UnsyncedSeen *seen);

/* ---- of inodes that the kernel has forgotten ---- */

/*
 * Their nodes are gone: a loss is still to be reported to the next opener of the file. Thread-safe.
 */
/* With this many, the whole volume is synced, after which the table can be emptied. */
#define FORGOTTEN_MANY 4096

typedef struct Forgotten Forgotten;

Forgotten *forgotten_new(void);
void forgotten_free(Forgotten *forgotten);
/* Keeps the state of the node with that ID, unless its writes are safe and its losses reported. */
void forgotten_keep(Forgotten *forgotten, uint64_t id, const Unsynced *unsynced);
/* Removes and returns the state, which the new node of the inode has from then on; zero: none. */
Unsynced forgotten_take(Forgotten *forgotten, uint64_t id);
/* Writes of the inode have failed, with r. */
void forgotten_failed(Forgotten *forgotten, uint64_t id, int r);
/* TRUE, once until forgotten_sync(): there are FORGOTTEN_MANY more than it left. */
gboolean forgotten_are_many(Forgotten *forgotten);
/* Has all of the volume written to Ceph, and drops the entries that are safe then. */
void forgotten_sync(Forgotten *forgotten, Origin *origin);
/* Calls `visit` for each, with the table's lock held. */
void forgotten_each(Forgotten *forgotten,
                    void (*visit)(uint64_t id, const Unsynced *unsynced, void *data), void *data);
/* Of an earlier process: kept in any case. */
void forgotten_restore(Forgotten *forgotten, uint64_t id, const Unsynced *unsynced);
guint forgotten_count(Forgotten *forgotten);

#endif
