/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/kube/token.h"
#include "driver/kube/error.h"
#include "tests/unit/harness.h"

#define S G_USEC_PER_SEC

static void expect(KubeToken *t, gint64 now_us, const char *wanted)
{
    g_autoptr(GError) error = NULL;
    char *token = kube_token_get(t, now_us, &error);
    ck_assert_ptr_nonnull(token);
    ck_assert_str_eq(token, wanted);
    kube_token_wipe(token);
}

START_TEST(file_is_read_anew_after_a_minute)
{
    char *dir = harness_tmpdir();
    g_autofree char *path = g_build_filename(dir, "token", NULL);
    g_autoptr(KubeToken) t = kube_token_new_file(path);
    g_file_set_contents(path, "first\n", -1, NULL);
    expect(t, 100 * S, "first");
    g_file_set_contents(path, "second\n", -1, NULL);
    expect(t, 159 * S, "first");
    expect(t, 160 * S, "second");
    harness_remove(dir);
}
END_TEST

START_TEST(refused_token_is_read_anew_at_once)
{
    char *dir = harness_tmpdir();
    g_autofree char *path = g_build_filename(dir, "token", NULL);
    g_autoptr(KubeToken) t = kube_token_new_file(path);
    g_file_set_contents(path, "first", -1, NULL);
    expect(t, 100 * S, "first");
    ck_assert(!kube_token_renew(t, "first", 101 * S));
    g_file_set_contents(path, "second", -1, NULL);
    ck_assert(kube_token_renew(t, "first", 102 * S));
    expect(t, 102 * S, "second");
    harness_remove(dir);
}
END_TEST

START_TEST(unreadable_file_leaves_last_token)
{
    char *dir = harness_tmpdir();
    g_autofree char *path = g_build_filename(dir, "token", NULL);
    g_autoptr(KubeToken) t = kube_token_new_file(path);
    g_autoptr(GError) error = NULL;
    ck_assert_ptr_null(kube_token_get(t, 0, &error));
    ck_assert(g_error_matches(error, KUBE_ERROR, KUBE_ERROR_CONFIG));
    g_file_set_contents(path, "first", -1, NULL);
    expect(t, 1 * S, "first");
    remove(path);
    expect(t, 100 * S, "first");
    g_file_set_contents(path, "two\nlines", -1, NULL);
    expect(t, 200 * S, "first");
    harness_remove(dir);
}
END_TEST

START_TEST(fixed_token_never_changes)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KubeToken) t = kube_token_new("abc", "here", &error);
    ck_assert(!kube_token_renew(t, "abc", 0));
    expect(t, 1000 * S, "abc");
    ck_assert_ptr_null(kube_token_new("a b", "here", &error));
}
END_TEST

HARNESS_MAIN("driver/kube/token", file_is_read_anew_after_a_minute,
             refused_token_is_read_anew_at_once, unreadable_file_leaves_last_token,
             fixed_token_never_changes)
