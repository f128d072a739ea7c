/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A FUSE session serves one live volume: names and writes through its origin, reads of unchanged
 * files from the store. Its requests are read by the threads of readers.h.
 */
#ifndef HEARTH_CACHE_FUSE_LIVE_SESSION_H
#define HEARTH_CACHE_FUSE_LIVE_SESSION_H

#include <glib.h>
#include <stdint.h>
#include "cache/fuse/stats.h"
#include "cache/origin/origin.h"
#include "cache/store/store.h"

typedef struct Session Session;

typedef struct SessionConfig {
    const char *volume; /* tag of its objects in the store; copied */
    Origin *origin;     /* borrowed until session_stop() has returned */
    Store *store;       /* borrowed; NULL: every read goes to the origin */
    gboolean read_only;
    gboolean shared_locks; /* the origin keeps file locks, else the kernel does, for this node */
    gboolean has_group;    /* all files are for this group, see attrs.c */
    gid_t group;
} SessionConfig;

/*
 * Begins to serve `fuse_fd`, a mounted /dev/fuse descriptor, which the session takes over (also on
 * error). `ended` is called once from a session thread when the kernel has unmounted or aborted
 * the connection; it must not call session_stop() itself.
 */
Session *session_start(const SessionConfig *config, int fuse_fd, void (*ended)(void *data),
                       void *data, GError **error);
void session_stats(Session *session, FuseStats *stats);
/* Changes the group; the kernel sees it within a moment. */
void session_set_group(Session *session, gboolean any, gid_t group);
/* The descriptor, borrowed: to hand a duplicate to the keeper. */
int session_fd(Session *session);
/* Waits for its requests, gives every node and file back to the origin, frees. The mount, if there
 * still is one, answers ENOTCONN. */
void session_stop(Session *session);

#endif
