/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/kube/backoff.h"
#include "tests/unit/harness.h"

START_TEST(delay_doubles_with_jitter_up_to_most)
{
    KubeBackoff b = {.first_ms = 100, .most_ms = 1000};
    const gint64 whole[] = {100, 200, 400, 800, 1000, 1000};
    for (gsize i = 0; i < G_N_ELEMENTS(whole); i++) {
        const gint64 ms = kube_backoff_next_ms(&b);
        ck_assert_msg(ms >= whole[i] / 2 && ms <= whole[i], "%zu: %d", i, (int)ms);
    }
    b.failures = 0;
    ck_assert_int_le(kube_backoff_next_ms(&b), 100);
    b.failures = 4000000000U;
    ck_assert_int_le(kube_backoff_next_ms(&b), 1000);
}
END_TEST

START_TEST(bucket_lets_burst_through_then_rate)
{
    KubeBucket b;
    kube_bucket_init(&b, 10, 3, 0);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(kube_bucket_take_ms(&b, 0, 1000), 0);
    /* Each waits for its own. */
    ck_assert_int_eq(kube_bucket_take_ms(&b, 0, 1000) / 10, 10);
    ck_assert_int_eq(kube_bucket_take_ms(&b, 0, 1000) / 10, 20);
    ck_assert_int_eq(kube_bucket_take_ms(&b, 10 * G_USEC_PER_SEC, 1000), 0);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(kube_bucket_take_ms(&b, 10 * G_USEC_PER_SEC, 1000), 0);
    ck_assert_int_gt(kube_bucket_take_ms(&b, 10 * G_USEC_PER_SEC, 1000), 0);
}
END_TEST

START_TEST(token_that_is_not_waited_for_is_not_taken)
{
    KubeBucket b;
    kube_bucket_init(&b, 10, 1, 0);
    ck_assert_int_eq(kube_bucket_take_ms(&b, 0, 0), 0);
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(kube_bucket_take_ms(&b, 0, 50), -1);
    ck_assert_int_eq(kube_bucket_take_ms(&b, 0, 150) / 10, 10);
}
END_TEST

HARNESS_MAIN("driver/kube/backoff", delay_doubles_with_jitter_up_to_most,
             bucket_lets_burst_through_then_rate, token_that_is_not_waited_for_is_not_taken)
