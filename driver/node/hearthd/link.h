/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to hearthd's control socket (proto/wire.h). One is made for each operation and
 * closed after it: connecting over a unix socket costs microseconds, and there is never a stale
 * connection to a hearthd that was restarted. What must be one conversation ("open", then "attach")
 * uses one HearthdLink.
 *
 * Errors are HEARTH_ERROR: hearthd's own codes are passed on; UNAVAILABLE when there is no hearthd
 * or it went away, DEADLINE_EXCEEDED when it does not answer in time.
 */
#ifndef HEARTH_DRIVER_NODE_HEARTHD_LINK_H
#define HEARTH_DRIVER_NODE_HEARTHD_LINK_H

#include <glib.h>
#include <jansson.h>
#include "common/error.h"

/* One connection, for one thread. After an error that is not hearthd's own it is of no more use. */
typedef struct HearthdLink HearthdLink;

/* *absent (may be NULL): there is no listener, so no volume is served. */
HearthdLink *hearthd_connect(const char *socket_path, gboolean *absent, GError **error);
void hearthd_close(HearthdLink *link);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HearthdLink, hearthd_close)
/* For poll(2): readable or hung up when hearthd has gone. */
int hearthd_link_fd(const HearthdLink *link);
/* One request, and its reply, the caller's; NULL with the error. send_fd -1, receive_fd NULL: no
 * descriptor goes with it. For hearthd.h and manifest.h. */
json_t *hearthd_call(HearthdLink *link, const json_t *request, int send_fd, int *receive_fd,
                     gint64 timeout_ms, GError **error);

#endif
