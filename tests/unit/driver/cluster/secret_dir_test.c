/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/cluster/secret_dir.h"
#include <string.h>
#include "tests/unit/harness.h"

#define KEY "AQAAAAAAAAAAABAAMDEyMzQ1Njc4OWFiY2RlZg=="

static void write_user(const char *dir, const char *sub, const char *user, const char *key)
{
    g_autofree char *where = g_build_filename(dir, sub, NULL);
    ck_assert_int_eq(g_mkdir_with_parents(where, 0700), 0);
    g_autofree char *id_path = g_build_filename(where, "userID", NULL);
    g_autofree char *key_path = g_build_filename(where, "userKey", NULL);
    ck_assert(g_file_set_contents(id_path, user, -1, NULL));
    ck_assert(g_file_set_contents(key_path, key, -1, NULL));
}

START_TEST(a_clusters_own_user_comes_first)
{
    char *dir = harness_tmpdir();
    write_user(dir, "", "all", KEY "\n");
    write_user(dir, "c1", "one", KEY);
    g_autoptr(Secrets) one = secret_dir_read(dir, "c1", NULL);
    g_autoptr(Secrets) all = secret_dir_read(dir, "c2", NULL);
    ck_assert_str_eq(one->user, "one");
    ck_assert_str_eq(all->user, "all");
    ck_assert_str_eq(all->key, KEY);
    harness_remove(dir);
}
END_TEST

START_TEST(what_is_missing_is_said_without_the_key)
{
    char *dir = harness_tmpdir();
    g_autoptr(GError) error = NULL;
    ck_assert_ptr_null(secret_dir_read(dir, "c", &error));
    ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION));
    g_clear_error(&error);
    write_user(dir, "", "u", "not-a-key");
    ck_assert_ptr_null(secret_dir_read(dir, "../c", &error));
    ck_assert_ptr_null(strstr(error->message, "not-a-key"));
    harness_remove(dir);
}
END_TEST

HARNESS_MAIN("driver/cluster/secret_dir", a_clusters_own_user_comes_first,
             what_is_missing_is_said_without_the_key)
