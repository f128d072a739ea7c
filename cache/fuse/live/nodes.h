/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of inodes the kernel knows. A node ID is a stable number made of the inode number and
 * the snapshot, not a pointer, so that a later process can serve the same kernel again:
 *
 *   bits 0-47  inode number (CephFS allocates 2^40 per MDS rank)
 *   bits 48-63 0 for a live inode, else the snapshot's tag (nodes_tag)
 *   FUSE_ROOT_ID (1) stands for the root, which may have any number
 *
 * Sharded by node ID; a shard's mutex guards its hash table and the counts of its nodes. No lock is
 * held across a call to the origin.
 */
#ifndef HEARTH_CACHE_FUSE_LIVE_NODES_H
#define HEARTH_CACHE_FUSE_LIVE_NODES_H

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/queue.h>
#include "cache/fuse/live/unsynced.h"
#include "cache/fuse/live/pages.h"
#include "cache/fuse/kept.h"
#include "cache/fuse/written.h"
#include "cache/origin/origin.h"

typedef struct Nodes Nodes;
typedef struct KnownNames KnownNames;
typedef struct Handle Handle;

typedef struct Node {
    uint64_t id;
    OriginNode *origin;     /* one reference, given back when the node goes */
    uint64_t lookups;       /* the kernel's; shard mutex */
    unsigned uses;          /* running operations and open handles; shard mutex */
    gboolean asked_for;     /* since nodes_unused() looked at it last; shard mutex */
    TAILQ_ENTRY(Node) turn; /* shard mutex */

    /*
     * Content version of the kernel's pages (0: unknown), and of the attributes that it has. The
     * pages are of that version only while `unsettled` is 0: it counts the reads and writes without
     * a lease and the recalls whose pages are still to be dropped.
     */
    _Atomic uint64_t page_version;
    _Atomic unsigned unsettled;
    _Atomic uint64_t attr_version;
    /* The origin_session() in which the origin let us read its bytes; 0: none. */
    _Atomic uint64_t readable_in;
    /* Written through this session since the last sync_node(): not to be cached before. */
    _Atomic int dirty;
    _Atomic int writers; /* handles open for writing; changes under mutex */
    /* While there are writers: the origin_session() that the kernel's oldest pages are of. What a
     * mapping changed in pages of a session that was lost is not written: others may have written
     * the file since, and a page has bytes beside those that were changed. */
    _Atomic uint64_t pages_of;
    /* Rises before anything here writes the file: a fill that began before is not kept. */
    _Atomic unsigned writes_begun;
    _Atomic unsigned page_waits; /* how many began: pages.h */
    /* No read asks for a lease before (CLOCK_MONOTONIC, ms): it was refused. How long the wait is.
     */
    _Atomic int64_t lease_after;
    _Atomic int lease_patience;
    _Atomic unsigned recalls; /* of leases, also those that go back unasked */
    /* Until then (CLOCK_MONOTONIC_COARSE, ms) the kernel may use the name without asking. */
    _Atomic int64_t name_until;
    _Atomic unsigned moving, moves; /* changes of the name here: under way, ended */
    _Atomic unsigned changes;       /* of names in the directory, made here */
    _Atomic unsigned listings;      /* open ones */

    pthread_mutex_t mutex;       /* guards all below */
    LIST_HEAD(, Handle) handles; /* open ones */
    LIST_HEAD(, PageUse) page_uses;
    Written *written; /* while there are writers: since its contents are of an older version */
    Kept *kept;       /* NULL: nothing */
    uint64_t parent;  /* where the kernel has it (known_names.h) */
    char *name;       /* NULL: nowhere */
    Unsynced unsynced;
} Node;

#define NODE_TAG_SHIFT 48
/* Whether it is in a snapshot, so that it cannot change. */
static inline gboolean node_is_snapshot(const Node *node)
{
    return node->id >> NODE_TAG_SHIFT != 0;
}

Nodes *nodes_new(Origin *origin, OriginNode *root, const OriginAttr *attr);
/* Gives every node back to the origin. No operation may be running. */
void nodes_free(Nodes *nodes);

/* The node, in use until nodes_done(); NULL when the kernel does not know it. */
Node *nodes_use(Nodes *nodes, uint64_t id);
/* The same for one that the kernel knows from an earlier process, if need be: the origin is asked
 * for it. NULL with *error, -ESTALE when there is none any more. */
Node *nodes_use_again(Nodes *nodes, uint64_t id, int *error);
/* The same by the origin's numbers, for its notifications. */
Node *nodes_use_inode(Nodes *nodes, uint64_t ino, uint64_t snapshot);
void nodes_done(Nodes *nodes, Node *node);

/*
 * Takes over `origin_node`, which was found, and counts one lookup of the kernel's. The node
 * returned is in use until nodes_done(). -EOVERFLOW in *error: more snapshots than tags.
 */
Node *nodes_found(Nodes *nodes, OriginNode *origin_node, const OriginAttr *attr, int *error);
void nodes_forget(Nodes *nodes, uint64_t id, uint64_t count);
uint64_t nodes_count(Nodes *nodes);
/* IDs (uint64_t) of about `n` nodes that are not in use here, and that the kernel has not asked for
 * since an earlier call looked at them. */
GArray *nodes_unused(Nodes *nodes, uint64_t n);
/* Calls `visit` for each, with locks of the table held. */
void nodes_each(Nodes *nodes, void (*visit)(Node *node, void *data), void *data);
/* What is known of writes of a node, of an earlier process. Before anything is served. */
void nodes_restore_unsynced(Nodes *nodes, uint64_t id, const Unsynced *unsynced);
/* The tags of snapshots: arrays of [snapshot, tag]. They have to be the same in a later process. */
json_t *nodes_tags(Nodes *nodes);
void nodes_set_tags(Nodes *nodes, const json_t *tags);
KnownNames *nodes_names(Nodes *nodes);
Forgotten *nodes_forgotten(Nodes *nodes);

#endif
