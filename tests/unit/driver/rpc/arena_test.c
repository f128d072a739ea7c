/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/rpc/arena.h"

#include <stdint.h>
#include <string.h>

#include "driver/rpc/buffer.h"
#include "tests/unit/harness.h"

START_TEST(pieces_are_zeroed_aligned_and_apart)
{
    RpcArena arena;
    rpc_arena_init(&arena);
    guint8 *pieces[2000];
    for (size_t i = 0; i < 2000; i++) {
        size_t size = i % 97 * (i % 50 == 0 ? 100 : 1);
        pieces[i] = rpc_arena_alloc(&arena, size);
        ck_assert_ptr_nonnull(pieces[i]);
        ck_assert_uint_eq((uintptr_t)pieces[i] % _Alignof(max_align_t), 0);
        for (size_t k = 0; k < size; k++)
            ck_assert_uint_eq(pieces[i][k], 0);
        memset(pieces[i], 0xff, size); /* shows in the next piece if they overlap */
    }
    ck_assert(!arena.exhausted);
    rpc_arena_clear(&arena);
}
END_TEST

START_TEST(small_calls_take_one_small_chunk)
{
    RpcArena arena;
    rpc_arena_init(&arena);
    for (int i = 0; i < 10; i++)
        rpc_arena_alloc(&arena, 100);
    ck_assert_uint_le(arena.total_bytes, 4096);
    rpc_arena_clear(&arena);
    ck_assert_uint_eq(arena.total_bytes, 0);
}
END_TEST

START_TEST(arena_ends_at_its_bound)
{
    RpcArena arena;
    rpc_arena_init(&arena);
    size_t total = 0;
    while (rpc_arena_alloc(&arena, 1000))
        total += 1000;
    ck_assert(arena.exhausted);
    ck_assert_uint_gt(total, RPC_ARENA_MAX_BYTES / 10 * 9);
    ck_assert_uint_le(arena.total_bytes, RPC_ARENA_MAX_BYTES);
    rpc_arena_clear(&arena);
    ck_assert(!arena.exhausted);
    ck_assert_ptr_null(rpc_arena_alloc(&arena, SIZE_MAX));
    ck_assert(arena.exhausted);
    rpc_arena_clear(&arena);
    ck_assert_ptr_nonnull(rpc_arena_alloc(&arena, RPC_ARENA_MAX_BYTES));
    ck_assert_ptr_null(rpc_arena_alloc(&arena, 1));
    rpc_arena_clear(&arena);
}
END_TEST

START_TEST(budget_is_taken_by_large_buffers_and_given_back)
{
    RpcBudget budget = {0};
    RpcBuffer large[16], small, extra;
    for (int i = 0; i < 16; i++)
        ck_assert(rpc_buffer_init(&large[i], 1 << 20, &budget));
    ck_assert(!rpc_buffer_init(&extra, RPC_SMALL_BYTES + 1, &budget));
    ck_assert(rpc_buffer_init(&small, RPC_SMALL_BYTES, &budget));
    RpcBuffer moved = rpc_buffer_steal(&large[0]);
    rpc_buffer_clear(&large[0]);
    ck_assert_uint_eq(atomic_load(&budget.used_bytes), RPC_BUDGET_BYTES);
    rpc_buffer_clear(&moved);
    ck_assert(rpc_buffer_init(&extra, RPC_SMALL_BYTES + 1, &budget));
    for (int i = 0; i < 16; i++)
        rpc_buffer_clear(&large[i]);
    rpc_buffer_clear(&small);
    rpc_buffer_clear(&extra);
    ck_assert_uint_eq(atomic_load(&budget.used_bytes), 0);
}
END_TEST

HARNESS_MAIN("driver/rpc/arena", pieces_are_zeroed_aligned_and_apart,
             small_calls_take_one_small_chunk, arena_ends_at_its_bound,
             budget_is_taken_by_large_buffers_and_given_back)
