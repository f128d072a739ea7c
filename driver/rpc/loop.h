/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The I/O thread: an epoll loop over the listening socket, the connections and a wake-up. Bytes go
 * between sockets and connection.h here; what is called with them is the server's.
 */
#ifndef HEARTH_DRIVER_RPC_LOOP_H
#define HEARTH_DRIVER_RPC_LOOP_H

#include "driver/rpc/connection.h"
#include "driver/rpc/listen.h"

#define RPC_CONNECTIONS_MAX 64

typedef struct RpcLoop RpcLoop;

/* As in RpcConnectionOps, with the server in place of the owner; all run on the I/O thread. */
typedef struct RpcLoopOps {
    gconstpointer (*find)(void *server, const char *path);
    void *(*request)(void *server, RpcStream *stream, RpcRequest *request);
    void (*gone)(void *server, void *call);
    void (*woken)(void *server); /* after rpc_loop_wake() */
} RpcLoopOps;

RpcLoop *rpc_loop_new(const RpcLoopOps *ops, void *server, GError **error);
/* After rpc_loop_run() returned, or before it was called. Takes NULL. */
void rpc_loop_free(RpcLoop *loop);

/* Serves until stopped; the loop has `listener` and closes it. */
void rpc_loop_run(RpcLoop *loop, RpcListener *listener);

/* From any thread. */
void rpc_loop_wake(RpcLoop *loop);
/*
 * From any thread, once: takes no new connections or calls; after `grace_ms` answers those that run
 * with UNAVAILABLE; ends when every answer is sent, or a second later.
 */
void rpc_loop_stop(RpcLoop *loop, unsigned grace_ms);

#endif
