/* SPDX-License-Identifier: Apache-2.0 */
/* Names of datasets: one form, nothing that leads out of a subvolume. */
#include "driver/volume/dataset_name.h"
#include <string.h>
#include "tests/unit/harness.h"

static void same(const char *text, const char *group, const char *subvolume, const char *snapshot)
{
    g_autoptr(DatasetName) name = dataset_name_parse(text, NULL);
    ck_assert_ptr_nonnull(name);
    ck_assert_int_eq(g_strcmp0(name->group, group), 0);
    ck_assert_str_eq(name->subvolume, subvolume);
    ck_assert_str_eq(name->snapshot, snapshot);
    g_autofree char *again = dataset_name_text(name);
    ck_assert_str_eq(again, text);
}

START_TEST(a_name_is_read_and_written)
{
    same("imagenet@v2", NULL, "imagenet", "v2");
    same("team/imagenet@v2", "team", "imagenet", "v2");
    same("a@b@c", NULL, "a@b", "c");
}
END_TEST

START_TEST(what_is_no_name_is_refused_with_the_form)
{
    static const char *const bad[] = {"",       "x",       "@",     "x@",    "@v",
                                      "/x@v",   "g/@v",    "g/x@",  "..@v",  "x@..",
                                      "../x@v", "g/h/x@v", "x@v/w", "g/x@/", "./x@v"};
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        ck_assert_msg(!dataset_name_parse(bad[i], &error), "%s", bad[i]);
        ck_assert_int_eq(error->code, HEARTH_ERROR_INVALID_ARGUMENT);
        ck_assert_ptr_nonnull(strstr(error->message, "SUBVOLUME@SNAPSHOT"));
    }
}
END_TEST

START_TEST(its_directory_is_the_mgrs)
{
    g_autoptr(DatasetName) plain = dataset_name_parse("x@v", NULL);
    g_autoptr(DatasetName) other = dataset_name_parse("g/x@v", NULL);
    g_autofree char *a = dataset_name_parent(plain, "csi"), *b = dataset_name_parent(other, "csi");
    ck_assert_str_eq(a, "/volumes/csi/x/.snap/v");
    ck_assert_str_eq(b, "/volumes/g/x/.snap/v");
}
END_TEST

HARNESS_MAIN("driver/volume/dataset_name", a_name_is_read_and_written,
             what_is_no_name_is_refused_with_the_form, its_directory_is_the_mgrs)
