/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/harness.h"
#include "cmd/hearthctl/report/progress.h"
#include "cmd/hearthctl/report/words.h"

static json_t *job(const char *state, json_int_t held, json_int_t done, json_int_t total)
{
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "volume", "v", "state", state,
                     "bytesHeld", held, "bytesDone", done, "bytesTotal", total, "filesDone",
                     (json_int_t)3, "filesTotal", (json_int_t)12, "elapsedMs", (json_int_t)2200);
}

static void assert_text(char *text, const char *wanted)
{
    ck_assert_str_eq(text, wanted);
    g_free(text);
}

START_TEST(times_are_in_two_units)
{
    assert_text(words_duration(0), "0s");
    assert_text(words_duration(59), "59s");
    assert_text(words_duration(250), "4m10s");
    assert_text(words_duration(7500), "2h5m");
    assert_text(words_duration(2 * 86400 + 3 * 3600 + 59), "2d3h");
    assert_text(words_duration_ms(2240), "2.2s");
    assert_text(words_duration_ms(250000), "4m10s");
}
END_TEST

START_TEST(all_is_100_percent_and_nothing_else)
{
    assert_text(words_percent(5, 0), "-");
    assert_text(words_percent(0, 5), "0%");
    assert_text(words_percent(999999, 1000000), "99%");
    assert_text(words_percent(G_MAXINT64 - 1, G_MAXINT64), "99%");
    assert_text(words_percent(7, 5), "100%");
    assert_text(words_part(88080384, 227540992), "84/217 MiB");
    assert_text(words_part(1 << 20, 3 << 19), "1.0/1.5 MiB");
    assert_text(words_part(3, 5), "3/5 B");
}
END_TEST

START_TEST(what_was_held_is_not_in_the_rate)
{
    json_auto_t *j = job("running", 1000, 23000, 45000);
    ck_assert_uint_eq(progress_rate(j), 10000);
    ck_assert_uint_eq(progress_left_sec(j), 3);
    json_auto_t *held = job("running", 23000, 23000, 45000);
    ck_assert_uint_eq(progress_rate(held), 0);
    ck_assert_uint_eq(progress_left_sec(held), 0);
}
END_TEST

START_TEST(what_stopped_tells_what_came_and_what_is_kept)
{
    json_auto_t *j = job("cancelled", 0, 32 << 20, 217 << 20);
    assert_text(progress_result(j, 40 << 20), "v: stopped after 2.2s: 40.0 MiB came; 3 of 12 files "
                                              "(32.0 MiB) are complete and stay in the cache");
}
END_TEST

START_TEST(what_is_done_tells_what_was_held_before)
{
    json_auto_t *j = job("done", 1 << 20, 32 << 20, 32 << 20);
    assert_text(progress_result(j, 0), "v: 3 files, 32.0 MiB warm in 2.2s; held before: 1.0 MiB");
    json_object_set_new(j, "check", json_true());
    json_object_set_new(j, "bytesTotal", json_integer(64 << 20));
    assert_text(progress_result(j, 0), "v: 3/12 files, 32.0/64.0 MiB in the cache: 50%");
}
END_TEST

HARNESS_MAIN("cmd/hearthctl/report/progress", times_are_in_two_units,
             all_is_100_percent_and_nothing_else, what_was_held_is_not_in_the_rate,
             what_stopped_tells_what_came_and_what_is_kept, what_is_done_tells_what_was_held_before)
