/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/harness.h"
#include "cmd/hearthctl/report/rates.h"
#include <string.h>

static json_t *volume(const char *id, const char *dataset, int opens, int bytes)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:b, s:b, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i}",
                     "volume", id, "dataset", dataset, "fsName", "fs", "rootPath", "/v", "attached",
                     1, "cache", 1, "opens", opens, "hits", opens / 2, "misses", opens - opens / 2,
                     "bytesStore", bytes, "bytesFill", 2 * bytes, "bytesOrigin", 3 * bytes,
                     "bytesWritten", 4 * bytes, "bytesCached", 30, "bytesTotal", 40);
}

/* `list` is taken. */
static RatesLook look(int pid, int uptime, double at, int origin, int evicted, json_t *list)
{
    return (RatesLook){.status = json_pack("{s:{s:i, s:i}, s:{s:i, s:i, s:i, s:i}}", "daemon",
                                           "pid", pid, "uptimeSec", uptime, "cache", "originBytes",
                                           origin, "evictedObjects", evicted, "evictedBytes",
                                           10 * evicted, "fillsCompleted", 5 * evicted),
                       .volumes = list,
                       .datasets = json_array(),
                       .at_us = (gint64)(at * G_USEC_PER_SEC)};
}

static const RatesRow *row(const Rates *rates, guint i)
{
    ck_assert_uint_lt(i, rates->rows->len);
    return rates->rows->pdata[i];
}

static void assert_near(double got, double wanted)
{
    ck_assert_msg(got > wanted - 1e-9 && got < wanted + 1e-9, "%g, not %g", got, wanted);
}

START_TEST(rates_are_differences_by_the_time_between)
{
    g_auto(RatesLook) before =
        look(7, 100, 10, 1000, 4, json_pack("[o]", volume("a", "", 10, 100)));
    g_auto(RatesLook) now = look(7, 104, 14, 9000, 6, json_pack("[o]", volume("a", "", 30, 500)));
    g_autoptr(Rates) rates = rates_between(&before, &now);
    ck_assert(!rates->restarted);
    assert_near(rates->fetched, 8000 / 4.0 + 1200 / 4.0);
    assert_near(rates->evicted, 0.5);
    assert_near(rates->evicted_bytes, 5);
    assert_near(rates->filled, 2.5);
    const RatesRow *a = row(rates, 0);
    ck_assert_str_eq(a->name, "a");
    ck_assert_str_eq(a->place, "fs:/v");
    ck_assert(a->served);
    ck_assert_uint_eq(a->hits, 15);
    ck_assert_uint_eq(a->misses, 15);
    assert_near(a->opens, 5);
    assert_near(a->cache, 100);
    assert_near(a->fill, 200);
    assert_near(a->ceph, 300);
    assert_near(a->written, 400);
    assert_near(a->warm, 75);
}
END_TEST

START_TEST(one_look_alone_tells_totals_and_no_rates)
{
    g_auto(RatesLook) none = {0};
    g_auto(RatesLook) now = look(7, 104, 14, 9000, 6, json_pack("[o]", volume("a", "", 30, 500)));
    g_autoptr(Rates) rates = rates_between(&none, &now);
    assert_near(rates->fetched, RATE_UNKNOWN);
    assert_near(row(rates, 0)->cache, RATE_UNKNOWN);
    ck_assert_uint_eq(row(rates, 0)->hits, 15);
    g_autoptr(Rates) null = rates_between(NULL, &now);
    assert_near(null->evicted, RATE_UNKNOWN);
    g_autoptr(Rates) same = rates_between(&now, &now);
    assert_near(row(same, 0)->cache, RATE_UNKNOWN);
}
END_TEST

