/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/hearthd/crush_location.h"
#include "tests/unit/harness.h"

static char *location_of(const char *labels, char *const *names)
{
    json_t *object = json_loads(labels, 0, NULL);
    ck_assert_ptr_nonnull(object);
    char *location = crush_location_from_labels(object, names);
    json_decref(object);
    return location;
}

static char *const names[] = {(char *)"kubernetes.io/hostname",
                              (char *)"topology.kubernetes.io/zone", (char *)"rack", NULL};

START_TEST(labels_become_buckets_as_in_ceph_csi)
{
    g_autofree char *all =
        location_of("{\"rack\": \"r1\", \"kubernetes.io/hostname\": \"n1.example.com\", "
                    "\"topology.kubernetes.io/zone\": \"eu-1a\", \"other\": \"x\"}",
                    names);
    ck_assert_str_eq(all, "host=n1-example-com zone=eu-1a rack=r1");
}
END_TEST

START_TEST(labels_that_a_node_lacks_are_left_out)
{
    g_autofree char *one =
        location_of("{\"topology.kubernetes.io/zone\": \"b\", \"rack\": \"\"}", names);
    ck_assert_str_eq(one, "zone=b");
    ck_assert_ptr_null(location_of("{\"x\": \"y\"}", names));
    ck_assert_ptr_null(location_of("{}", names));
}
END_TEST

HARNESS_MAIN("driver/node/hearthd/crush_location", labels_become_buckets_as_in_ceph_csi,
             labels_that_a_node_lacks_are_left_out)
