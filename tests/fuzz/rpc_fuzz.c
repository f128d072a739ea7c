/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds bytes to a server connection, as a peer could, and runs the calls they make.
 *
 * The first byte steers: bit 0 puts the client preface in front, so that inputs get past it; bit 1
 * answers calls late, after all bytes; bit 2 feeds byte by byte; bit 3 lets time run out in the
 * end; bit 4 frees the connection with calls under way. The rest is the stream.
 * tests/fuzz/corpus/rpc has what once went wrong, and seeds.
 */
#include "tests/fuzz/fuzz.h"
#include <stdio.h>
#include <string.h>

#include "csi.pb-c.h"
#include "common/error.h"
#include "driver/rpc/call.h"
#include "driver/rpc/framing.h"

static gboolean echo_create(RpcCall *call, const ProtobufCMessage *message,
                            ProtobufCMessage *answer, void *service, GError **error)
{
    (void)service;
    const Csi__V1__CreateVolumeRequest *request = (const Csi__V1__CreateVolumeRequest *)message;
    Csi__V1__CreateVolumeResponse *response = (Csi__V1__CreateVolumeResponse *)answer;
    if (!*request->name) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT, "no name");
        return FALSE;
    }
    response->volume = rpc_alloc(call, sizeof(*response->volume));
    if (!response->volume)
        return FALSE;
    csi__v1__volume__init(response->volume);
    response->volume->volume_id = request->name;
    response->volume->content_source = request->volume_content_source;
    if (request->accessibility_requirements) {
        response->volume->n_accessible_topology = request->accessibility_requirements->n_requisite;
        response->volume->accessible_topology = request->accessibility_requirements->requisite;
    }
    return TRUE;
}

static const RpcMethod create = {"/c", &csi__v1__create_volume_request__descriptor,
                                 &csi__v1__create_volume_response__descriptor, echo_create};

typedef struct Owner {
    gboolean late;
    RpcCall *calls; /* that run "late" */
} Owner;

static gconstpointer find(void *data, const char *path)
{
    (void)data;
    return strcmp(path, create.path) == 0 ? &create : NULL;
}

static void finish(RpcCall *call)
{
    rpc_call_run(call);
    if (call->stream)
        rpc_stream_answer(call->stream, &call->reply);
    rpc_call_free(call);
}

static void *take(void *data, RpcStream *stream, RpcRequest *request)
{
    Owner *owner = data;
    RpcCall *call = rpc_call_new(request);
    call->method = request->method;
    call->stream = stream;
    if (!owner->late) {
        finish(call);
        return NULL;
    }
    call->next = owner->calls;
    owner->calls = call;
    return call;
}

static void gone(void *data, void *gone_call)
{
    (void)data;
    RpcCall *call = gone_call;
    g_assert(call->stream);
    call->stream = NULL;
    atomic_store(&call->abandoned, TRUE);
}

static void ready(void *data)
{
    (void)data;
}

static const RpcConnectionOps ops = {find, take, gone, ready};

static void drain(RpcConnection *connection)
{
    const guint8 *bytes;
    guint8 sum = 0;
    for (size_t n; (n = rpc_connection_send(connection, &bytes)) > 0;)
        sum ^= bytes[0] ^ bytes[n - 1];
    (void)*(volatile guint8 *)&sum;
}

static void finish_all(Owner *owner)
{
    for (RpcCall *call = g_steal_pointer(&owner->calls), *next; call; call = next) {
        next = call->next;
        finish(call);
    }
}

int LLVMFuzzerTestOneInput(const guint8 *data, size_t size)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
    if (size == 0)
        return 0;
    guint8 steer = *data++;
    size--;
    Owner owner = {.late = steer & 2};
    RpcTimers timers = {0};
    RpcBudget budget = {0};
    RpcConnection *connection = rpc_connection_new(&ops, &owner, &timers, &budget);
    if (steer & 1)
        rpc_connection_receive(connection, (const guint8 *)preface, sizeof(preface) - 1);
    size_t step = steer & 4 ? 1 : MAX(size, 1);
    for (size_t i = 0; i < size; i += step) {
        rpc_connection_receive(connection, data + i, MIN(step, size - i));
        drain(connection);
    }
    if (steer & 8) {
        rpc_timers_run(&timers, g_get_monotonic_time() + (gint64)3600 * G_USEC_PER_SEC);
        drain(connection);
    }
    if (!(steer & 16)) {
        finish_all(&owner);
        drain(connection);
        rpc_connection_shut_down(connection);
        rpc_connection_answer_all(connection, HEARTH_ERROR_UNAVAILABLE, "stopping");
        drain(connection);
    }
    rpc_connection_free(connection);
    finish_all(&owner);
    g_assert(atomic_load(&budget.used_bytes) == 0);
    g_assert(rpc_timers_next(&timers) == G_MAXINT64);
    rpc_timers_free(&timers);
    return 0;
}
