/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call, from complete request to reply. The I/O thread makes it and frees it; in between a
 * worker runs it. Each field says whose it is.
 */
#ifndef HEARTH_DRIVER_RPC_CALL_H
#define HEARTH_DRIVER_RPC_CALL_H

#include <stdatomic.h>

#include "driver/rpc/arena.h"
#include "driver/rpc/connection.h"
#include "driver/rpc/pool.h"
#include "driver/rpc/server.h"

#define RPC_RESPONSE_MAX_BYTES (4 * 1024 * 1024)

struct RpcCall {
    RpcJob job; /* the pool's; first, so that a job is its call */

    /* Set by the I/O thread before the call runs. */
    RpcServer *server;
    RpcPool *pool;
    const RpcMethod *method;
    void *service;
    guint64 id;
    gint64 deadline_us;

    /* The worker's, while the call runs. */
    RpcBuffer request;
    RpcArena arena;
    RpcReply reply;

    atomic_bool abandoned; /* the I/O thread's word to the handler: nobody waits */

    RpcStream *stream; /* the I/O thread's; NULL: gone */
    RpcCall *next;     /* in the server's list of done calls, under its lock */
};

RpcCall *rpc_call_new(RpcRequest *request);
void rpc_call_free(RpcCall *call);
/* On a worker: decodes, runs the handler, encodes into `reply`; frees request and arena, wiped. */
void rpc_call_run(RpcCall *call);

#endif
