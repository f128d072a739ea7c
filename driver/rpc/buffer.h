/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of one request message, admitted against a budget that all connections share. A message
 * of at most RPC_SMALL_BYTES is always admitted, so that Probe is answered however many large ones
 * are under way; larger ones together stay below the budget. Wiped when freed: they carry secrets.
 * A buffer is used by one thread at a time; the budget by any.
 */
#ifndef HEARTH_DRIVER_RPC_BUFFER_H
#define HEARTH_DRIVER_RPC_BUFFER_H

#include <glib.h>
#include <stdatomic.h>
#include <string.h>
#include "driver/rpc/pages.h"

#define RPC_SMALL_BYTES (16 * 1024)
#define RPC_BUDGET_BYTES (16 * 1024 * 1024)

typedef struct RpcBudget {
    atomic_size_t used_bytes;
} RpcBudget;

typedef struct RpcBuffer {
    guint8 *data;
    size_t length;
    RpcBudget *budget; /* what the length was taken from; NULL: from none */
} RpcBuffer;

/* FALSE: not now; the buffer stays empty. */
static inline gboolean rpc_buffer_init(RpcBuffer *buffer, size_t length, RpcBudget *budget)
{
    *buffer = (RpcBuffer){0};
    gboolean small = length <= RPC_SMALL_BYTES;
    if (!small && atomic_fetch_add(&budget->used_bytes, length) + length > RPC_BUDGET_BYTES) {
        atomic_fetch_sub(&budget->used_bytes, length);
        return FALSE;
    }
    buffer->data = length > 0 ? rpc_pages_new(length) : NULL;
    if (length > 0 && !buffer->data) {
        if (!small)
            atomic_fetch_sub(&budget->used_bytes, length);
        return FALSE;
    }
    buffer->length = length;
    buffer->budget = small ? NULL : budget;
    return TRUE;
}

static inline void rpc_buffer_clear(RpcBuffer *buffer)
{
    if (buffer->data) {
        explicit_bzero(buffer->data, buffer->length);
        rpc_pages_free(buffer->data, buffer->length);
    }
    if (buffer->budget)
        atomic_fetch_sub(&buffer->budget->used_bytes, buffer->length);
    *buffer = (RpcBuffer){0};
}

/* Hands the buffer over and leaves an empty one behind. */
static inline RpcBuffer rpc_buffer_steal(RpcBuffer *buffer)
{
    RpcBuffer stolen = *buffer;
    *buffer = (RpcBuffer){0};
    return stolen;
}

#endif
