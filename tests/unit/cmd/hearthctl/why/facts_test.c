/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/harness.h"
#include "cmd/hearthctl/why/facts.h"

#define DATASET "dataset-0123456789abcdef0123456789abcdef"

static RatesLook look_of(const char *cache, const char *volumes, gint64 seconds)
{
    json_error_t error;
    json_t *status = json_pack("{s:o}", "cache", json_loads(cache, 0, &error));
    return (RatesLook){.status = status,
                       .volumes = json_loads(volumes, 0, &error),
                       .at_us = seconds * G_USEC_PER_SEC};
}

static RatesLook before(void)
{
    return look_of("{\"disk\": \"ok\", \"originReads\": 10, \"originUs\": 1000, "
                   "\"originBytes\": 100, \"refetchedObjects\": 5, \"fillsCompleted\": 7}",
                   "[{\"volume\": \"live\", \"bytesStore\": 100, \"misses\": 3, "
                   "\"originReads\": 4, \"originUs\": 40, \"bytesOrigin\": 7, "
                   "\"bytesCached\": 250},"
                   " {\"volume\": \"" DATASET "\", \"bytesFill\": 50, \"bytesCached\": 2}]",
                   100);
}

static RatesLook now(void)
{
    return look_of("{\"disk\": \"ok\", \"originReads\": 30, \"originUs\": 5000, "
                   "\"originBytes\": 1100, \"refetchedObjects\": 9, \"fillsCompleted\": 27, "
                   "\"evictedBytes\": 12, \"maxBytes\": 4000}",
                   "[{\"volume\": \"live\", \"cache\": true, \"bytesStore\": 150, \"misses\": 4, "
                   "\"originReads\": 6, \"originUs\": 90, \"bytesOrigin\": 27, "
                   "\"bytesCached\": 600, \"bytesTotal\": 1000},"
                   " {\"volume\": \"" DATASET "\", \"cache\": true, \"dataset\": \"0123\", "
                   "\"bytesFill\": 850, \"bytesCached\": 1, \"bytesTotal\": 4},"
                   " {\"volume\": \"" DATASET "-2\", \"cache\": true, \"dataset\": \"0123\", "
                   "\"bytesFill\": 100, \"bytesCached\": 1, \"bytesTotal\": 4}]",
                   110);
}

START_TEST(counters_of_both_samples_are_subtracted)
{
    g_auto(RatesLook) a = before(), b = now();
    const FactsWait wait = {.volume = "live", .kinds = {30, 0, 10}};
    const FactsJob job = {.looks = 100, .running = 60, .elsewhere = 20, .cpu_sec = 5};
    const WhyFacts f = facts_of(&job, &wait, 1, 0, &a, &b);
    ck_assert_double_eq_tol(f.seconds, 10, 0.001);
    ck_assert_double_eq_tol(f.wait, 0.4, 0.001);
    ck_assert_double_eq_tol(f.other, 0.25, 0.001);
    ck_assert_double_eq_tol(f.running, 0.6, 0.001);
    ck_assert_double_eq_tol(f.waiting, 0.4, 0.001);
    ck_assert_double_eq_tol(f.cpus, 0.5, 0.001);
    ck_assert_double_eq_tol(f.kinds[WAIT_NAME], 0.25, 0.001);
    ck_assert_double_eq_tol(f.warm, 0.25, 0.001);
    ck_assert_uint_eq(f.from_cache, 50);
    ck_assert_uint_eq(f.from_ceph, 20);
    ck_assert_uint_eq(f.misses, 1);
    ck_assert_uint_eq(f.ceph_reads, 22); /* fills, and past the cache */
    ck_assert_uint_eq(f.ceph_us, 4050);
    ck_assert_uint_eq(f.ceph_bytes, 1020);
    ck_assert_uint_eq(f.refetched, 4);
    ck_assert_uint_eq(f.filled, 20);
    ck_assert_uint_eq(f.evicted_bytes, 12);
    ck_assert_uint_eq(f.cache_most, 4000);
    ck_assert(!f.native && !f.uncached && !f.disk_off && !f.lost);
}
END_TEST

