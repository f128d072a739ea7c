/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connections of the control socket. One thread waits for all of them; a request is served by a
 * thread of a pool, since an "open" may wait for Ceph for half a minute while "status" must still
 * be answered. So a connection costs a thread only while it has a request, and has one at a time.
 */
#ifndef HEARTH_CACHE_CONTROL_CONNECTIONS_H
#define HEARTH_CACHE_CONTROL_CONNECTIONS_H

#include <glib.h>
#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

/* More are answered UNAVAILABLE and closed. */
#define CONTROL_MAX_CONNECTIONS 1024

typedef struct Connections Connections;

/* Who is at the other end (SO_PEERCRED). */
typedef struct ConnectionPeer {
    uint64_t connection; /* its number, from 1 */
    pid_t pid;           /* 0: of a process in another PID namespace */
    uid_t uid;
} ConnectionPeer;

typedef struct ConnectionsOps {
    /* The reply to a request. `fd` came with it, or is -1; takes it over. *reply_fd goes with the
     * reply, and is closed then. */
    json_t *(*serve)(void *data, const ConnectionPeer *peer, json_t *request, int fd,
                     int *reply_fd);
    /* The connection has ended, with no request under way. Not after connections_close(). */
    void (*ended)(void *data, uint64_t connection);
} ConnectionsOps;

/* Listens: requests wait until connections_serve(). */
Connections *connections_listen(const char *socket_path, GError **error);
/* Only root, and the user that hearthd runs as, are served. */
gboolean connections_serve(Connections *connections, const ConnectionsOps *ops, void *data,
                           GError **error);
/* Removes the socket's file; no request begins any more, and none is answered. */
void connections_close(Connections *connections);
/* After connections_close(). FALSE: some request is still under way after timeout_ms. */
gboolean connections_await_idle(Connections *connections, gint64 timeout_ms);
/* Waits for requests that are under way. NULL is fine. */
void connections_free(Connections *connections);

#endif
