/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/harness.h"
#include "common/suggest.h"

static const char *const words[] = {"status", "datasets", "top",   "jobs",   "job", "pin",
                                    "unpin",  "--json",   "evict", "--wide", NULL};

START_TEST(typing_errors_are_recognised)
{
    static const struct {
        const char *typed, *meant;
    } cases[] = {{"statsu", "status"},  {"staus", "status"},  {"statuss", "status"},
                 {"datas", "datasets"}, {"jbos", "jobs"},     {"tpo", "top"},
                 {"--jsn", "--json"},   {"evcit", "evict"},   {"st", "status"},
                 {"unpn", "unpin"},     {"--widee", "--wide"}};
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++)
        ck_assert_str_eq(suggest(cases[i].typed, words), cases[i].meant);
}
END_TEST

START_TEST(other_words_are_not)
{
    static const char *const others[] = {
        "",         "x",
        "mount",    "configuration",
        "--output", "a word that is much longer than any command of hearthctl could ever be"};
    for (guint i = 0; i < G_N_ELEMENTS(others); i++)
        ck_assert_msg(suggest(others[i], words) == NULL, "%s: %s", others[i],
                      suggest(others[i], words));
}
END_TEST

HARNESS_MAIN("common/suggest", typing_errors_are_recognised, other_words_are_not)
