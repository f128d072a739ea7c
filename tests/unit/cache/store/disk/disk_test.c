/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include "cache/store/disk/disk.h"
#include "tests/unit/harness.h"

START_TEST(three_errors_within_a_minute_are_bypass)
{
    Disk disk;
    disk_init(&disk, 30000);
    disk_failed(&disk, EIO, 1000);
    ck_assert_int_eq(disk_state(&disk), STORE_DISK_SUSPECT);
    disk_failed(&disk, -EIO, 2000);
    ck_assert_int_eq(disk_state(&disk), STORE_DISK_SUSPECT);
    disk_failed(&disk, EIO, 3000);
    ck_assert_int_eq(disk_state(&disk), STORE_DISK_BYPASS);
    disk_destroy(&disk);
}
END_TEST

START_TEST(errors_far_apart_are_not)
{
    Disk disk;
    disk_init(&disk, 30000);
    for (uint64_t t = 0; t < 10; t++)
        disk_failed(&disk, EIO, 1000 + t * 60001);
    ck_assert_int_eq(disk_state(&disk), STORE_DISK_SUSPECT);
    ck_assert(!disk_tick(&disk, 1000 + 9 * 60001 + 60001));
    ck_assert_int_eq(disk_state(&disk), STORE_DISK_OK);
    disk_destroy(&disk);
}
END_TEST

START_TEST(successes_clear_suspicion)
{
    Disk disk;
    disk_init(&disk, 30000);
    disk_failed(&disk, EIO, 1000);
    disk_failed(&disk, EIO, 1001);
    for (int i = 0; i < 15; i++)
        disk_succeeded(&disk, 1002);
    ck_assert_int_eq(disk_state(&disk), STORE_DISK_SUSPECT);
    disk_succeeded(&disk, 1002);
    ck_assert_int_eq(disk_state(&disk), STORE_DISK_OK);
    disk_failed(&disk, EIO, 1003);
    ck_assert_int_eq(disk_state(&disk), STORE_DISK_SUSPECT);
    disk_destroy(&disk);
}
END_TEST

START_TEST(read_only_is_bypass_at_once)
{
    Disk disk;
    disk_init(&disk, 30000);
    disk_failed(&disk, EROFS, 1000);
    ck_assert_int_eq(disk_state(&disk), STORE_DISK_BYPASS);
    disk_destroy(&disk);
}
END_TEST

START_TEST(full_is_not_sick)
{
    Disk disk;
    disk_init(&disk, 30000);
    for (int i = 0; i < 10; i++) {
        disk_failed(&disk, ENOSPC, 1000);
        disk_failed(&disk, EDQUOT, 1000);
        disk_failed(&disk, EMFILE, 1000);
    }
    ck_assert_int_eq(disk_state(&disk), STORE_DISK_OK);
    ck_assert_uint_eq(atomic_load(&disk.errors), 0);
    disk_destroy(&disk);
}
END_TEST

START_TEST(a_probe_every_retry_decides)
{
    Disk disk;
    disk_init(&disk, 30000);
    disk_failed(&disk, EROFS, 1000);
    ck_assert(!disk_tick(&disk, 30999));
    ck_assert(disk_tick(&disk, 31000));
    ck_assert(!disk_tick(&disk, 31001));
    disk_probed(&disk, -EIO);
    ck_assert_int_eq(disk_state(&disk), STORE_DISK_BYPASS);
    ck_assert(disk_tick(&disk, 61000));
    disk_probed(&disk, 0);
    ck_assert_int_eq(disk_state(&disk), STORE_DISK_OK);
    disk_destroy(&disk);
}
END_TEST

HARNESS_MAIN("cache/store/disk/disk", three_errors_within_a_minute_are_bypass,
             errors_far_apart_are_not, successes_clear_suspicion, read_only_is_bypass_at_once,
             full_is_not_sick, a_probe_every_retry_decides)
