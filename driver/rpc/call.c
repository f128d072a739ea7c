/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decode, handle, encode. Request bytes are wiped and freed once decoded, the arena before the
 * reply is handed over: a slow reader of the response holds nothing but the response.
 */
#include "driver/rpc/call.h"

#include <string.h>

#include "driver/rpc/framing.h"
#include "driver/rpc/validate.h"

RpcCall *rpc_call_new(RpcRequest *request)
{
    static _Atomic guint64 last_id;
    RpcCall *call = g_new0(RpcCall, 1);
    call->id = atomic_fetch_add(&last_id, 1) + 1;
    call->deadline_us = request->deadline_us;
    call->request = rpc_buffer_steal(&request->message);
    rpc_arena_init(&call->arena);
    return call;
}

void rpc_call_free(RpcCall *call)
{
    rpc_buffer_clear(&call->request);
    rpc_arena_clear(&call->arena);
    g_free(call->reply.message);
    g_free(call->reply.bytes);
    g_free(call);
}

void *rpc_alloc(RpcCall *call, size_t size)
{
    return rpc_arena_alloc(&call->arena, size);
}

char *rpc_strdup(RpcCall *call, const char *s)
{
    if (!s)
        return NULL;
    size_t size = strlen(s) + 1;
    char *copy = rpc_alloc(call, size);
    return copy ? memcpy(copy, s, size) : NULL;
}

gint64 rpc_time_left_ms(const RpcCall *call)
{
    if (atomic_load(&call->abandoned))
        return 0;
    if (call->deadline_us == G_MAXINT64)
        return G_MAXINT64;
    return MAX(call->deadline_us - g_get_monotonic_time(), 0) / 1000;
}

guint64 rpc_call_id(const RpcCall *call)
{
    return call->id;
}

static gboolean set_exhausted(const RpcCall *call, GError **error)
{
    g_clear_error(error);
    return hearth_fail(error, HEARTH_ERROR_RESOURCE_EXHAUSTED,
                       "%s needs more than the %d bytes of memory a call may have",
                       call->method->path, RPC_ARENA_MAX_BYTES);
}

static ProtobufCMessage *decode(RpcCall *call, GError **error)
{
    const ProtobufCMessageDescriptor *type = call->method->request;
    if (!rpc_validate_wire(type, call->request.data, call->request.length, error))
        return NULL;
    static const guint8 nothing[1];
    ProtobufCMessage *request =
        protobuf_c_message_unpack(type, &call->arena.allocator, call->request.length,
                                  call->request.data ? call->request.data : nothing);
    if (!request) {
        if (call->arena.exhausted)
            set_exhausted(call, error);
        else
            hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT, "message %s is malformed",
                        type->name);
        return NULL;
    }
    /* Decoding copied it: a handler that hangs should not hold a share of the budget. */
    rpc_buffer_clear(&call->request);
    rpc_settle_maps(request);
    return request;
}

static gboolean encode(RpcCall *call, const ProtobufCMessage *response, GError **error)
{
    size_t length = protobuf_c_message_get_packed_size(response);
    if (length > RPC_RESPONSE_MAX_BYTES)
        return hearth_fail(error, HEARTH_ERROR_RESOURCE_EXHAUSTED,
                           "response of %zu bytes to %s exceeds the limit of %d bytes", length,
                           call->method->path, RPC_RESPONSE_MAX_BYTES);
    g_autofree guint8 *bytes = g_malloc(RPC_PREFIX_BYTES + length);
    rpc_prefix_write(bytes, length);
    protobuf_c_message_pack(response, bytes + RPC_PREFIX_BYTES);
    g_autoptr(GError) invalid = NULL;
    if (!rpc_validate_wire(call->method->response, bytes + RPC_PREFIX_BYTES, length, &invalid))
        return hearth_fail(error, HEARTH_ERROR_INTERNAL, "response to %s: %s", call->method->path,
                           invalid->message);
    call->reply = (RpcReply){.bytes = g_steal_pointer(&bytes), .length = RPC_PREFIX_BYTES + length};
    return TRUE;
}

static gboolean handle(RpcCall *call, GError **error)
{
    ProtobufCMessage *request = decode(call, error);
    if (!request)
        return FALSE;
    const ProtobufCMessageDescriptor *type = call->method->response;
    ProtobufCMessage *response = rpc_alloc(call, type->sizeof_message);
    if (!response)
        return set_exhausted(call, error);
    protobuf_c_message_init(type, response);
    gboolean ok = call->method->handler(call, request, response, call->service, error);
    if (call->arena.exhausted)
        return set_exhausted(call, error);
    return ok && (!error || !*error) && encode(call, response, error);
}

void rpc_call_run(RpcCall *call)
{
    g_autoptr(GError) error = NULL;
    /* No caller waits any more: the handler need not start, because the call comes again. */
    if (atomic_load(&call->abandoned) || call->deadline_us <= g_get_monotonic_time()) {
        call->reply =
            (RpcReply){.code = HEARTH_ERROR_DEADLINE_EXCEEDED,
                       .message = g_strdup("the deadline passed before a worker was free")};
    } else if (!handle(call, &error)) {
        gboolean known = error && error->domain == HEARTH_ERROR &&
                         error->code >= HEARTH_ERROR_CANCELLED &&
                         error->code <= HEARTH_ERROR_UNAUTHENTICATED;
        const guint code = known ? (guint)error->code : HEARTH_ERROR_INTERNAL;
        char *message = error ? g_strdup(error->message)
                              : g_strdup_printf("%s failed without an error", call->method->path);
        call->reply = (RpcReply){.code = code, .message = message};
    }
    rpc_buffer_clear(&call->request);
    rpc_arena_clear(&call->arena);
}
