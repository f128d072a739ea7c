/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/volume/incarnation.h"
#include "tests/unit/harness.h"
#include <string.h>

static char *path_in(const char *dir)
{
    return g_build_filename(dir, "hearthd.incarnation", NULL);
}

/* A run that ends without saying so. */
static char *killed_run(const char *path)
{
    Incarnation *run = incarnation_begin(path);
    char *client = incarnation_client(run, "v");
    g_autofree char *text = NULL;
    ck_assert(g_file_get_contents(path, &text, NULL, NULL));
    incarnation_end(run, TRUE);
    ck_assert(g_file_set_contents(path, text, -1, NULL));
    return client;
}

START_TEST(run_after_a_crash_knows_the_dead_sessions)
{
    char *dir = harness_tmpdir();
    g_autofree char *path = path_in(dir);
    g_autofree char *before = killed_run(path);
    Incarnation *run = incarnation_begin(path);
    g_autofree char *dead = incarnation_dead_client(run, "v");
    g_autofree char *live = incarnation_client(run, "v");
    ck_assert_str_eq(dead, before);
    ck_assert_str_ne(live, dead);
    incarnation_end(run, TRUE);
    harness_remove(dir);
}
END_TEST

START_TEST(run_after_a_clean_end_has_none)
{
    char *dir = harness_tmpdir();
    g_autofree char *path = path_in(dir);
    incarnation_end(incarnation_begin(path), TRUE);
    Incarnation *run = incarnation_begin(path);
    ck_assert_ptr_null(incarnation_dead_client(run, "v"));
    incarnation_end(run, TRUE);
    harness_remove(dir);
}
END_TEST

START_TEST(damaged_file_begins_anew)
{
    static const char *const texts[] = {
        "", "x", "a b c", "running", "1 2 3 4", "6d9a1c2e-0b1f-4d3c-8a77-d1f4e0c2b9aa -1 running"};
    char *dir = harness_tmpdir();
    g_autofree char *path = path_in(dir);
    for (size_t n = 0; n < G_N_ELEMENTS(texts); n++) {
        ck_assert(g_file_set_contents(path, texts[n], -1, NULL));
        Incarnation *run = incarnation_begin(path);
        ck_assert_ptr_null(incarnation_dead_client(run, "v"));
        incarnation_end(run, TRUE);
    }
    harness_remove(dir);
}
END_TEST

HARNESS_MAIN("cache/volume/incarnation", run_after_a_crash_knows_the_dead_sessions,
             run_after_a_clean_end_has_none, damaged_file_begins_anew)
