/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A FUSE session serves one live volume: names and writes through its origin, reads of unchanged
 * files from the store. Its requests are read by the threads of readers.h.
 */
#ifndef HEARTH_CACHE_FUSE_LIVE_SESSION_H
#define HEARTH_CACHE_FUSE_LIVE_SESSION_H

#include <glib.h>
#include <jansson.h>
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
    const json_t *state;   /* of a mount that another process has left; NULL: it is a new one */
    GBytes *init;          /* with `state`: the kernel's FUSE_INIT (take_over.h) */
    int state_fd;          /* with `state`: where it was read (mount_state.h) */
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
/* Whether another process could go on. */
gboolean session_can_be_left(Session *session);
/*
 * As session_stop(), for another process that goes on with `state_fd` (mount_state.h): requests
 * wait for it, and what is open stays open. FALSE: it is stopped; requests that do not end in time,
 * or the state cannot be written.
 */
gboolean session_leave(Session *session, int state_fd, unsigned timeout_ms, GError **error);
/* Waits for its requests, gives every node and file back to the origin, frees. The mount, if there
 * still is one, answers ENOTCONN. */
void session_stop(Session *session);

#endif
