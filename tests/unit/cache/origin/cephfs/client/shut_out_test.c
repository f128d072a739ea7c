/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/origin/cephfs/client/client.h"
#include "tests/unit/harness.h"

static void expect(const char *addresses, const char *wanted)
{
    g_autofree char *got = cephfs_blocklist_address(addresses);
    ck_assert_msg(g_strcmp0(got, wanted) == 0, "%s gave %s", addresses, got ? got : "none");
}

START_TEST(the_address_of_the_one_client_is_found)
{
    expect("10.0.0.1:0/77", "10.0.0.1:0/77");
    expect("v1:10.0.0.1:0/77", "10.0.0.1:0/77");
    expect("v2:10.0.0.1:0/77", "10.0.0.1:0/77");
    expect("[v2:10.0.0.1:0/77,v1:10.0.0.1:0/77]", "10.0.0.1:0/77");
    expect("[v2:[fd00::1]:0/4294967295,v1:[fd00::1]:0/4294967295]", "[fd00::1]:0/4294967295");
    expect("v1:[fd00::1]:0/77", "[fd00::1]:0/77");
}
END_TEST

/* The blocklist takes an address without a number for all clients of the node. */
START_TEST(the_address_of_a_whole_node_is_none)
{
    expect("10.0.0.1:0/0", NULL);
    expect("10.0.0.1", NULL);
    expect("10.0.0.1:0", NULL);
    expect("[v2:10.0.0.1:0/0,v1:10.0.0.1:0/77]", NULL);
    expect("-", NULL);
    expect(":/0", NULL);
    expect("10.0.0.1:0/77\", \"x\": \"", NULL);
    expect("", NULL);
}
END_TEST

HARNESS_MAIN("cache/origin/cephfs/client/shut_out", the_address_of_the_one_client_is_found,
             the_address_of_a_whole_node_is_none)
