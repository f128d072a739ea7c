/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/volume/adopted_id.h"
#include "driver/volume/id.h"
#include <string.h>
#include "tests/unit/harness.h"

#define UUID "8f7b2c1e-0a4d-4b1a-9a33-0242ac110002"

START_TEST(reads_handles_of_ceph_csi)
{
    static const char text[] = "0001-0009-rook-ceph-0000000000000001-" UUID;
    g_autoptr(AdoptedId) id = adopted_id_decode(text);
    ck_assert_ptr_nonnull(id);
    ck_assert_str_eq(id->cluster_id, "rook-ceph");
    ck_assert_uint_eq(id->location, 1);
    ck_assert_str_eq(id->uuid, UUID);
    g_autofree char *again = adopted_id_encode(id);
    ck_assert_str_eq(again, text);
    g_autofree char *name = adopted_id_volume(id);
    ck_assert_str_eq(name, "csi-vol-" UUID);
    /* A cluster's ID may look like any part of it. */
    g_autoptr(AdoptedId) tricky =
        adopted_id_decode("0001-0024-5de4b25a-d40e-482b-a6e9-adfeb1516dfd-00000000000000ff-" UUID);
    ck_assert_ptr_nonnull(tricky);
    ck_assert_str_eq(tricky->cluster_id, "5de4b25a-d40e-482b-a6e9-adfeb1516dfd");
    ck_assert_uint_eq(tricky->location, 255);
}
END_TEST

START_TEST(takes_nothing_that_is_nearly_one)
{
    static const char *const texts[] = {
        "",
        "0001",
        "0002-0009-rook-ceph-0000000000000001-" UUID,
        "0001-0008-rook-ceph-0000000000000001-" UUID,
        "0001-000a-rook-ceph-0000000000000001-" UUID,
        "0001-000A-rook-cephx-0000000000000001-" UUID,
        "0001-0000--0000000000000001-" UUID,
        "0001-ffff-rook-ceph-0000000000000001-" UUID,
        "0001-0009-rook/ceph-0000000000000001-" UUID,
        "0001-0009-rook-ceph-000000000000001-" UUID,
        "0001-0009-rook-ceph-ffffffffffffffff-" UUID,
        "0001-0009-rook-ceph-0000000000000001-" UUID "0",
        "0001-0009-rook-ceph-0000000000000001-8F7b2c1e-0a4d-4b1a-9a33-0242ac110002",
        "0001-0009-rook-ceph-0000000000000001-8f7b2c1e00a4d-4b1a-9a33-0242ac110002",
        "0001-0009-rook-ceph-0000000000000001-",
        "h1~cephfs~c~f~csi~v",
    };
    for (guint i = 0; i < G_N_ELEMENTS(texts); i++)
        ck_assert_msg(adopted_id_decode(texts[i]) == NULL, "%s", texts[i]);
    ck_assert_ptr_null(adopted_id_decode(NULL));
}
END_TEST

START_TEST(as_an_id_of_ours_it_is_refused_by_name)
{
    g_autoptr(GError) error = NULL;
    ck_assert_ptr_null(volume_id_decode("0001-0009-rook-ceph-0000000000000001-" UUID, &error));
    ck_assert_int_eq(error->code, HEARTH_ERROR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(error->message, "ceph-csi"));
}
END_TEST

HARNESS_MAIN("driver/volume/adopted_id", reads_handles_of_ceph_csi,
             takes_nothing_that_is_nearly_one, as_an_id_of_ours_it_is_refused_by_name)
