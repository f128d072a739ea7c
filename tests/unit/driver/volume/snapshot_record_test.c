/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/volume/snapshot_record.h"
#include <string.h>
#include "tests/unit/harness.h"

static VolumeId volume = {.type = VOLUME_CEPHFS,
                          .cluster_id = (char *)"c",
                          .fs_name = (char *)"f",
                          .group = (char *)"csi",
                          .name = (char *)"v"};

START_TEST(holds_what_the_id_does_not)
{
    gint64 before = g_get_real_time() / G_USEC_PER_SEC;
    g_autofree char *text = snapshot_record_encode("n", &volume, "/a/b", 4096, NULL);
    g_autoptr(SnapshotRecord) r = snapshot_record_decode("s", text, strlen(text), NULL);
    ck_assert_str_eq(r->request_name, "n");
    ck_assert_str_eq(r->source_group, "csi");
    ck_assert_str_eq(r->source_name, "v");
    ck_assert_str_eq(r->source_path, "/a/b");
    ck_assert_int_eq(r->bytes, 4096);
    ck_assert(r->created >= before && r->created <= before + 60);
    g_autofree char *key = snapshot_record_key("s");
    ck_assert_str_eq(key, "snap.s");
    ck_assert_str_eq(snapshot_record_key_name(key), "s");
    ck_assert_ptr_null(snapshot_record_key_name("vol.s"));
}
END_TEST

static int decode(const char *text)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(SnapshotRecord) r = snapshot_record_decode("s", text, strlen(text), &error);
    return r ? 0 : error->code;
}

START_TEST(what_is_no_record_is_damaged_and_a_later_one_refused)
{
    static const char *const damaged[] = {
        "",
        "{}",
        "[1]",
        "{\"version\":1,\"kind\":\"volume\"}",
        "{\"version\":1,\"kind\":\"snapshot\",\"requestName\":\"n\",\"source\":\"v\",\"bytes\":1,"
        "\"created\":\"2026-01-01T00:00:00Z\"}",
        "{\"version\":1,\"kind\":\"snapshot\",\"requestName\":\"n\",\"source\":{\"group\":\"g\","
        "\"name\":\"v\"},\"bytes\":1,\"created\":\"yesterday\"}"};
    for (gsize i = 0; i < G_N_ELEMENTS(damaged); i++)
        ck_assert_int_eq(decode(damaged[i]), HEARTH_ERROR_INTERNAL);
    ck_assert_int_eq(decode("{\"version\":2}"), HEARTH_ERROR_FAILED_PRECONDITION);
}
END_TEST

HARNESS_MAIN("driver/volume/snapshot_record", holds_what_the_id_does_not,
             what_is_no_record_is_damaged_and_a_later_one_refused)