START_TEST(counters_that_began_anew_tell_no_rate)
{
    g_auto(RatesLook) before = look(
        7, 100, 10, 1000, 4, json_pack("[o, o]", volume("a", "", 90, 900), volume("b", "", 1, 1)));
    /* a was closed and opened again, c is new. */
    g_auto(RatesLook) now = look(7, 101, 11, 2000, 4,
                                 json_pack("[o, o, o]", volume("a", "", 3, 30),
                                           volume("b", "", 2, 2), volume("c", "", 50, 50)));
    g_autoptr(Rates) rates = rates_between(&before, &now);
    assert_near(row(rates, 0)->ceph, RATE_UNKNOWN);
    assert_near(row(rates, 1)->ceph, 3);
    assert_near(row(rates, 2)->ceph, RATE_UNKNOWN);
    assert_near(rates->fetched, 1003);
    /* hearthd itself: by its pid, or as the same pid that runs for less long. */
    g_auto(RatesLook) other = look(8, 200, 12, 9000, 9, json_pack("[o]", volume("b", "", 9, 9)));
    g_autoptr(Rates) anew = rates_between(&now, &other);
    ck_assert(anew->restarted);
    assert_near(anew->fetched, RATE_UNKNOWN);
    assert_near(row(anew, 0)->ceph, RATE_UNKNOWN);
    g_auto(RatesLook) younger = look(8, 1, 13, 9000, 9, json_array());
    g_autoptr(Rates) again = rates_between(&other, &younger);
    ck_assert(again->restarted);
}
END_TEST

START_TEST(datasets_that_nobody_serves_are_listed_once)
{
    g_auto(RatesLook) now =
        look(7, 100, 10, 0, 0, json_pack("[o]", volume("dataset-11", "11", 1, 1)));
    json_array_append_new(now.datasets, json_pack("{s:s, s:i, s:i, s:[]}", "dataset", "11",
                                                  "bytesCached", 1, "bytesTotal", 2, "places"));
    json_array_append_new(now.datasets, json_pack("{s:s, s:i, s:i, s:[{s:s, s:s}]}", "dataset",
                                                  "00", "bytesCached", 5, "bytesTotal", 10,
                                                  "places", "fsName", "fs", "rootPath", "/d"));
    g_autoptr(Rates) rates = rates_between(NULL, &now);
    ck_assert_uint_eq(rates->rows->len, 2);
    ck_assert_str_eq(row(rates, 0)->name, "dataset-00");
    ck_assert_str_eq(row(rates, 0)->place, "fs:/d");
    ck_assert(!row(rates, 0)->served);
    assert_near(row(rates, 0)->warm, 50);
    ck_assert_str_eq(row(rates, 1)->name, "dataset-11");
}
END_TEST

START_TEST(rows_are_sorted_by_any_column_the_largest_first)
{
    g_auto(RatesLook) before = look(7, 1, 1, 0, 0,
                                    json_pack("[o, o, o]", volume("c", "", 0, 0),
                                              volume("a", "", 0, 0), volume("b", "", 0, 0)));
    g_auto(RatesLook) now = look(7, 2, 2, 0, 0,
                                 json_pack("[o, o, o]", volume("c", "", 4, 10),
                                           volume("a", "", 8, 10), volume("b", "", 2, 90)));
    g_autoptr(Rates) rates = rates_between(&before, &now);
    const struct {
        const char *column, *order;
    } wanted[] = {{"volume", "abc"}, {"hits", "acb"},    {"misses", "acb"},
                  {"OPENS", "acb"},  {"cache", "bac"},   {"fill", "bac"},
                  {"ceph", "bac"},   {"written", "bac"}, {"warm", "abc"}};
    for (guint i = 0; i < G_N_ELEMENTS(wanted); i++) {
        RatesSort by;
        ck_assert(rates_sort_parse(wanted[i].column, &by));
        rates_sort(rates, by);
        for (guint r = 0; r < 3; r++)
            ck_assert_msg(row(rates, r)->name[0] == wanted[i].order[r], "%s: row %u is %s",
                          wanted[i].column, r, row(rates, r)->name);
    }
    RatesSort by;
    ck_assert(!rates_sort_parse("size", &by));
    ck_assert_str_eq(rates_sort_name(RATES_BY_CEPH), "ceph");
    ck_assert_ptr_null(rates_sort_name(RATES_SORTS));
}
END_TEST

HARNESS_MAIN("cmd/hearthctl/report/rates", rates_are_differences_by_the_time_between,
             one_look_alone_tells_totals_and_no_rates, counters_that_began_anew_tell_no_rate,
             datasets_that_nobody_serves_are_listed_once,
             rows_are_sorted_by_any_column_the_largest_first)
