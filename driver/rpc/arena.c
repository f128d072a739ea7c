/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bump allocator. Chunks grow from 4 KiB, which are enough for a Probe, to 256 KiB; what is
 * larger than a quarter of the next chunk gets one of its own, so that little is left unused.
 * Chunks come zeroed and no piece is handed out twice, hence all memory is zero without clearing it
 * here.
 */
#include "driver/rpc/arena.h"

#include <string.h>

#include "driver/rpc/pages.h"

#define FIRST_CHUNK_BYTES 4096
#define LARGEST_CHUNK_BYTES (256 * 1024)

struct RpcArenaChunk {
    RpcArenaChunk *next;
    size_t capacity;
    size_t used;
    _Alignas(max_align_t) guint8 data[];
};

static void *allocator_alloc(void *arena, size_t size)
{
    return rpc_arena_alloc(arena, size);
}

static void allocator_free(void *arena, void *pointer)
{
    (void)arena, (void)pointer;
}

void rpc_arena_init(RpcArena *arena)
{
    *arena = (RpcArena){
        .allocator = {.alloc = allocator_alloc, .free = allocator_free, .allocator_data = arena}};
}

void rpc_arena_clear(RpcArena *arena)
{
    for (RpcArenaChunk *chunk = arena->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        explicit_bzero(chunk->data, chunk->used);
        rpc_pages_free(chunk, sizeof(*chunk) + chunk->capacity);
    }
    rpc_arena_init(arena);
}

static RpcArenaChunk *chunk_new(RpcArena *arena, size_t capacity)
{
    if (capacity > RPC_ARENA_MAX_BYTES - arena->total_bytes)
        return NULL;
    RpcArenaChunk *chunk = rpc_pages_new(sizeof(*chunk) + capacity);
    if (!chunk)
        return NULL;
    chunk->capacity = capacity;
    arena->total_bytes += capacity;
    return chunk;
}

void *rpc_arena_alloc(RpcArena *arena, size_t size)
{
    if (size > RPC_ARENA_MAX_BYTES) {
        arena->exhausted = TRUE;
        return NULL;
    }
    const size_t align = _Alignof(max_align_t);
    size = (MAX(size, 1) + align - 1) & ~(align - 1);

    RpcArenaChunk *chunk = arena->chunks;
    if (!chunk || size > chunk->capacity - chunk->used) {
        size_t regular = chunk ? MIN(arena->total_bytes, LARGEST_CHUNK_BYTES) : FIRST_CHUNK_BYTES;
        gboolean own_chunk = size > regular / 4;
        chunk = chunk_new(arena, own_chunk ? size : regular);
        if (!chunk) {
            arena->exhausted = TRUE;
            return NULL;
        }
        if (own_chunk && arena->chunks) {
            /* Behind the head, which may have room left. */
            chunk->next = arena->chunks->next;
            arena->chunks->next = chunk;
        } else {
            chunk->next = arena->chunks;
            arena->chunks = chunk;
        }
    }
    void *piece = chunk->data + chunk->used;
    chunk->used += size;
    return piece;
}
