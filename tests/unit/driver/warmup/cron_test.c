/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmup/cron.h"
#include <string.h>
#include "common/error.h"
#include "driver/kube/time.h"
#include "tests/unit/harness.h"

static gint64 at(const char *text)
{
    gint64 us;
    g_autofree char *full = g_strconcat(text, ":00Z", NULL);
    ck_assert(kube_time_parse(full, &us));
    return us / G_USEC_PER_SEC;
}

/* "2024-01-31T10:00", the caller's; "-": never. */
static char *show(gint64 s)
{
    if (s < 0)
        return g_strdup("-");
    g_autofree char *text = kube_time_format(s * G_USEC_PER_SEC);
    ck_assert(g_str_has_suffix(text, ":00Z"));
    return g_strndup(text, strlen(text) - strlen(":00Z"));
}

static Cron parse(const char *text)
{
    Cron cron;
    g_autoptr(GError) error = NULL;
    ck_assert_msg(cron_parse(text, &cron, &error), "%s: %s", text, error ? error->message : "");
    return cron;
}

/* 2024 began on a Monday and has a 29 February. */
static void next_is(const char *text, const char *after, const char *expected)
{
    const Cron cron = parse(text);
    g_autofree char *got = show(cron_next(&cron, at(after)));
    ck_assert_msg(g_str_equal(got, expected), "%s after %s: %s, not %s", text, after, got,
                  expected);
}

