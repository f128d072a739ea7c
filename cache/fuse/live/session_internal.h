/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a session share. Only cache/fuse/ includes this. */
#ifndef HEARTH_CACHE_FUSE_LIVE_SESSION_INTERNAL_H
#define HEARTH_CACHE_FUSE_LIVE_SESSION_INTERNAL_H

#include <fuse_lowlevel.h>
#include "cache/fuse/inode_budget.h"
#include "cache/fuse/live/known_names.h"
#include "cache/fuse/live/nodes.h"
#include "cache/fuse/live/notify.h"
#include "cache/fuse/locks/locks.h"
#include "cache/fuse/opened.h"
#include "cache/fuse/readers.h"
#include "cache/fuse/live/session.h"

/*
 * For how long the kernel may use names and attributes without asking (seconds). libcephfs does not
 * say when a name loses its lease, so a name that the kernel used without asking is checked by the
 * call that follows: a lookup, open, creation or change checks the names that led there
 * (names_check) and answers ESTALE, on which the kernel walks the path again, asking. Only stat()
 * may lag, by this much.
 *
 * The kernel does not walk again where it looks up a name that is to be made: such a lookup is
 * answered ENOENT, if that is what the name now is (names_lead_nowhere), and the making is checked.
 * Nor does it for a call by descriptor, so what is open may be changed without a check, except for
 * its size: a file's size is changed by an open file, or by a path.
 */
#define VALID_SEC NAME_VALID_SEC

typedef struct SessionCounters {
    _Atomic uint64_t opens, hits, misses;
    _Atomic uint64_t bytes_store, bytes_fill, bytes_origin, bytes_written;
    _Atomic uint64_t open_us, reads, read_us, origin_reads, origin_us;
} SessionCounters;

struct Session {
    Origin *origin;
    Store *store; /* may be NULL */
    char *volume;
    gboolean read_only;
    _Atomic int64_t group; /* -1: none */
    struct fuse_session *fuse;
    Nodes *nodes;
    Notifier *notifier;
    SessionCounters counters;
    Opened *files;    /* of Handle */
    Opened *listings; /* of Listing */
    Locks *locks;     /* NULL: the kernel keeps them, for this node */
    Readers *readers;
    InodeHolder holder;

    GBytes *init; /* NULL: no other process can take the mount over */
    atomic_bool leaves;
    Reopens *old_files, *old_listings; /* NULL: no process has served the mount before */
    pthread_mutex_t parked_mutex;
    LIST_HEAD(, Parked) parked; /* parked_mutex, as the next; see resume.h */
    size_t parked_bytes;
};

/* Another process has served the mount before. */
static inline gboolean session_is_resumed(const Session *session)
{
    return session->old_files != NULL;
}

static inline Session *session_of(fuse_req_t req)
{
    return fuse_req_userdata(req);
}

/* The kernel names a node only after a lookup, in this process or in an earlier one. NULL with
 * *error, -ESTALE for one that it never looked up. */
static inline Node *node_of_kernel(Session *session, uint64_t id, int *error)
{
    *error = -ESTALE;
    return session_is_resumed(session) ? nodes_use_again(session->nodes, id, error)
                                       : nodes_use(session->nodes, id);
}

#define USE_NODE_OR_REPLY(session, req, ino)                                                       \
    ({                                                                                             \
        int no_node;                                                                               \
        Node *found_node = node_of_kernel((session), (ino), &no_node);                             \
        if (!found_node) {                                                                         \
            fuse_reply_err((req), -no_node);                                                       \
            return;                                                                                \
        }                                                                                          \
        found_node;                                                                                \
    })

/* Likewise for what it has open: a number that was not given, or is closed, is answered EBADF.
 * `again` opens what an earlier process had open. */
#define FIND_OPEN_OR_REPLY(session, opened, again, req, fi)                                        \
    ({                                                                                             \
        int not_open = -EBADF;                                                                     \
        void *found_open = opened_find((opened), (fi)->fh);                                        \
        if (!found_open && session_is_resumed(session))                                            \
            found_open = (again)((session), (fi)->fh, &not_open);                                  \
        if (!found_open) {                                                                         \
            fuse_reply_err((req), -not_open);                                                      \
            return;                                                                                \
        }                                                                                          \
        found_open;                                                                                \
    })

/* The reply for a name that was found. `listed`: in a listing. */
void entry_fill(Session *session, Node *node, const OriginAttr *attr, const NameAsked *asked,
                gboolean listed, struct fuse_entry_param *e);
/* attrs.c: the attributes as the kernel sees them, and the group of a file that a caller creates.
 */
struct stat group_shown(Session *session, const struct stat *st);
gid_t group_of_new(Session *session, gid_t caller);
/*
 * Whether the names the kernel used unasked to reach `node` still lead there. 0, -ESTALE, or the
 * origin's error. Asks the origin only for names that may still be used. names_check() answers
 * -ESTALE once; names_lead_to() each time, with the node that is elsewhere, in use, or NULL.
 */
int names_check(Session *session, Node *node);
int names_lead_to(Session *session, Node *node, Node **astray);
/* There is no such name in the directory, wherever it is, nor where the names now lead. */
gboolean names_lead_nowhere(Session *session, Node *dir, const char *name);

/* What is locked here was lost: the file is neither read nor written. */
static inline gboolean is_unlocked_by_loss(Session *session, const Node *node)
{
    return session->locks && locks_lost(session->locks, node->id);
}

void names_ops(struct fuse_lowlevel_ops *ops);
void files_ops(struct fuse_lowlevel_ops *ops);
/* With the locks, for a session that has them. */
void files_lock_ops(struct fuse_lowlevel_ops *ops);
void dirs_ops(struct fuse_lowlevel_ops *ops);
void attrs_ops(struct fuse_lowlevel_ops *ops);

/* Closes what the kernel did not release before the end. No worker is running. */
void dirs_close_all(Session *session);
/* What a later process needs to open the listing again. */
void listing_reopen(const void *listing, Reopen *what);

#endif
