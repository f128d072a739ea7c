/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A unary gRPC client over a unix socket, for probes, tests, benchmarks and the demo. Blocking, one
 * call at a time on one connection; not thread-safe. After a transport error every further call
 * fails.
 */
#ifndef HEARTH_DRIVER_RPC_CLIENT_H
#define HEARTH_DRIVER_RPC_CLIENT_H

#include <glib.h>
#include <protobuf-c/protobuf-c.h>

typedef struct RpcClient RpcClient;

/* Errors: G_IO_ERROR (NOT_FOUND, CONNECTION_REFUSED, ...), naming the path. */
RpcClient *rpc_client_connect(const char *socket_path, GError **error);
/* Takes NULL. */
void rpc_client_close(RpcClient *client);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(RpcClient, rpc_client_close)

/*
 * Calls `path` and unpacks the response; free it with protobuf_c_message_free_unpacked(). NULL: a
 * status other than OK as HEARTH_ERROR with its code and message, or G_IO_ERROR for transport.
 * `timeout_ms` is sent as the deadline, 0 for none; a server that does not answer within a quarter
 * of a second after it is taken to have answered DEADLINE_EXCEEDED, and the call is cancelled.
 */
ProtobufCMessage *rpc_client_call(RpcClient *client, const char *path,
                                  const ProtobufCMessage *request,
                                  const ProtobufCMessageDescriptor *response, gint64 timeout_ms,
                                  GError **error);

#endif