START_TEST(fields_are_values_lists_ranges_and_steps)
{
    static const struct {
        const char *text, *after, *next;
    } cases[] = {
        {"* * * * *", "2024-01-01T00:00", "2024-01-01T00:01"},
        {"30 2 * * *", "2024-01-01T02:30", "2024-01-02T02:30"},
        {"30 2 * * *", "2024-01-01T02:29", "2024-01-01T02:30"},
        {"0,30 * * * *", "2024-01-01T00:00", "2024-01-01T00:30"},
        {"*/15 * * * *", "2024-01-01T00:46", "2024-01-01T01:00"},
        {"5/20 * * * *", "2024-01-01T00:25", "2024-01-01T00:45"},
        {"5/20 * * * *", "2024-01-01T00:45", "2024-01-01T01:05"},
        {"10-20/5 * * * *", "2024-01-01T00:20", "2024-01-01T01:10"},
        {"0 8-10,20 * * *", "2024-01-01T10:00", "2024-01-01T20:00"},
        {"0 0 31 * *", "2024-01-31T00:00", "2024-03-31T00:00"},
        {"0 0 1 */3 *", "2024-01-01T00:00", "2024-04-01T00:00"},
        {"59 23 31 12 *", "2024-12-31T23:58", "2024-12-31T23:59"},
        {"59 23 31 12 *", "2024-12-31T23:59", "2025-12-31T23:59"},
        {"\t 0  0 *\t* * ", "2024-01-01T00:00", "2024-01-02T00:00"},
        {"*/90 * * * *", "2024-01-01T00:00", "2024-01-01T01:00"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        next_is(cases[i].text, cases[i].after, cases[i].next);
}
END_TEST

START_TEST(names_stand_for_months_and_weekdays)
{
    next_is("0 0 1 JAN *", "2024-01-01T00:00", "2025-01-01T00:00");
    next_is("0 0 1 jun-aug *", "2024-06-01T00:00", "2024-07-01T00:00");
    next_is("0 0 * * mon-fri", "2024-01-05T00:00", "2024-01-08T00:00");
    next_is("0 0 * * Sat,SUN", "2024-01-06T00:00", "2024-01-07T00:00");
    next_is("0 0 * * SAT-SUN", "2024-01-06T00:00", "2024-01-07T00:00");
    next_is("0 0 * * SAT-SUN", "2024-01-07T00:00", "2024-01-13T00:00");
    next_is("0 0 * * SUN-TUE", "2024-01-02T00:00", "2024-01-07T00:00");
}
END_TEST

START_TEST(sunday_is_0_and_7)
{
    next_is("0 0 * * 0", "2024-01-01T00:00", "2024-01-07T00:00");
    next_is("0 0 * * 7", "2024-01-01T00:00", "2024-01-07T00:00");
    next_is("0 0 * * 6-7", "2024-01-06T00:00", "2024-01-07T00:00");
    const Cron zero = parse("0 0 * * 0"), seven = parse("0 0 * * 7");
    ck_assert_uint_eq(zero.weekdays, seven.weekdays);
    /* Every second day of the week begins with Sunday and has no eighth. */
    ck_assert_uint_eq(parse("0 0 * * */7").weekdays, 1);
}
END_TEST

START_TEST(one_kind_of_day_is_enough_when_both_are_told)
{
    next_is("0 0 13 * FRI", "2024-01-01T00:00", "2024-01-05T00:00");
    next_is("0 0 13 * FRI", "2024-01-12T00:00", "2024-01-13T00:00");
    next_is("0 0 13 * *", "2024-01-01T00:00", "2024-01-13T00:00");
    next_is("0 0 13 * ?", "2024-01-01T00:00", "2024-01-13T00:00");
    next_is("0 0 * * FRI", "2024-01-05T00:00", "2024-01-12T00:00");
    next_is("0 0 ? * FRI", "2024-01-05T00:00", "2024-01-12T00:00");
    /* A step makes days that are told: odd ones, or Mondays (the 8th). */
    next_is("0 0 */2 * MON", "2024-01-07T00:00", "2024-01-08T00:00");
    next_is("0 0 */1 * MON", "2024-01-02T00:00", "2024-01-08T00:00");
}
END_TEST

START_TEST(macros_are_what_they_say)
{
    next_is("@hourly", "2024-01-01T00:00", "2024-01-01T01:00");
    next_is("@daily", "2024-01-01T00:00", "2024-01-02T00:00");
    next_is("@midnight", "2024-01-01T00:00", "2024-01-02T00:00");
    next_is("@weekly", "2024-01-01T00:00", "2024-01-07T00:00");
    next_is("@monthly", "2024-01-01T00:00", "2024-02-01T00:00");
    next_is("@yearly", "2024-01-01T00:00", "2025-01-01T00:00");
    next_is("@annually", "2024-01-01T00:00", "2025-01-01T00:00");
}
END_TEST

START_TEST(leap_days_are_found_over_a_century_and_impossible_ones_never)
{
    next_is("0 0 29 2 *", "2024-02-29T00:00", "2028-02-29T00:00");
    next_is("0 0 29 2 *", "2096-02-29T00:00", "2104-02-29T00:00");
    next_is("0 0 31 2 *", "2024-01-01T00:00", "-");
    next_is("0 0 31 4,6,9,11 *", "2024-01-01T00:00", "-");
    const Cron never = parse("0 0 30 2 *"), always = parse("* * * * *");
    ck_assert_int_eq(cron_last(&never, at("2024-01-01T00:00"), 0), -1);
    ck_assert_int_eq(cron_next(&always, G_MAXINT64), -1);
    ck_assert_int_eq(cron_next(&always, G_MININT64), 0);
    ck_assert_int_eq(cron_next(&always, at("9999-12-31T23:59")), -1);
}
END_TEST

START_TEST(next_is_strictly_after_and_last_is_not)
{
    const Cron cron = parse("0 * * * *");
    const gint64 ten = at("2024-01-01T10:00");
    ck_assert_int_eq(cron_next(&cron, ten - 1), ten);
    ck_assert_int_eq(cron_next(&cron, ten), ten + 3600);
    ck_assert_int_eq(cron_next(&cron, ten + 59), ten + 3600);
    ck_assert_int_eq(cron_last(&cron, ten, 0), ten);
    ck_assert_int_eq(cron_last(&cron, ten + 59, 0), ten);
    ck_assert_int_eq(cron_last(&cron, ten - 1, 0), ten - 3600);
    ck_assert_int_eq(cron_last(&cron, ten, ten - 1), ten);
    ck_assert_int_eq(cron_last(&cron, ten + 59, ten), -1);
    ck_assert_int_eq(cron_last(&cron, -1, -100), -1);
    /* Of many that were missed, the latest. */
    ck_assert_int_eq(cron_last(&cron, ten + 90 * 86400, ten), ten + 90 * 86400);
    ck_assert_int_eq(cron_last(&cron, G_MAXINT64, 0), at("9999-12-31T23:00"));
}
END_TEST

START_TEST(last_and_next_are_of_one_mind)
{
    static const char *const texts[] = {"*/7 3-9/2 * * *", "0 0 13 * FRI", "30 12 1,15 */2 *",
                                        "59 23 31 * 1-5",  "@weekly",      "0 0 29 2 *"};
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        const Cron cron = parse(texts[i]);
        gint64 t = at("2023-12-31T23:59");
        for (int n = 0; n < 500; n++) {
            const gint64 next = cron_next(&cron, t);
            ck_assert_int_gt(next, t);
            ck_assert_int_eq(cron_last(&cron, next, t), next);
            ck_assert_int_eq(cron_last(&cron, next - 1, t), -1);
            t = next;
        }
    }
}
END_TEST

START_TEST(what_is_refused_names_field_value_and_fix)
{
    static const struct {
        const char *text, *field, *value;
    } cases[] = {
        {"60 * * * *", "minute", "60"},
        {"* 24 * * *", "hour", "24"},
        {"* * 0 * *", "day of month", "0"},
        {"* * 32 * *", "day of month", "32"},
        {"* * * 13 *", "month", "13"},
        {"* * * foo *", "month", "foo"},
        {"* * * * 8", "day of week", "8"},
        {"* * * * FUNDAY", "day of week", "FUNDAY"},
        {"*/0 * * * *", "minute", "*/0"},
        {"5-1 * * * *", "minute", "5-1"},
        {"1- * * * *", "minute", "1-"},
        {"-1 * * * *", "minute", "-1"},
        {"1,,2 * * * *", "minute", "1,,2"},
        {"1/ * * * *", "minute", "1/"},
        {"1/2/3 * * * *", "minute", "1/2"},
        {"1-2-3 * * * *", "minute", "1-2-3"},
        {"** * * * *", "minute", "**"},
        {"? * * * *", "minute", "?"},
        {"*-5 * * * *", "minute", "*-5"},
        {"jan * * * *", "minute", "jan"},
        {"* * * * 5-MON", "day of week", "5-MON"},
        {"99999999999999999999 * * * *", "minute", "999"},
        {"@reboot", "@hourly", "@reboot"},
        {"@every 5m", "five", "@every"},
        {"0 3 * *", "five", "4 fields"},
        {"0 0 3 * * *", "five", "6 fields"},
        {"", "five", "0 fields"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        Cron cron;
        g_autoptr(GError) error = NULL;
        ck_assert_msg(!cron_parse(cases[i].text, &cron, &error), "%s", cases[i].text);
        ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT));
        ck_assert_msg(strstr(error->message, cases[i].field) != NULL, "%s", error->message);
        ck_assert_msg(strstr(error->message, cases[i].value) != NULL, "%s", error->message);
        ck_assert_msg(strstr(error->message, "use") || strstr(error->message, "needs"), "%s",
                      error->message);
    }
}
END_TEST

HARNESS_MAIN("driver/warmup/cron", fields_are_values_lists_ranges_and_steps,
             names_stand_for_months_and_weekdays, sunday_is_0_and_7,
             one_kind_of_day_is_enough_when_both_are_told, macros_are_what_they_say,
             leap_days_are_found_over_a_century_and_impossible_ones_never,
             next_is_strictly_after_and_last_is_not, last_and_next_are_of_one_mind,
             what_is_refused_names_field_value_and_fix)
