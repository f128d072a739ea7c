/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notifies the kernel, from threads of its own, of what the origin reports (changed, unwanted,
 * lease recalled) and of pages that a read leaves without a guarantee. The origin's callbacks hold
 * its locks, and the kernel may wait for pages that another request is filling.
 *
 * A lease goes back when the kernel has no page of its inode left that anyone could read. What is
 * to be dropped of one inode is one piece of work, and no inode waits for another (lanes.h). A drop
 * goes around pages whose request waits here for Ceph (pages.h).
 */
#ifndef HEARTH_CACHE_FUSE_LIVE_NOTIFY_H
#define HEARTH_CACHE_FUSE_LIVE_NOTIFY_H

#include <stdint.h>
#include "cache/origin/origin.h"

typedef struct Notifier Notifier;
typedef struct Session Session;
typedef struct Handle Handle;
typedef struct Node Node;

/* What the notifier does about leases; handles.c has the functions. */
typedef struct NotifierLeases {
    /* The kernel has no page of the handle's node any more: gives the lease back. */
    void (*pages_dropped)(Session *session, Handle *handle);
    /* The leases of a node are void, without a recall. */
    void (*lost)(Node *node);
    /* All leases of the session are void. Under locks of the origin: only queues. */
    void (*all_void)(Session *session);
} NotifierLeases;

/* NULL with G_IO_ERROR: no thread can be made. */
Notifier *notifier_start(Session *session, const NotifierLeases *leases, GError **error);
/* Handles what is queued, then ends. No origin callback may come any more. */
void notifier_stop(Notifier *notifier);

/* Has the origin notify this notifier. */
void notifier_listen(Notifier *notifier, Origin *origin);
/*
 * Has all pages of the handle's node dropped, then calls pages_dropped() on the handle.
 * The handle is kept until then by the caller's reference. Only queues.
 */
void notifier_recall(Notifier *notifier, Node *node, Handle *handle);
/* Drops all pages of a node soon: they are not guaranteed any more. */
void notifier_drop_soon(Notifier *notifier, Node *node);
/* Drops all pages of a node that no request here waits for, before it returns. */
void notifier_drop_now(Notifier *notifier, Node *node);
/* Drops the pages of [off, off+len), then counts node->unsettled down. */
void notifier_drop_pages(Notifier *notifier, Node *node, int64_t off, int64_t len);

/* Has unsynced writes of forgotten inodes written to the origin (unsynced.h). */
void notifier_sync_forgotten(Notifier *notifier);

/* Asks the kernel to forget about so many inodes that are not in use. Only queues. */
void notifier_forget(Notifier *notifier, uint64_t count);

/* For a session that leaves. TRUE: nothing is queued or under way; FALSE: something still was after
 * timeout_ms. */
gboolean notifier_await_idle(Notifier *notifier, unsigned timeout_ms);
/* Waits, for so long at most, until `gone`; notifier_returned() has it look again. */
void notifier_await(Notifier *notifier, gboolean (*gone)(void *data), void *data, unsigned ms);
void notifier_returned(Notifier *notifier);

#endif
