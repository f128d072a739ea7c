/*
 * A gRPC server for unary calls over a unix socket: HTTP/2 by nghttp2, messages by protobuf-c.
 * One I/O thread owns the connections, a pool of workers runs the handlers. Limits: requests of
 * 1 MiB, 16 MiB an arena, 64 connections, 10 s for the preface; the deadline is grpc-timeout.
 */
#ifndef HEARTH_RPC_SERVER_H
#define HEARTH_RPC_SERVER_H

#include <glib.h>
#include <protobuf-c/protobuf-c.h>
#include "driver/error.h"

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
    unsigned workers;        /* 0: 16 */
} RpcServerConfig;

RpcServer *rpc_server_new(const RpcServerConfig *config, GError **error);
/* Adds a table ending with a row of NULLs; before rpc_server_start(). The table is borrowed. */
void rpc_server_add(RpcServer *server, const RpcMethod *methods, void *service);
gboolean rpc_server_start(RpcServer *server, GError **error);
/* No new calls; waits up to `grace_ms` for running ones, then answers them UNAVAILABLE; joins the threads, frees, removes the socket file. */
void rpc_server_stop(RpcServer *server, unsigned grace_ms);

/* Zeroed memory of the call's arena, freed with it. Aborts the call with RESOURCE_EXHAUSTED by returning NULL past 16 MiB. */
void *rpc_alloc(RpcCall *call, size_t size);
char *rpc_strdup(RpcCall *call, const char *s);
/* Time left in ms; G_MAXINT64 when the caller set none. */
gint64 rpc_time_left_ms(const RpcCall *call);
/* A number for logs, unique in the process. */
guint64 rpc_call_id(const RpcCall *call);

#endif
