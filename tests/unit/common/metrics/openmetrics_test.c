/* SPDX-License-Identifier: Apache-2.0 */
#include "common/metrics/openmetrics.h"
#include <string.h>
#include "tests/unit/harness.h"

static char *text_of(OpenMetrics *m)
{
    g_autoptr(GBytes) bytes = openmetrics_end(m);
    gsize size;
    const char *text = g_bytes_get_data(bytes, &size);
    return g_strndup(text, size);
}

START_TEST(a_family_has_its_kind_unit_and_samples)
{
    OpenMetrics *m = openmetrics_new();
    openmetrics_family(m, OPENMETRICS_COUNTER, "a_bytes", "What a has");
    openmetrics_add(m, 7, NULL);
    openmetrics_add(m, G_MAXUINT64, "of", "b", "in", "c", NULL);
    openmetrics_family(m, OPENMETRICS_INFO, "build", "What runs");
    openmetrics_add(m, 1, "version", "1", NULL);
    openmetrics_family(m, OPENMETRICS_GAUGE, "up_seconds", "For how long");
    openmetrics_add_seconds(m, 1.5, NULL);
    g_autofree char *text = text_of(m);
    ck_assert_str_eq(text, "# TYPE a_bytes counter\n# UNIT a_bytes bytes\n# HELP a_bytes What a "
                           "has\na_bytes_total 7\na_bytes_total{of=\"b\",in=\"c\"} "
                           "18446744073709551615\n# TYPE build info\n# HELP build What "
                           "runs\nbuild_info{version=\"1\"} 1\n# TYPE up_seconds gauge\n# UNIT "
                           "up_seconds seconds\n# HELP up_seconds For how long\nup_seconds "
                           "1.500000\n# EOF\n");
}
END_TEST

START_TEST(values_of_labels_may_hold_anything)
{
    OpenMetrics *m = openmetrics_new();
    openmetrics_family(m, OPENMETRICS_GAUGE, "a", "b");
    openmetrics_add(m, 1, "path", "/a\"b\\c\nd", NULL);
    openmetrics_add(m, 1, "path", "\xff", NULL);
    openmetrics_add(m, 1, "path", NULL, NULL);
    g_autofree char *text = text_of(m);
    ck_assert_ptr_nonnull(strstr(text, "a{path=\"/a\\\"b\\\\c\\nd\"} 1\n"));
    ck_assert_ptr_nonnull(strstr(text, "a{path=\"\"} 1\n"));
    ck_assert(g_utf8_validate(text, -1, NULL));
}
END_TEST

START_TEST(a_histogram_counts_up_to_each_bound)
{
    Histogram h = {0};
    OpenMetrics *m = openmetrics_new();
    histogram_add(&h, -5);
    histogram_add(&h, 100); /* a bound belongs to what is below */
    histogram_add(&h, 101);
    histogram_add(&h, 2000000);
    histogram_add(&h, G_MAXINT32);
    openmetrics_family(m, OPENMETRICS_HISTOGRAM, "took_seconds", "It took");
    openmetrics_add_histogram(m, &h, "op", "x", NULL);
    g_autofree char *text = text_of(m);
    ck_assert_ptr_nonnull(strstr(text, "took_seconds_bucket{op=\"x\",le=\"0.0001\"} 2\n"));
    ck_assert_ptr_nonnull(strstr(text, "took_seconds_bucket{op=\"x\",le=\"0.0003\"} 3\n"));
    ck_assert_ptr_nonnull(strstr(text, "took_seconds_bucket{op=\"x\",le=\"1\"} 3\n"));
    ck_assert_ptr_nonnull(strstr(text, "took_seconds_bucket{op=\"x\",le=\"3\"} 4\n"));
    ck_assert_ptr_nonnull(strstr(text, "took_seconds_bucket{op=\"x\",le=\"30\"} 4\n"));
    ck_assert_ptr_nonnull(strstr(text, "took_seconds_bucket{op=\"x\",le=\"+Inf\"} 5\n"));
    ck_assert_ptr_nonnull(strstr(text, "took_seconds_count{op=\"x\"} 5\n"));
    ck_assert_ptr_nonnull(strstr(text, "took_seconds_sum{op=\"x\"} 2149.483848\n"));
}
END_TEST

HARNESS_MAIN("common/metrics/openmetrics", a_family_has_its_kind_unit_and_samples,
             values_of_labels_may_hold_anything, a_histogram_counts_up_to_each_bound)
