/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is unsynced in inodes that the kernel has forgotten, with their nodes: a loss of it is still
 * to be reported to whoever opens the file next (unsynced.h). Threads may call at any time.
 */
#ifndef HEARTH_CACHE_FUSE_LIVE_FORGOTTEN_H
#define HEARTH_CACHE_FUSE_LIVE_FORGOTTEN_H

#include "cache/fuse/live/unsynced.h"
#include "cache/origin/origin.h"

/* So many are worth a sync of the whole volume, after which they need not be known any more. */
#define FORGOTTEN_MANY 4096

typedef struct Forgotten Forgotten;

Forgotten *forgotten_new(void);
void forgotten_free(Forgotten *forgotten);
/* Of the node with that ID. Nothing is kept of one whose writes are safe, and losses reported. */
void forgotten_keep(Forgotten *forgotten, uint64_t id, const Unsynced *unsynced);
/* What there is of it, which is known to its new node from here on; zero: nothing. */
Unsynced forgotten_take(Forgotten *forgotten, uint64_t id);
/* Writes of it have failed, with r. */
void forgotten_failed(Forgotten *forgotten, uint64_t id, int r);
/* TRUE, once until forgotten_sync(): there are FORGOTTEN_MANY more than it left. */
gboolean forgotten_are_many(Forgotten *forgotten);
/* Has all of the volume written to Ceph, and lets go of what is safe then. */
void forgotten_sync(Forgotten *forgotten, Origin *origin);
guint forgotten_count(Forgotten *forgotten);

#endif
