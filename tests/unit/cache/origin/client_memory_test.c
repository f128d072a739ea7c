/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/origin/client_memory.h"
#include "tests/unit/harness.h"

#define MIB ((uint64_t)1 << 20)

START_TEST(all_connections_share_the_bytes)
{
    uint64_t taken[100], sum = 0;
    client_memory_set(512 * MIB, 1000000);
    for (int i = 0; i < 100; i++)
        sum += taken[i] = client_memory_take();
    ck_assert_uint_eq(taken[0], CLIENT_BYTES_MOST);
    ck_assert_uint_lt(taken[10], taken[0]);
    ck_assert_uint_eq(taken[99], CLIENT_BYTES_LEAST);
    /* What is over the budget is the least of those that came last. */
    ck_assert_uint_le(sum, 512 * MIB + 100 * (uint64_t)CLIENT_BYTES_LEAST);
    ClientMemory memory;
    client_memory_look(&memory);
    ck_assert_uint_eq(memory.bytes, sum);
    ck_assert_uint_eq(memory.bytes_most, 512 * MIB);
    for (int i = 0; i < 100; i++)
        client_memory_give(taken[i]);
    client_memory_look(&memory);
    ck_assert_uint_eq(memory.bytes, 0);
    const uint64_t again = client_memory_take();
    ck_assert_uint_eq(again, CLIENT_BYTES_MOST);
    client_memory_give(again);
}
END_TEST

START_TEST(each_keeps_fewer_names_with_each_further_one)
{
    uint64_t taken[1000];
    client_memory_set(64 * MIB, 100000);
    taken[0] = client_memory_take();
    ck_assert_uint_eq(client_memory_names(), CLIENT_NAMES_MOST);
    for (int i = 1; i < 10; i++)
        taken[i] = client_memory_take();
    ck_assert_uint_eq(client_memory_names(), 10000);
    ClientMemory memory;
    client_memory_look(&memory);
    ck_assert_uint_eq(memory.names, 100000);
    for (int i = 10; i < 1000; i++)
        taken[i] = client_memory_take();
    ck_assert_uint_eq(client_memory_names(), CLIENT_NAMES_LEAST);
    for (int i = 0; i < 1000; i++)
        client_memory_give(taken[i]);
    ck_assert_uint_eq(client_memory_names(), CLIENT_NAMES_MOST);
}
END_TEST

HARNESS_MAIN("cache/origin/client_memory", all_connections_share_the_bytes,
             each_keeps_fewer_names_with_each_further_one)
