/* SPDX-License-Identifier: Apache-2.0 */
#include "common/metrics/timings.h"
#include <pthread.h>
#include <string.h>
#include "tests/unit/harness.h"

static char *text_of(Timings *t)
{
    OpenMetrics *m = openmetrics_new();
    openmetrics_family(m, OPENMETRICS_HISTOGRAM, "took_seconds", "It took");
    timings_tell(t, m, "method", "code");
    g_autoptr(GBytes) bytes = openmetrics_end(m);
    gsize size;
    const char *text = g_bytes_get_data(bytes, &size);
    return g_strndup(text, size);
}

static void *add_many(void *timings)
{
    for (int i = 0; i < 1000; i++)
        timings_add(timings, i % 2 ? "a" : "b", "OK", 10);
    return NULL;
}

START_TEST(pairs_are_counted_apart_by_many_threads)
{
    Timings *t = timings_new();
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, add_many, t), 0);
    timings_add(t, "a", "INTERNAL", 10);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    g_autofree char *text = text_of(t);
    ck_assert_ptr_nonnull(strstr(text, "took_seconds_count{method=\"a\",code=\"OK\"} 2000\n"));
    ck_assert_ptr_nonnull(strstr(text, "took_seconds_count{method=\"b\",code=\"OK\"} 2000\n"));
    ck_assert_ptr_nonnull(strstr(text, "took_seconds_count{method=\"a\",code=\"INTERNAL\"} 1\n"));
    timings_free(t);
}
END_TEST

START_TEST(there_are_not_more_pairs_than_a_bound)
{
    Timings *t = timings_new();
    for (guint i = 0; i < TIMINGS_MAX + 7; i++) {
        g_autofree char *what = g_strdup_printf("m%u", i);
        timings_add(t, what, "OK", 10);
    }
    g_autofree char *text = text_of(t);
    ck_assert_ptr_nonnull(strstr(text, "took_seconds_count{method=\"other\",code=\"other\"} 7\n"));
    timings_free(t);
}
END_TEST

HARNESS_MAIN("common/metrics/timings", pairs_are_counted_apart_by_many_threads,
             there_are_not_more_pairs_than_a_bound)
