/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/volume/name.h"
#include <string.h>
#include "tests/unit/harness.h"

START_TEST(keeps_a_legal_name)
{
    g_autofree char *name = name_backend("csi-vol-", "pvc-1_a.B", 100, NULL);
    ck_assert_str_eq(name, "csi-vol-pvc-1_a.B");
}
END_TEST

START_TEST(hashes_what_is_illegal_or_long_and_always_alike)
{
    g_autofree char *a = name_backend("p-", "with blank", 100, NULL);
    g_autofree char *b = name_backend("p-", "with blank", 100, NULL);
    g_autofree char *c = name_backend("p-", "with/slash", 100, NULL);
    g_autofree char *d = name_backend("p-", "pvc-12345678901234567890123456789012345", 36, NULL);
    ck_assert_str_eq(a, b);
    ck_assert_str_ne(a, c);
    ck_assert_uint_eq(strlen(a), 2 + NAME_HASH_DIGITS);
    ck_assert_uint_eq(strlen(d), 2 + NAME_HASH_DIGITS);
    ck_assert(name_is_plain(a) && name_is_plain(c) && name_is_plain(d));
    /* The value itself is fixed: a volume made by one release is found by the next. */
    ck_assert_str_eq(a, "p-3d68000eef54d76f0fee56ada9cd15c9");
}
END_TEST

START_TEST(takes_up_to_the_limit_of_csi)
{
    g_autofree char *most = g_strnfill(128, 'n'), *over = g_strnfill(129, 'n'),
                    *far = g_strnfill(300, 'n');
    ck_assert(name_check_request(most, NULL));
    g_autoptr(GError) error = NULL;
    ck_assert(!name_check_request(over, &error));
    ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT));
    g_clear_error(&error);
    ck_assert_ptr_null(name_backend("p", far, 1000, &error));
    ck_assert_ptr_nonnull(strstr(error->message, "300"));
}
END_TEST

START_TEST(refuses_empty_control_characters_and_bad_utf8)
{
    static const char *const bad[] = {"", "a\nb", "a\x7f", "\xc2\x85", "a\xff", "\t"};
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        ck_assert_ptr_null(name_backend("p-", bad[i], 100, &error));
        ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT));
        ck_assert(g_utf8_validate(error->message, -1, NULL));
    }
}
END_TEST

START_TEST(says_when_not_even_a_hash_fits)
{
    g_autoptr(GError) error = NULL;
    ck_assert_ptr_null(name_backend("prefix-", "with blank", 38, &error));
    ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT));
    ck_assert_ptr_nonnull(strstr(error->message, "volumeNamePrefix \"prefix-\""));
    g_autofree char *fits = name_backend("prefix-", "with blank", 39, NULL);
    ck_assert_ptr_nonnull(fits);
}
END_TEST

HARNESS_MAIN("driver/volume/name", keeps_a_legal_name,
             hashes_what_is_illegal_or_long_and_always_alike, takes_up_to_the_limit_of_csi,
             refuses_empty_control_characters_and_bad_utf8, says_when_not_even_a_hash_fits)
