/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/volume/record.h"
#include <string.h>
#include "tests/unit/harness.h"

static VolumeParams params = {.type = VOLUME_CEPHFS,
                              .cluster_id = (char *)"c",
                              .fs_name = (char *)"f",
                              .name_prefix = (char *)"p-",
                              .cache = TRUE,
                              .cache_quota = 4096,
                              .pv_name = (char *)"pv"};
static VolumeId id = {.type = VOLUME_CEPHFS,
                      .cluster_id = (char *)"c",
                      .fs_name = (char *)"f",
                      .group = (char *)"csi",
                      .name = (char *)"p-n"};

static VolumeRecord *record(void)
{
    g_autofree char *text =
        volume_record_encode(&(VolumeRequest){"n", &params, &id, .source = NULL}, NULL, 1 << 30);
    g_autoptr(GError) error = NULL;
    VolumeRecord *r = volume_record_decode("p-n", text, strlen(text), &error);
    ck_assert_msg(r, "%s", error ? error->message : "");
    return r;
}

START_TEST(holds_the_request)
{
    g_autoptr(VolumeRecord) r = record();
    ck_assert_str_eq(r->request_name, "n");
    ck_assert_str_eq(r->group, "csi");
    ck_assert_int_eq(r->bytes, 1 << 30);
    CapacityRange same = {1 << 30, 0};
    ck_assert(volume_record_check_same(r, &(VolumeRequest){"n", &params, &id, .source = NULL}, same,
                                       NULL));
}
END_TEST

START_TEST(the_claim_does_not_matter_for_being_the_same)
{
    g_autoptr(VolumeRecord) r = record();
    VolumeParams other = params;
    other.pv_name = NULL;
    other.pvc_name = (char *)"else";
    ck_assert(volume_record_check_same(r, &(VolumeRequest){"n", &other, &id, .source = NULL},
                                       (CapacityRange){0}, NULL));
}
END_TEST

static void differs(const char *name, const VolumeParams *p, const VolumeId *i, gint64 bytes,
                    const char *because)
{
    g_autoptr(VolumeRecord) r = record();
    g_autoptr(GError) error = NULL;
    ck_assert(!volume_record_check_same(r, &(VolumeRequest){name, p, i, .source = NULL},
                                        (CapacityRange){bytes, 0}, &error));
    ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_ALREADY_EXISTS));
    ck_assert_msg(strstr(error->message, because) != NULL, "%s", error->message);
}

START_TEST(another_source_is_another_volume)
{
    g_autofree char *text = volume_record_encode(
        &(VolumeRequest){"n", &params, &id, .source = "h1~snap~x"}, NULL, 1 << 30);
    g_autoptr(VolumeRecord) r = volume_record_decode("p-n", text, strlen(text), NULL);
    ck_assert_str_eq(r->source, "h1~snap~x");
    CapacityRange any = {0};
    ck_assert(volume_record_check_same(
        r, &(VolumeRequest){"n", &params, &id, .source = "h1~snap~x"}, any, NULL));
    ck_assert(!volume_record_check_same(
        r, &(VolumeRequest){"n", &params, &id, .source = "h1~snap~y"}, any, NULL));
    ck_assert(!volume_record_check_same(r, &(VolumeRequest){"n", &params, &id, .source = NULL}, any,
                                        NULL));
    g_autoptr(VolumeRecord) empty = record();
    ck_assert(!volume_record_check_same(
        empty, &(VolumeRequest){"n", &params, &id, .source = "h1~snap~x"}, any, NULL));
}
END_TEST

START_TEST(its_key_gives_the_name_back)
{
    g_autofree char *key = volume_record_key("p-n");
    ck_assert_str_eq(key, "vol.p-n");
    ck_assert_str_eq(volume_record_key_name(key), "p-n");
    ck_assert_ptr_null(volume_record_key_name("snap.p-n"));
}
END_TEST

START_TEST(says_which_part_differs)
{
    VolumeParams other = params;
    other.cache_quota = 8192;
    differs("n", &other, &id, 1 << 30, "cacheQuota");
    other = params;
    other.pool = (char *)"pool";
    differs("n", &other, &id, 1 << 30, "pool");
    VolumeId group = id;
    group.group = (char *)"other";
    differs("n", &params, &group, 1 << 30, "subvolumeGroup");
    differs("m", &params, &id, 1 << 30, "another request, \"n\"");
    differs("n", &params, &id, 1 << 29, "1073741824");
}
END_TEST

static int code_of(const char *text)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(VolumeRecord) r = volume_record_decode("x", text, strlen(text), &error);
    return r ? 0 : error->code;
}

START_TEST(refuses_what_is_no_record)
{
    ck_assert_int_eq(code_of(""), HEARTH_ERROR_INTERNAL);
    ck_assert_int_eq(code_of("{}"), HEARTH_ERROR_INTERNAL);
    ck_assert_int_eq(code_of("[1]"), HEARTH_ERROR_INTERNAL);
    ck_assert_int_eq(code_of("{\"version\": 1, \"kind\": \"snapshot\", \"requestName\": \"n\", "
                             "\"group\": \"\", \"bytes\": 1, \"parameters\": {}}"),
                     HEARTH_ERROR_INTERNAL);
    ck_assert_int_eq(code_of("{\"version\": 1, \"kind\": \"volume\", \"requestName\": \"n\", "
                             "\"group\": \"\", \"bytes\": 0, \"parameters\": {}}"),
                     HEARTH_ERROR_INTERNAL);
    ck_assert_int_eq(code_of("{\"version\": 2}"), HEARTH_ERROR_INTERNAL);
    ck_assert_int_eq(code_of("{\"version\": 3}"), HEARTH_ERROR_FAILED_PRECONDITION);
}
END_TEST

HARNESS_MAIN("driver/volume/record", another_source_is_another_volume, its_key_gives_the_name_back,
             holds_the_request, the_claim_does_not_matter_for_being_the_same,
             says_which_part_differs, refuses_what_is_no_record)
