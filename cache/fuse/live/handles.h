/* SPDX-License-Identifier: Apache-2.0 */
/* Open files of a session and their leases. Only cache/fuse/live/ includes this. */
#ifndef HEARTH_CACHE_FUSE_LIVE_HANDLES_H
#define HEARTH_CACHE_FUSE_LIVE_HANDLES_H

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
    gboolean writer, reader, append;
    OriginLease kind;
    _Atomic unsigned refs;
    _Atomic int lease;
    _Atomic int taking;       /* a lease: by one at a time, from its beginning to its end */
    pthread_mutex_t mutex;    /* guards content, plain */
    _Atomic uint64_t version; /* seen when the lease was taken */
    Content *content;         /* what the store has of the leased version; NULL: nothing */
    OriginFile *plain;        /* for pages written back through an O_APPEND handle */
    UnsyncedSeen seen;        /* Node.mutex */
};

/* Takes over `file`, which was opened with these flags. */
Handle *handle_new(Session *session, Node *node, OriginFile *file, int flags);
/* Ends the opening: the kernel asks for it, or the reply to it was lost. */
void handle_release(Handle *handle);
/* Releases all that the kernel did not before the end. No worker is running. */
void handles_close_all(Session *session);

/*
 * Tries to get the file guaranteed unchanged, with handle->content of that version. FALSE: it is
 * used in a way that conflicts; *attr is then filled for an opener only: a read holds pages locked
 * and must not ask for more than its bytes.
 */
gboolean handle_take_lease(Handle *handle, gboolean opener, OriginAttr *attr, int *r);
/* Gives back the leases of a node's readers and drops the kernel's pages, before a write here. */
void handles_return_leases(Session *session, Node *node);
/* What the notifier calls. */
extern const NotifierLeases handles_notifier_leases;

/* For how long the kernel may use the node's attributes without asking (seconds): not at all while
 * it is open without a lease, as the size tells a reader where the file ends. */
double handles_attr_valid(Node *node);

#endif
