/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/served/usages.h"
#include "tests/unit/harness.h"

#define MINUTE_US (60 * G_TIME_SPAN_SECOND)

START_TEST(a_usage_is_known_for_ten_minutes)
{
    g_autoptr(Usages) u = usages_new();
    struct statvfs st = {.f_blocks = 7}, found = {0};
    ck_assert(!usages_get(u, "v", 0, &found));
    usages_put(u, "v", &st, 0);
    ck_assert(usages_get(u, "v", 10 * MINUTE_US - 1, &found));
    ck_assert_uint_eq(found.f_blocks, 7);
    ck_assert(!usages_get(u, "v", 10 * MINUTE_US, &found));
    ck_assert(!usages_get(u, "w", 0, &found));
}
END_TEST

START_TEST(the_last_one_counts)
{
    g_autoptr(Usages) u = usages_new();
    struct statvfs st = {.f_blocks = 7}, found = {0};
    usages_put(u, "v", &st, 0);
    st.f_blocks = 8;
    usages_put(u, "v", &st, 5 * MINUTE_US);
    ck_assert(usages_get(u, "v", 12 * MINUTE_US, &found));
    ck_assert_uint_eq(found.f_blocks, 8);
}
END_TEST

HARNESS_MAIN("driver/node/served/usages", a_usage_is_known_for_ten_minutes, the_last_one_counts)
