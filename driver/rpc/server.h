/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gRPC server for unary calls over a unix socket: HTTP/2 by nghttp2, messages by protobuf-c.
 * One I/O thread owns the connections, a pool of workers runs the handlers. Limits: requests of
 * 1 MiB, responses of 4 MiB (what gRPC clients take), 16 MiB an arena, 64 connections of 128
 * calls, 10 s for the preface; the deadline is grpc-timeout.
 *
 * A call is answered at its deadline whether or not its handler has returned; what the handler
 * gives later is dropped. So a handler may block, but one that never returns holds a worker for
 * ever: calls then queue until their deadlines, and are refused with RESOURCE_EXHAUSTED when the
 * queue is full. Identity has workers of its own and answers all the same.
 *
 * Strings of a request are valid UTF-8 without NUL and every key of a map occurs once.
 */
#ifndef HEARTH_DRIVER_RPC_SERVER_H
#define HEARTH_DRIVER_RPC_SERVER_H

#include <glib.h>
#include <protobuf-c/protobuf-c.h>
#include "common/error.h"

typedef struct RpcServer RpcServer;
typedef struct RpcCall RpcCall;

/*
 * Runs on a worker. `request` is decoded and lives until the handler returns. The handler fills
 * `response`, which is initialised (…__INIT), with memory of rpc_alloc()/rpc_strdup() or with what
 * outlives the call. FALSE with an error in HEARTH_ERROR: the status to send; other domains
 * are sent as INTERNAL.
 */
typedef gboolean (*RpcHandler)(RpcCall *call, const ProtobufCMessage *request,
                               ProtobufCMessage *response, void *service, GError **error);

typedef struct RpcMethod {
    const char *path; /* "/csi.v1.Identity/Probe" */
    const ProtobufCMessageDescriptor *request, *response;
    RpcHandler handler; /* NULL: UNIMPLEMENTED */
} RpcMethod;

typedef struct RpcServerConfig {
    const char *socket_path; /* connect first, unlink only on ECONNREFUSED, mode 0600 */
    unsigned workers;        /* 0: 16; besides two for the reserved service */
    unsigned max_queued;     /* calls that wait for a worker; 0: 1024 */
    const char
        *reserved; /* prefix of paths with workers of their own; NULL: the Identity service */
} RpcServerConfig;

/* Fails when the configuration cannot work; touches no file. Errors in G_IO_ERROR. */
RpcServer *rpc_server_new(const RpcServerConfig *config, GError **error);
/* Adds a table ending with a row of NULLs; before rpc_server_start(). The table is borrowed. */
void rpc_server_add(RpcServer *server, const RpcMethod *methods, void *service);
/* Listens and serves. Errors in G_IO_ERROR; ADDRESS_IN_USE when another server answers there. */
gboolean rpc_server_start(RpcServer *server, GError **error);
/*
 * No new calls; waits up to `grace_ms` for running ones, then answers them UNAVAILABLE; joins the
 * threads, frees, removes the socket file. TRUE: all that is done. FALSE: handlers ignored it for
 * another second and still run; they keep the server and their services, so that the process
 * should now exit without freeing those. Also frees a server that never started. Takes NULL.
 */
gboolean rpc_server_stop(RpcServer *server, unsigned grace_ms);

/*
 * Zeroed memory of the call's arena, freed with it. Past 16 MiB NULL, and the call ends as
 * RESOURCE_EXHAUSTED whatever the handler returns.
 */
void *rpc_alloc(RpcCall *call, size_t size);
/* NULL for NULL. */
char *rpc_strdup(RpcCall *call, const char *s);
/*
 * Time left in ms; G_MAXINT64 when the caller set none. 0 once nobody waits for the answer: the
 * deadline passed, the client left or cancelled, or the server stops.
 */
gint64 rpc_time_left_ms(const RpcCall *call);
/* A number for logs, unique in the process. */
guint64 rpc_call_id(const RpcCall *call);

#endif
