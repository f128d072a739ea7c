/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/mount/selinux.h"
#include <string.h>
#include "tests/unit/harness.h"

#define FILES "system_u:object_r:container_file_t:"

START_TEST(takes_a_context_with_and_without_quotes)
{
    static const char *const words[] = {
        "context=\"" FILES "s0:c1,c2\"",
        "context=" FILES "s0",
        "context=user_u:object_r:tmp_t",
        "context=\"" FILES "s0-s0:c0.c1023\"",
    };
    for (guint i = 0; i < G_N_ELEMENTS(words); i++) {
        g_autofree char *context = NULL;
        g_autoptr(GError) error = NULL;
        ck_assert(selinux_is_option(words[i]));
        ck_assert_msg(selinux_take_option(words[i], &context, &error), "%s",
                      error ? error->message : "");
        ck_assert_ptr_null(strchr(context, '"'));
    }
    ck_assert(!selinux_is_option("fscontext=" FILES "s0"));
    ck_assert(!selinux_is_option("rootcontext=" FILES "s0"));
    ck_assert(!selinux_is_option("context"));
}
END_TEST

START_TEST(refuses_what_is_no_context)
{
    g_autofree char *category = g_strnfill(250, 'c');
    g_autofree char *long_one = g_strconcat("context=a:b:c:", category, NULL);
    const char *const words[] = {
        "context=",         "context=\"\"",          "context=container_file_t",
        "context=a:b",      "context=a:b:",          "context=:b:c",
        "context=a::c",     "context=a:b:c:s0\\,c1", "context=a:b:c:s0 x",
        "context=\"a:b:c:", "context=a:b:c:s0;x",    long_one,
    };
    for (guint i = 0; i < G_N_ELEMENTS(words); i++) {
        g_autofree char *context = NULL;
        g_autoptr(GError) error = NULL;
        ck_assert_msg(!selinux_take_option(words[i], &context, &error), "taken: %s", words[i]);
        ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT));
        ck_assert_ptr_nonnull(strstr(error->message, words[i]));
        ck_assert_ptr_null(context);
    }
}
END_TEST

START_TEST(two_contexts_are_one_only_if_they_are_the_same)
{
    g_autofree char *context = NULL;
    g_autoptr(GError) error = NULL;
    ck_assert(selinux_take_option("context=" FILES "s0:c1", &context, NULL));
    ck_assert(selinux_take_option("context=\"" FILES "s0:c1\"", &context, NULL));
    ck_assert(!selinux_take_option("context=" FILES "s0:c2", &context, &error));
    ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT));
    ck_assert_ptr_nonnull(strstr(error->message, FILES "s0:c1 and " FILES "s0:c2"));
    ck_assert_str_eq(context, FILES "s0:c1");
}
END_TEST

START_TEST(categories_are_the_same_in_any_order)
{
    static const struct {
        const char *a, *b;
        gboolean same;
    } of[] = {
        {FILES "s0:c26,c10", FILES "s0:c10,c26", TRUE},
        {FILES "s0:c1,c2,c3", FILES "s0:c1.c3", TRUE},
        {FILES "s0", FILES "s0-s0", TRUE},
        {FILES "s0-s0:c0.c1023", FILES "s0-s0:c0.c511,c512.c1023", TRUE},
        {FILES "s0:c1,c2", FILES "s0:c1,c3", FALSE},
        {FILES "s0:c1", FILES "s0", FALSE},
        {FILES "s0", FILES "s1", FALSE},
        {FILES "s0", FILES "s0-s0:c1", FALSE},
        {FILES "s0:c1", "system_u:object_r:container_ro_file_t:s0:c1", FALSE},
        {"a:b:c", "a:b:c", TRUE},
        {"a:b:c", "a:b:c:s0", FALSE},
        /* What is not understood has to be the same letter by letter. */
        {"a:b:c:SystemLow", "a:b:c:SystemLow", TRUE},
        {"a:b:c:SystemLow", "a:b:c:s0", FALSE},
        {"a:b:c:s0:c1024", "a:b:c:s0:c1024", TRUE},
        {"a:b:c:s0:c2.c1", "a:b:c:s0:c1.c2", FALSE},
        {"a:b:c:s0:c1,", "a:b:c:s0:c1", FALSE},
    };
    for (guint i = 0; i < G_N_ELEMENTS(of); i++) {
        ck_assert_msg(selinux_same(of[i].a, of[i].b) == of[i].same, "%s and %s", of[i].a, of[i].b);
        ck_assert_msg(selinux_same(of[i].b, of[i].a) == of[i].same, "%s and %s", of[i].b, of[i].a);
    }
}
END_TEST

HARNESS_MAIN("driver/node/mount/selinux", takes_a_context_with_and_without_quotes,
             refuses_what_is_no_context, two_contexts_are_one_only_if_they_are_the_same,
             categories_are_the_same_in_any_order)
