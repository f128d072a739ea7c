/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unsynced writes of inodes that the kernel has forgotten, whose nodes are gone: a loss is still to
 * be reported to the next opener of the file (unsynced.h). Thread-safe.
 */
#ifndef HEARTH_CACHE_FUSE_LIVE_FORGOTTEN_H
#define HEARTH_CACHE_FUSE_LIVE_FORGOTTEN_H

#include "cache/fuse/live/unsynced.h"
#include "cache/origin/origin.h"

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
guint forgotten_count(Forgotten *forgotten);

#endif
