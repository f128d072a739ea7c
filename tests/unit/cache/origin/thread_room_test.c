/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/origin/thread_room.h"
#include <gio/gio.h>
#include <pthread.h>
#include <string.h>
#include "tests/unit/harness.h"

/* Below what the machine itself allows. */
#define MOST 100

static void fails(unsigned n)
{
    g_autoptr(GError) error = NULL;
    ck_assert(!thread_room_take(n, 0, &error));
    ck_assert(g_error_matches(error, G_IO_ERROR, G_IO_ERROR_NO_SPACE));
    ck_assert_ptr_nonnull(strstr(error->message, "--max-threads is 100"));
}

START_TEST(what_is_taken_is_not_given_again)
{
    thread_room_set_most(MOST);
    ck_assert(thread_room_take(20, 0, NULL));
    ck_assert(thread_room_take(20, 0, NULL));
    fails(40);
    ck_assert(!thread_room_is_wanted());
    thread_room_give(20);
    ck_assert(thread_room_take(40, 0, NULL));
    thread_room_give(60);
    fails(MOST);
}
END_TEST

START_TEST(threads_that_there_are_count)
{
    uint64_t threads, most;
    thread_room_set_most(MOST);
    thread_room_look(&threads, &most);
    ck_assert_uint_eq(threads, harness_threads());
    ck_assert_uint_eq(most, MOST);
    thread_room_set_most(0);
    thread_room_look(&threads, &most);
    ck_assert_uint_ne(most, MOST);
}
END_TEST

START_TEST(spare_threads_leave_what_is_taken)
{
    thread_room_set_most(MOST);
    const unsigned free_now = MOST - (unsigned)harness_threads();
    ck_assert(thread_room_has_spare());
    ck_assert(thread_room_take(free_now - 40, 0, NULL));
    ck_assert(thread_room_has_spare());
    thread_room_set_most(MOST - 30);
    ck_assert(thread_room_has_spare());
    thread_room_set_most(MOST - 32);
    ck_assert(!thread_room_has_spare());
    thread_room_give(free_now - 40);
    while (!thread_room_has_spare()) /* what was found is remembered for a moment */
        g_usleep(1000);
    thread_room_set_most(0);
}
END_TEST

static void *give_soon(void *data)
{
    (void)data;
    while (!thread_room_is_wanted())
        g_usleep(1000);
    thread_room_give(60);
    return NULL;
}

START_TEST(who_waits_says_so_and_gets_what_is_given)
{
    pthread_t thread;
    thread_room_set_most(MOST);
    ck_assert(thread_room_take(60, 0, NULL));
    ck_assert_int_eq(pthread_create(&thread, NULL, give_soon, NULL), 0);
    ck_assert(thread_room_take(50, 60000, NULL));
    pthread_join(thread, NULL);
    ck_assert(!thread_room_is_wanted());
    thread_room_give(50);
}
END_TEST

HARNESS_MAIN("cache/origin/thread_room", spare_threads_leave_what_is_taken,
             what_is_taken_is_not_given_again, threads_that_there_are_count,
             who_waits_says_so_and_gets_what_is_given)
