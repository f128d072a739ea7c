/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/report/disk_reads.h"
#include "tests/unit/harness.h"

START_TEST(what_has_no_disk_has_no_reads)
{
    guint64 bytes = 7;
    ck_assert(!disk_reads_of_device("/proc", &bytes));
    ck_assert(!disk_reads_of_device("/nowhere", &bytes));
    ck_assert(!disk_reads_native("/proc", &bytes));
    ck_assert_uint_eq(bytes, 7);
}
END_TEST

START_TEST(a_process_never_reads_less)
{
    guint64 before, after;
    if (!disk_reads_of_process(&before)) /* a kernel without task I/O accounting */
        return;
    ck_assert(disk_reads_of_process(&after));
    ck_assert_uint_ge(after, before);
}
END_TEST

HARNESS_MAIN("cache/report/disk_reads", what_has_no_disk_has_no_reads, a_process_never_reads_less)
