/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/volume/topology.h"
#include <string.h>
#include "tests/unit/harness.h"

START_TEST(a_name_that_is_a_label_value_stays)
{
    g_autofree char *value = topology_node_value("gpu-17.example.org");
    ck_assert_str_eq(value, "gpu-17.example.org");
}
END_TEST

START_TEST(a_longer_one_becomes_one)
{
    g_autofree char *name = g_strnfill(253, 'a');
    g_autofree char *other = g_strdup(name);
    other[252] = 'b';
    g_autofree char *one = topology_node_value(name), *again = topology_node_value(name);
    g_autofree char *two = topology_node_value(other);
    ck_assert_uint_eq(strlen(one), 63);
    ck_assert_str_eq(one, again);
    ck_assert_str_ne(one, two);
}
END_TEST

HARNESS_MAIN("driver/volume/topology", a_name_that_is_a_label_value_stays, a_longer_one_becomes_one)
