/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/origin/cephfs/client/session_names.h"
#include <pthread.h>
#include "common/monotonic.h"
#include "tests/unit/harness.h"

START_TEST(each_connection_of_a_client_has_a_name_of_its_own)
{
    SessionName *first = session_name_take("a", 0), *second = session_name_take("a", 0);
    ck_assert_str_eq(session_name(first), "a");
    ck_assert_str_ne(session_name(second), "a");
    g_autofree char *expected = session_name_of("a", 1);
    ck_assert_str_eq(session_name(second), expected);
    SessionName *other = session_name_take("b", 0);
    ck_assert_str_eq(session_name(other), "b");
    session_name_release(other);
    session_name_release(second);
    session_name_release(first);
}
END_TEST

START_TEST(a_name_in_use_is_not_given_again)
{
    SessionName *names[SESSION_NAMES];
    for (unsigned i = 0; i < SESSION_NAMES; i++)
        names[i] = session_name_take("a", 0);
    ck_assert(session_name_take("a", monotonic_ms() + 20) == NULL);
    session_name_release(names[0]);
    SessionName *again = session_name_take("a", 0);
    ck_assert_str_eq(session_name(again), "a");
    names[0] = again;
    for (unsigned i = 0; i < SESSION_NAMES; i++)
        session_name_release(names[i]);
}
END_TEST

START_TEST(a_name_is_free_when_all_that_had_it_have_ended)
{
    SessionName *lost = session_name_take("a", 0), *next = session_name_again("a");
    ck_assert_str_eq(session_name(next), "a");
    session_name_release(lost);
    SessionName *other = session_name_take("a", 0);
    ck_assert_str_ne(session_name(other), "a");
    session_name_release(next);
    SessionName *free_now = session_name_take("a", 0);
    ck_assert_str_eq(session_name(free_now), "a");
    session_name_release(free_now);
    session_name_release(other);
}
END_TEST

static void *release_soon(void *name)
{
    g_usleep(20000);
    session_name_release(name);
    return NULL;
}

START_TEST(who_waits_gets_a_name_when_it_is_released)
{
    SessionName *names[SESSION_NAMES];
    pthread_t thread;
    for (unsigned i = 0; i < SESSION_NAMES; i++)
        names[i] = session_name_take("a", 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, release_soon, names[1]), 0);
    names[1] = session_name_take("a", monotonic_ms() + 60000);
    ck_assert_ptr_nonnull(names[1]);
    pthread_join(thread, NULL);
    for (unsigned i = 0; i < SESSION_NAMES; i++)
        session_name_release(names[i]);
}
END_TEST

START_TEST(the_last_that_is_released_is_waited_for)
{
    pthread_t thread;
    ck_assert(session_names_await_none(0));
    SessionName *name = session_name_take("a", 0);
    ck_assert(!session_names_await_none(20));
    ck_assert_int_eq(pthread_create(&thread, NULL, release_soon, name), 0);
    ck_assert(session_names_await_none(60000));
    pthread_join(thread, NULL);
}
END_TEST

HARNESS_MAIN("cache/origin/cephfs/client/session_names",
             each_connection_of_a_client_has_a_name_of_its_own, a_name_in_use_is_not_given_again,
             a_name_is_free_when_all_that_had_it_have_ended,
             who_waits_gets_a_name_when_it_is_released, the_last_that_is_released_is_waited_for)
