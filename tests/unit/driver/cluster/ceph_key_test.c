/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/cluster/ceph_key.h"
#include "tests/unit/harness.h"

START_TEST(keys_have_a_type)
{
    ck_assert_int_eq(ceph_key_type("AQAAAAAAAAAAABAAMDEyMzQ1Njc4OWFiY2RlZg=="), CEPH_KEY_AES);
    ck_assert_int_eq(ceph_key_type("AgAAAAAAAAAAACAAMDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="),
                     CEPH_KEY_AES256K);
    /* Of another type; shorter than it says; too short for aes256k; not base64; empty. */
    ck_assert_int_eq(ceph_key_type("AwAAAAAAAAAAACAAMDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="),
                     CEPH_KEY_BAD);
    ck_assert_int_eq(ceph_key_type("AQAAAAAAAAAAABAAMDEyMzQ1Njc4OWFiY2Q="), CEPH_KEY_BAD);
    ck_assert_int_eq(ceph_key_type("AgAAAAAAAAAAABAAMDEyMzQ1Njc4OWFiY2RlZg=="), CEPH_KEY_BAD);
    ck_assert_int_eq(ceph_key_type("no key"), CEPH_KEY_BAD);
    ck_assert_int_eq(ceph_key_type(""), CEPH_KEY_BAD);
}
END_TEST

START_TEST(what_ceph_would_print_since_it_cannot_decode_it_is_no_key)
{
    /* Too short for aes; with a character that is not base64's; with bits that encode nothing. */
    ck_assert_int_eq(ceph_key_type("AQAAAAAAAAAAAAgAMDEyMzQ1Njc="), CEPH_KEY_BAD);
    ck_assert_int_eq(ceph_key_type("AQAAAAAA-AAAABAAMDEyMzQ1Njc4OWFiY2RlZg=="), CEPH_KEY_BAD);
    ck_assert_int_eq(ceph_key_type("AQAAAAAA-AAAAABAAMDEyMzQ1Njc4OWFiY2RlZg==="), CEPH_KEY_BAD);
    ck_assert_int_eq(ceph_key_type("AQAAAAAAAAAAABAAMDEyMzQ1Njc4OWFiY2RlZh=="), CEPH_KEY_BAD);
}
END_TEST

START_TEST(versions_that_know_aes256k)
{
    static const struct {
        CephVersion version;
        gboolean has;
    } cases[] = {
        {{16, 2, 15}, FALSE}, {{18, 2, 8}, FALSE}, {{19, 2, 5}, FALSE}, {{19, 2, 6}, TRUE},
        {{20, 2, 3}, FALSE},  {{20, 2, 4}, TRUE},  {{20, 3, 0}, TRUE},  {{21, 2, 0}, TRUE},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++)
        ck_assert_int_eq(ceph_version_has_aes256k(cases[i].version), cases[i].has);
}
END_TEST

HARNESS_MAIN("driver/cluster/ceph_key", keys_have_a_type,
             what_ceph_would_print_since_it_cannot_decode_it_is_no_key, versions_that_know_aes256k)