START_TEST(volumes_of_one_dataset_count_together)
{
    g_auto(RatesLook) a = before(), b = now();
    const FactsWait wait = {.volume = DATASET};
    const FactsJob job = {0};
    const WhyFacts f = facts_of(&job, &wait, 1, 0, &a, &b);
    ck_assert_uint_eq(f.from_fills, 900);
    ck_assert(f.native);
    ck_assert_double_eq(f.wait, WHY_UNKNOWN);
    ck_assert_double_eq_tol(f.warm, 0.25, 0.001);
}
END_TEST

START_TEST(the_volume_that_is_waited_for_most_counts)
{
    g_auto(RatesLook) a = before(), b = now();
    FactsWait waits[] = {{.volume = "live", .kinds = {3}}, {.volume = DATASET, .kinds = {1, 1, 2}}};
    ck_assert_int_eq(facts_volume(waits, 2, &a, &b), 1);
    waits[0].kinds[WAIT_READ] = 5;
    ck_assert_int_eq(facts_volume(waits, 2, &a, &b), 0);
    waits[0].kinds[WAIT_READ] = 4; /* the same: the one of which more was read */
    ck_assert_int_eq(facts_volume(waits, 2, &a, &b), 1);
    waits[0].lost = TRUE;
    waits[1].kinds[WAIT_READ] = 99;
    ck_assert_int_eq(facts_volume(waits, 2, &a, &b), 0);
    waits[0].lost = FALSE;
    waits[1].lost = TRUE;
    waits[1].kinds[WAIT_READ] = 0;
    ck_assert_int_eq(facts_volume(waits, 2, &a, &b), 1);
    ck_assert_int_eq(facts_volume(waits, 0, &a, &b), -1);
}
END_TEST

START_TEST(pages_are_of_hearth_when_nothing_else_is_waited_for)
{
    g_auto(RatesLook) a = before(), b = now();
    FactsWait wait = {.volume = "live"};
    FactsJob job = {.looks = 10, .running = 5, .pages = 5};
    ck_assert_double_eq_tol(facts_of(&job, &wait, 1, 0, &a, &b).wait, 0.5, 0.001);
    job.elsewhere = 1;
    ck_assert_double_eq_tol(facts_of(&job, &wait, 1, 0, &a, &b).wait, 0, 0.001);
    ck_assert_double_eq_tol(facts_of(&job, &wait, 1, 0, &a, &b).other, 6.0 / 11, 0.001);
    wait.kinds[WAIT_READ] = 1;
    ck_assert_double_eq_tol(facts_of(&job, &wait, 1, 0, &a, &b).wait, 6.0 / 11, 0.001);
}
END_TEST

START_TEST(completions_count_while_a_volume_is_read)
{
    g_auto(RatesLook) a = before(), b = now(), c = before();
    const FactsWait wait = {.volume = "live"};
    const FactsJob job = {.looks = 10, .running = 5, .async = 5};
    ck_assert_double_eq_tol(facts_of(&job, &wait, 1, 0, &a, &b).wait, 0.5, 0.001);
    ck_assert_double_eq_tol(facts_of(&job, &wait, 1, 0, &a, &c).wait, 0, 0.001);
}
END_TEST

START_TEST(a_disk_that_is_not_used_and_a_volume_that_is_not_cached_are_told)
{
    g_auto(RatesLook) a = before();
    g_auto(RatesLook) b = look_of("{\"disk\": \"bypass\"}",
                                  "[{\"volume\": \"live\", \"cache\": true, \"uncached\": \"no "
                                  "lock\", \"bytesTotal\": -1}]",
                                  110);
    const FactsWait wait = {.volume = "live"};
    const FactsJob job = {0};
    const WhyFacts f = facts_of(&job, &wait, 1, 0, &a, &b);
    ck_assert(f.disk_off && f.no_cache && f.uncached);
    ck_assert_double_eq(f.warm, WHY_UNKNOWN);
    ck_assert_uint_eq(f.from_cache, 0); /* hearthd was restarted */
}
END_TEST

HARNESS_MAIN("cmd/hearthctl/why/facts", counters_of_both_samples_are_subtracted,
             volumes_of_one_dataset_count_together, the_volume_that_is_waited_for_most_counts,
             pages_are_of_hearth_when_nothing_else_is_waited_for,
             completions_count_while_a_volume_is_read,
             a_disk_that_is_not_used_and_a_volume_that_is_not_cached_are_told)
