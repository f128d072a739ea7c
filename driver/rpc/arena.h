/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of one call: zeroed pieces cut from a few chunks, all freed at once. A request may carry
 * secrets and the decoder copies them here, so every chunk is wiped before it is freed. Bounded:
 * past RPC_ARENA_MAX_BYTES allocation fails and the arena says so, which fails the call. Not
 * thread-safe: a call belongs to one worker.
 */
#ifndef HEARTH_DRIVER_RPC_ARENA_H
#define HEARTH_DRIVER_RPC_ARENA_H

#include <glib.h>
#include <protobuf-c/protobuf-c.h>

#define RPC_ARENA_MAX_BYTES (16 * 1024 * 1024)

typedef struct RpcArenaChunk RpcArenaChunk;

typedef struct RpcArena {
    RpcArenaChunk *chunks;        /* the newest first */
    size_t total_bytes;           /* of all chunks */
    gboolean exhausted;           /* an allocation was refused */
    ProtobufCAllocator allocator; /* over this arena; its free does nothing */
} RpcArena;

/* The arena must not move afterwards: its allocator points to it. */
void rpc_arena_init(RpcArena *arena);
/* Wipes and frees everything; the arena is empty and usable again. */
void rpc_arena_clear(RpcArena *arena);
/* Zeroed and aligned for any type. NULL past the bound or without memory. */
void *rpc_arena_alloc(RpcArena *arena, size_t size);

#endif
