/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/fuse/written.h"
#include "tests/unit/harness.h"

#define SIZE (10u * WRITTEN_BLOCK_BYTES)

START_TEST(nothing_is_written)
{
    g_autoptr(Written) w = written_new();
    ck_assert(!written_touches(NULL, 0, SIZE, SIZE));
    ck_assert(!written_touches(w, 0, SIZE, SIZE));
    written_add(w, 0, 0);
    ck_assert(!written_touches(w, 0, SIZE, SIZE));
}
END_TEST

START_TEST(blocks_of_a_write_are_touched)
{
    g_autoptr(Written) w = written_new();
    written_add(w, 3 * WRITTEN_BLOCK_BYTES - 1, 2); /* the third and the fourth */
    ck_assert(!written_touches(w, 0, 2 * WRITTEN_BLOCK_BYTES, SIZE));
    ck_assert(written_touches(w, 0, 2 * WRITTEN_BLOCK_BYTES + 1, SIZE));
    ck_assert(written_touches(w, 4 * WRITTEN_BLOCK_BYTES - 1, 1, SIZE));
    ck_assert(!written_touches(w, 4 * WRITTEN_BLOCK_BYTES, 1, SIZE));
}
END_TEST

START_TEST(a_read_at_the_end_is_touched_once_the_file_may_be_longer)
{
    g_autoptr(Written) w = written_new();
    written_add(w, SIZE - 1, 1);
    ck_assert(!written_touches(w, 0, WRITTEN_BLOCK_BYTES, SIZE));
    written_add(w, SIZE + 100 * WRITTEN_BLOCK_BYTES, 1);
    ck_assert(written_touches(w, SIZE, 1, SIZE));
    ck_assert(written_touches(w, 0, SIZE + 1, SIZE));
    ck_assert(!written_touches(w, 0, WRITTEN_BLOCK_BYTES, SIZE));
    g_autoptr(Written) at_end = written_new();
    written_add_at_end(at_end);
    ck_assert(written_touches(at_end, SIZE, 1, SIZE));
    ck_assert(!written_touches(at_end, SIZE - 1, 1, SIZE));
}
END_TEST

START_TEST(many_blocks_are_all)
{
    g_autoptr(Written) w = written_new();
    for (uint64_t b = 0; b < WRITTEN_BLOCKS_MAX; b++)
        written_add(w, 2 * b * WRITTEN_BLOCK_BYTES, 1);
    ck_assert(!written_touches(w, WRITTEN_BLOCK_BYTES, 1, UINT64_MAX));
    written_add(w, 2ULL * WRITTEN_BLOCKS_MAX * WRITTEN_BLOCK_BYTES, 1);
    ck_assert(written_touches(w, WRITTEN_BLOCK_BYTES, 1, UINT64_MAX));
    g_autoptr(Written) large = written_new();
    written_add(large, 0, UINT64_MAX);
    ck_assert(written_touches(large, 1ULL << 60, 1, UINT64_MAX));
}
END_TEST

START_TEST(over_the_bound_a_set_is_all)
{
    const uint64_t held = written_memory_held();
    written_memory_set(held + 2 * WRITTEN_SET_BYTES + 3 * WRITTEN_BLOCK_COST_BYTES);
    Written *one = written_new(), *two = written_new();
    g_autoptr(Written) three = written_new();
    ck_assert(written_touches(three, 0, 1, UINT64_MAX));
    written_add(one, 0, 2 * WRITTEN_BLOCK_BYTES);
    written_add(one, 0, 1); /* is there */
    written_add(two, 0, 1);
    ck_assert(!written_touches(two, WRITTEN_BLOCK_BYTES, 1, UINT64_MAX));
    ck_assert_uint_eq(written_memory_held(), written_memory_most());
    written_add(two, WRITTEN_BLOCK_BYTES, 1);
    ck_assert(written_touches(two, 1ULL << 60, 1, UINT64_MAX));
    ck_assert(!written_touches(one, 2 * WRITTEN_BLOCK_BYTES, 1, UINT64_MAX));
    /* What it had is free for others. */
    written_add(one, 2 * WRITTEN_BLOCK_BYTES, 1);
    ck_assert(!written_touches(one, 3 * WRITTEN_BLOCK_BYTES, 1, UINT64_MAX));
    written_unref(one);
    written_unref(two);
    ck_assert_uint_eq(written_memory_held(), held);
}
END_TEST

HARNESS_MAIN("cache/fuse/written", over_the_bound_a_set_is_all, nothing_is_written,
             blocks_of_a_write_are_touched,
             a_read_at_the_end_is_touched_once_the_file_may_be_longer, many_blocks_are_all)
