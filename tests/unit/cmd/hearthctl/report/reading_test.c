/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/harness.h"
#include "cmd/hearthctl/report/reading.h"

static void add_latency(Reading *reading, guint32 us)
{
    g_array_append_val(reading->latencies_us, us);
}

START_TEST(percentiles_are_those_of_the_nearest_rank)
{
    Reading reading;
    reading_init(&reading);
    ck_assert_uint_eq(reading_percentile(&reading, 99), 0);
    for (guint32 i = 100; i >= 1; i--)
        add_latency(&reading, i * 10);
    ck_assert_uint_eq(reading_percentile(&reading, 50), 500);
    ck_assert_uint_eq(reading_percentile(&reading, 99), 990);
    ck_assert_uint_eq(reading_percentile(&reading, 100), 1000);
    ck_assert_uint_eq(reading_percentile(&reading, 0), 10);
    add_latency(&reading, 5);
    ck_assert_uint_eq(reading_percentile(&reading, 0), 5);
    reading_clear(&reading);
}
END_TEST

START_TEST(threads_add_up_and_their_time_does_not)
{
    Reading one, all;
    reading_init(&one);
    reading_init(&all);
    all.took_us = 2 * G_USEC_PER_SEC;
    one.files = 10;
    one.bytes = 3000;
    one.failed = 1;
    one.took_us = 77;
    add_latency(&one, 4);
    reading_add(&all, &one);
    reading_add(&all, &one);
    ck_assert_uint_eq(all.files, 20);
    ck_assert_uint_eq(all.bytes, 6000);
    ck_assert_uint_eq(all.failed, 2);
    ck_assert_uint_eq(all.latencies_us->len, 2);
    ck_assert(reading_bytes_per_s(&all) == 3000.0);
    ck_assert(reading_files_per_s(&all) == 10.0);
    all.took_us = 0;
    ck_assert(reading_bytes_per_s(&all) == 0);
    reading_clear(&one);
    reading_clear(&all);
}
END_TEST

START_TEST(a_job_is_bound_by_storage_that_gives_less_than_it_wants)
{
    ck_assert_int_eq(reading_judge(99, 100), READING_BOUND);
    ck_assert_int_eq(reading_judge(100, 100), READING_CLOSE);
    ck_assert_int_eq(reading_judge(124, 100), READING_CLOSE);
    ck_assert_int_eq(reading_judge(125, 100), READING_FREE);
    ck_assert_str_eq(reading_bound_text(READING_BOUND), "storage-bound");
    ck_assert_str_eq(reading_bound_text(READING_FREE), "not storage-bound");
}
END_TEST

START_TEST(a_shuffle_has_each_file_once_and_is_the_same_each_time)
{
    enum { N = 1000 };
    g_autofree guint *a = reading_shuffle(N, 1), *b = reading_shuffle(N, 1),
                     *c = reading_shuffle(N, 2);
    gboolean seen[N] = {FALSE};
    guint moved = 0, other = 0;
    for (guint i = 0; i < N; i++) {
        ck_assert_uint_lt(a[i], N);
        ck_assert(!seen[a[i]]);
        seen[a[i]] = TRUE;
        moved += a[i] != i;
        other += a[i] != c[i];
        ck_assert_uint_eq(a[i], b[i]);
    }
    ck_assert_uint_gt(moved, N / 2);
    ck_assert_uint_gt(other, N / 2);
    g_autofree guint *none = reading_shuffle(0, 1);
    ck_assert_ptr_nonnull(none);
}
END_TEST

HARNESS_MAIN("cmd/hearthctl/report/reading", percentiles_are_those_of_the_nearest_rank,
             threads_add_up_and_their_time_does_not,
             a_job_is_bound_by_storage_that_gives_less_than_it_wants,
             a_shuffle_has_each_file_once_and_is_the_same_each_time)
