/* A unary gRPC client over a unix socket, for tests, benchmarks and the demo. Blocking, one call at a time on one connection; not thread-safe. */
#ifndef HEARTH_RPC_CLIENT_H
#define HEARTH_RPC_CLIENT_H

#include <glib.h>
#include <protobuf-c/protobuf-c.h>

typedef struct RpcClient RpcClient;

RpcClient *rpc_client_connect(const char *socket_path, GError **error);
void rpc_client_close(RpcClient *client);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(RpcClient, rpc_client_close)

/*
 * Calls `path` and unpacks the response; free it with protobuf_c_message_free_unpacked(). NULL: a status
 * other than OK as HEARTH_ERROR with its code and message, or G_IO_ERROR for transport.
 */
ProtobufCMessage *rpc_client_call(RpcClient *client, const char *path,
                                  const ProtobufCMessage *request,
                                  const ProtobufCMessageDescriptor *response, gint64 timeout_ms,
                                  GError **error);

#endif
