/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/harness.h"
#include "common/size.h"
#include <gio/gio.h>
#include <string.h>

START_TEST(sizes_are_read_with_their_units)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        {"0", 0},
        {"4096", 4096},
        {"1K", 1000},
        {"1k", 1000},
        {"1Ki", 1024},
        {"10GB", 10000000000},
        {"10GiB", 10737418240},
        {"1.5Ti", 1649267441664},
        {"0.5K", 500},
        {"2P", 2000000000000000},
        {"7B", 7},
        {"9223372036854775807", G_MAXINT64},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(good); i++) {
        g_autoptr(GError) error = NULL;
        uint64_t bytes;
        ck_assert_msg(size_parse("--x", good[i].text, &bytes, &error), "%s", good[i].text);
        ck_assert_msg(bytes == good[i].bytes, "%s: %" G_GUINT64_FORMAT, good[i].text, bytes);
    }
}
END_TEST

START_TEST(what_is_no_size_is_refused_by_name)
{
    static const char *const bad[] = {"",
                                      "G",
                                      "-1",
                                      "1.",
                                      ".5",
                                      "1X",
                                      "1GG",
                                      "1GiX",
                                      "1 G",
                                      "1e9",
                                      "1Kib",
                                      "0x10",
                                      "1.5.5",
                                      "9223372036854775808",
                                      "8193Pi",
                                      "99999999999999999999999",
                                      "1.00000000001G",
                                      "1iB"};
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        uint64_t bytes;
        ck_assert_msg(!size_parse("--cache-size", bad[i], &bytes, &error), "%s", bad[i]);
        ck_assert(g_error_matches(error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT));
        g_autofree char *start = g_strdup_printf("--cache-size=%s:", bad[i]);
        ck_assert(g_str_has_prefix(error->message, start));
    }
}
END_TEST

START_TEST(sizes_are_written_for_people)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } good[] = {
        {0, "0 B"},
        {1023, "1023 B"},
        {1024, "1.0 KiB"},
        {1536, "1.5 KiB"},
        {1048575, "1.0 MiB"},
        {13207024435, "12.3 GiB"},
        {UINT64_MAX, "16.0 EiB"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(good); i++) {
        g_autofree char *text = size_format(good[i].bytes);
        ck_assert_str_eq(text, good[i].text);
    }
}
END_TEST

HARNESS_MAIN("common/size", sizes_are_read_with_their_units, what_is_no_size_is_refused_by_name,
             sizes_are_written_for_people)
