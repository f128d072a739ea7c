/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/kube/time.h"
#include "tests/unit/harness.h"

START_TEST(times_are_written_and_read_as_the_api_does)
{
    const gint64 at = 1760000000LL * G_USEC_PER_SEC + 42;
    g_autofree char *plain = kube_time_format(at), *micro = kube_time_format_micro(at);
    gint64 back;
    ck_assert_str_eq(plain, "2025-10-09T08:53:20Z");
    ck_assert_str_eq(micro, "2025-10-09T08:53:20.000042Z");
    ck_assert(kube_time_parse(micro, &back) && back == at);
    ck_assert(kube_time_parse(plain, &back) && back == at - 42);
    ck_assert(kube_time_parse("2025-10-09T10:53:20+02:00", &back) && back == at - 42);
    const char *others[] = {"", "2025-10-09", "2025-10-09T08:53:20", "2025-W41-4T08:53:20Z",
                            "20251009T085320.00000000Z"};
    for (gsize i = 0; i < G_N_ELEMENTS(others); i++)
        ck_assert_msg(!kube_time_parse(others[i], &back), "%s", others[i]);
}
END_TEST

HARNESS_MAIN("driver/kube/time", times_are_written_and_read_as_the_api_does)
