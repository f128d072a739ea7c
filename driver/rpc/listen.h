/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The listening unix socket of a server: made without displacing one that is alive, and removed
 * without removing somebody else's.
 */
#ifndef HEARTH_DRIVER_RPC_LISTEN_H
#define HEARTH_DRIVER_RPC_LISTEN_H

#include <glib.h>
#include <sys/stat.h>
#include <sys/un.h>

typedef struct RpcListener {
    int fd; /* non-blocking, CLOEXEC; -1: none */
    char *path;
    dev_t device; /* of the socket file we made */
    ino_t inode;
} RpcListener;

/*
 * Binds and listens with mode 0600. A file at `path` is removed only when it is a socket that
 * nobody serves. Errors in G_IO_ERROR name the path: ADDRESS_IN_USE when a server answers there,
 * EXISTS when it is no socket, INVALID_ARGUMENT when the path does not fit a socket address.
 */
gboolean rpc_listen(RpcListener *listener, const char *path, GError **error);
/* Closes, and removes the file if it is still ours. Fine on one that never listened. */
void rpc_listener_close(RpcListener *listener);

/* Fills the address; FALSE with INVALID_ARGUMENT when the path is empty or too long. */
gboolean rpc_socket_address(struct sockaddr_un *address, const char *path, GError **error);
/* Sets `error` from an errno: "<what> <path>: <text>". Returns FALSE. */
gboolean rpc_set_errno(GError **error, int number, const char *what, const char *path);

#endif
