/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/block/in_flight.h"
#include "tests/unit/harness.h"

static void begun(Flights *flights, Flight *flight, gboolean is_write, uint64_t off, uint64_t end)
{
    *flight = (Flight){.off = off, .end = end, .is_write = is_write};
    flights_begin_locked(flights, flight);
}

START_TEST(those_apart_do_not_meet)
{
    Flights flights;
    Flight fill, write;
    flights_init(&flights);
    begun(&flights, &fill, FALSE, 0, 8192);
    begun(&flights, &write, TRUE, 8192, 12288);
    ck_assert(flights_landed_locked(&flights, &fill));
    ck_assert(flights_landed_locked(&flights, &write));
    flights_destroy(&flights);
}
END_TEST

START_TEST(a_write_spoils_the_fills_before_it)
{
    Flights flights;
    Flight fill, landed, write;
    flights_init(&flights);
    begun(&flights, &fill, FALSE, 0, 8192);
    begun(&flights, &landed, FALSE, 0, 8192);
    ck_assert(flights_landed_locked(&flights, &landed));
    begun(&flights, &write, TRUE, 4096, 8192);
    ck_assert(!flights_landed_locked(&flights, &fill));
    ck_assert(!flights_install_locked(&flights, &landed));
    ck_assert(flights_landed_locked(&flights, &write));
    ck_assert(flights_install_locked(&flights, &write));
    flights_destroy(&flights);
}
END_TEST

START_TEST(a_fill_beside_a_write_that_has_not_landed_is_spoilt)
{
    Flights flights;
    Flight write, fill, later;
    flights_init(&flights);
    begun(&flights, &write, TRUE, 0, 4096);
    begun(&flights, &fill, FALSE, 0, 8192);
    ck_assert(!flights_landed_locked(&flights, &fill));
    ck_assert(flights_landed_locked(&flights, &write));
    begun(&flights, &later, FALSE, 0, 8192);
    ck_assert(flights_landed_locked(&flights, &later));
    flights_destroy(&flights);
}
END_TEST

START_TEST(of_two_writes_in_the_air_neither_is_installed)
{
    Flights flights;
    Flight one, two;
    flights_init(&flights);
    begun(&flights, &one, TRUE, 0, 8192);
    begun(&flights, &two, TRUE, 4096, 12288);
    ck_assert(!flights_landed_locked(&flights, &two));
    ck_assert(!flights_landed_locked(&flights, &one));
    flights_destroy(&flights);
}
END_TEST

START_TEST(a_write_after_one_that_has_landed_is_the_last)
{
    Flights flights;
    Flight one, two, three;
    flights_init(&flights);
    begun(&flights, &one, TRUE, 0, 4096);
    ck_assert(flights_landed_locked(&flights, &one));
    begun(&flights, &two, TRUE, 0, 4096);
    ck_assert(!flights_install_locked(&flights, &one));
    ck_assert(flights_landed_locked(&flights, &two));
    /* But for one that is being installed: its bytes may arrive in the file after the last's. */
    ck_assert(flights_install_locked(&flights, &two));
    begun(&flights, &three, TRUE, 0, 4096);
    ck_assert(two.spoilt);
    ck_assert(!flights_landed_locked(&flights, &three));
    flights_destroy(&flights);
}
END_TEST

START_TEST(only_what_is_whole_and_not_spoilt_is_found)
{
    Flights flights;
    Flight fill, write;
    flights_init(&flights);
    begun(&flights, &fill, FALSE, 4096, 65536);
    ck_assert_ptr_eq(flights_find_fill_locked(&flights, 8192, 12288), &fill);
    ck_assert_ptr_null(flights_find_fill_locked(&flights, 0, 8192));
    ck_assert(flights_landed_locked(&flights, &fill));
    ck_assert_ptr_eq(flights_find_fill_locked(&flights, 8192, 12288), &fill);
    begun(&flights, &write, TRUE, 32768, 36864);
    ck_assert_ptr_null(flights_find_fill_locked(&flights, 8192, 12288));
    flights_end_locked(&flights, &write);
    flights_end_locked(&flights, &fill);
    ck_assert_ptr_null(flights.first);
    flights_destroy(&flights);
}
END_TEST

HARNESS_MAIN("cache/block/in_flight", those_apart_do_not_meet, a_write_spoils_the_fills_before_it,
             a_fill_beside_a_write_that_has_not_landed_is_spoilt,
             of_two_writes_in_the_air_neither_is_installed,
             a_write_after_one_that_has_landed_is_the_last,
             only_what_is_whole_and_not_spoilt_is_found)
