/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/harness.h"
#include "common/log.h"
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

/* What a process that begins its log in this way writes of a line with these fields; the caller's.
 */
static char *line_of(const char *format, const char *message, const char *key, const char *value)
{
    char *dir = harness_tmpdir(), *text = NULL;
    g_autofree char *path = g_build_filename(dir, "log", NULL);
    const int saved = dup(STDERR_FILENO), file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(dup2(file, STDERR_FILENO), 0);
    static gboolean begun;
    /* GLib takes one writer for a process, so each test process begins its log once. */
    ck_assert(begun || log_init("hearthd", NULL, format, NULL));
    begun = TRUE;
    g_log_structured(G_LOG_DOMAIN, G_LOG_LEVEL_WARNING, key, value, "MESSAGE", "%s", message);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(file);
    ck_assert(g_file_get_contents(path, &text, NULL, NULL));
    harness_remove(dir);
    return text;
}

START_TEST(json_has_numbers_as_numbers)
{
    static const struct {
        const char *key, *value, *wanted;
    } cases[] = {
        {"ms", "39.1", "\"ms\":39.1"},         {"request", "7", "\"request\":7"},
        {"ms", "soon", "\"ms\":\"soon\""},     {"volume", "12", "\"volume\":\"12\""},
        {"bytes", "1e400x", "\"bytes\":\"1e"}, {"error", "a\n\"b", "\"error\":\"a\\n\\\"b\""},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *line = line_of("json", "call", cases[i].key, cases[i].value);
        ck_assert_msg(strstr(line, cases[i].wanted) != NULL, "%s", line);
        ck_assert_msg(strstr(line, "\"msg\":\"call\"") != NULL, "%s", line);
        json_t *object = json_loads(line, 0, NULL);
        ck_assert_ptr_nonnull(object);
        json_decref(object);
    }
}
END_TEST

START_TEST(text_is_a_line_that_nothing_in_it_breaks)
{
    g_autofree char *plain = line_of("text", "volume train/data is mounted", "pid", "7");
    ck_assert_msg(plain[0] == 'W', "%s", plain);
    ck_assert_msg(g_str_has_suffix(plain, " hearthd] volume train/data is mounted pid=7\n"), "%s",
                  plain);
    g_autofree char *bad = line_of("text", "a\nb\x1b[2J", "error", "x y\n\"z");
    ck_assert_msg(g_str_has_suffix(bad, " hearthd] a\\x0ab\\x1b[2J error=\"x y\\x0a\\\"z\"\n"),
                  "%s", bad);
}
END_TEST

START_TEST(other_words_are_refused)
{
    g_autoptr(GError) error = NULL;
    ck_assert(!log_init("hearthd", NULL, "xml", &error));
    ck_assert_str_eq(error->message, "--log-format=xml: use json or text");
}
END_TEST

HARNESS_MAIN("common/log", json_has_numbers_as_numbers, text_is_a_line_that_nothing_in_it_breaks,
             other_words_are_refused)
