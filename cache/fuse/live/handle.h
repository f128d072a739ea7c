/* SPDX-License-Identifier: Apache-2.0 */
/* An open file of a session. Only cache/fuse/live/ includes this. */
#ifndef HEARTH_CACHE_FUSE_LIVE_HANDLE_H
#define HEARTH_CACHE_FUSE_LIVE_HANDLE_H

#include <glib.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/queue.h>
#include "cache/fuse/content.h"
#include "cache/fuse/live/nodes.h"
#include "cache/fuse/live/notify.h"
#include "cache/fuse/live/unsynced.h"

enum {
    LEASE_NONE,
    LEASE_TRYING,
    LEASE_HELD,
    LEASE_RECALLED,
};

struct Handle {
    uint64_t fh; /* in Session.files */
    LIST_ENTRY(Handle) in_node;
    Session *session;
    Node *node;
    OriginFile *file;
    int flags; /* of open(2), but for O_CREAT, O_EXCL and O_TRUNC */
    gboolean writer, reader, append;
    OriginLease kind;
    _Atomic unsigned refs;
    _Atomic int lease;
    _Atomic int taking; /* a lease: by one at a time, from its beginning to its end */
    /* How many leases it had, and the last of them under which the kernel's pages were settled:
     * those from before are dropped. */
    _Atomic unsigned leases, settled;
    gboolean joined;          /* another handle's lease held when this one's was taken */
    _Atomic gboolean unasked; /* whether the user may read it: the store was not looked at */
    pthread_mutex_t mutex;    /* guards content, written, plain; after Node.mutex */
    _Atomic uint64_t version; /* seen when the lease was taken */
    Content *content;         /* what the store has of the leased version; NULL: nothing */
    Written *written;         /* Node.written, as of that; NULL: there were no writers */
    OriginFile *plain;        /* for pages written back through an O_APPEND handle */
    UnsyncedSeen seen;        /* Node.mutex */
};

static inline gboolean handle_is_leased(Handle *h)
{
    return atomic_load(&h->lease) == LEASE_HELD;
}

#endif
