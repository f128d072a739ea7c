/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/mount/mount_words.h"
#include <string.h>
#include "tests/unit/harness.h"

#define CONTEXT "system_u:object_r:container_file_t:s0:c1,c2"

static char *joined(const char *line)
{
    g_auto(GStrv) words = mount_words(line, NULL);
    return words ? g_strjoinv("|", words) : NULL;
}

START_TEST(commas_divide_but_for_those_in_a_quoted_value)
{
    static const struct {
        const char *line, *words;
    } of[] = {
        {"", ""},
        {"ro", "ro"},
        {"ro,noatime", "ro|noatime"},
        {"ro,,x=,", "ro|x="},
        {"context=\"" CONTEXT "\"", "context=\"" CONTEXT "\""},
        {"rw,context=\"" CONTEXT "\",user_id=0", "rw|context=\"" CONTEXT "\"|user_id=0"},
        {"a=\"b,c\",d=\"e,f\"", "a=\"b,c\"|d=\"e,f\""},
        {"context=", "context="},
        {"context=\"\",ro", "context=\"\"|ro"},
        {"context=a:b:c,ro", "context=a:b:c|ro"},
        /* A quote that is not the first of a value is a character as any other. */
        {"lowerdir=/a\"b,ro", "lowerdir=/a\"b|ro"},
        {"\"ro,noatime\"", "\"ro|noatime\""},
        {"a=\"b\\\",c\",d", "a=\"b\\\",c\"|d"},
        {"a=\"b\\\\\",c", "a=\"b\\\\\"|c"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(of); i++) {
        g_autofree char *got = joined(of[i].line);
        ck_assert_msg(got && strcmp(got, of[i].words) == 0, "%s: %s", of[i].line, got);
    }
}
END_TEST

START_TEST(a_quote_that_does_not_end_is_named)
{
    static const struct {
        const char *line, *message;
    } of[] = {
        {"ro,context=\"a:b:c:s0,c1", "mount option context=\"a:b:c:s0,c1: the quote is not closed"},
        {"context=\"", "context=\": the quote is not closed"},
        {"context=\"a\\\"", "the quote is not closed"},
        {"context=\"a\\", "the quote is not closed"},
        {"context=\"a\"b,ro", "behind the closing quote"},
        {"context=\"a\"\"b\"", "behind the closing quote"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(of); i++) {
        g_autoptr(GError) error = NULL;
        ck_assert_msg(!mount_words(of[i].line, &error), "accepted: %s", of[i].line);
        ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT));
        ck_assert_msg(strstr(error->message, of[i].message) != NULL, "%s", error->message);
    }
}
END_TEST

START_TEST(a_value_comes_without_its_quotes)
{
    g_autofree char *quoted = mount_word_value("context=\"" CONTEXT "\"", "context");
    ck_assert_str_eq(quoted, CONTEXT);
    g_autofree char *plain = mount_word_value("context=a:b:c", "context");
    ck_assert_str_eq(plain, "a:b:c");
    g_autofree char *single = mount_word_value("context=\"", "context");
    ck_assert_str_eq(single, "\"");
    ck_assert_ptr_null(mount_word_value("fscontext=a", "context"));
    ck_assert_ptr_null(mount_word_value("contexts=a", "context"));
    ck_assert_ptr_null(mount_word_value("context", "context"));
}
END_TEST

HARNESS_MAIN("driver/node/mount/mount_words", commas_divide_but_for_those_in_a_quoted_value,
             a_quote_that_does_not_end_is_named, a_value_comes_without_its_quotes)
