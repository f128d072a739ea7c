/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that do not return in time. */
#include "cache/origin/aside.h"
#include <pthread.h>
#include <stdatomic.h>
#include "tests/unit/harness.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static gboolean held; /* lock, as the next */
static unsigned calls, freed;

static void count(unsigned *what)
{
    pthread_mutex_lock(&lock);
    (*what)++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void hang(void *data)
{
    (void)data;
    count(&calls);
    pthread_mutex_lock(&lock);
    while (held)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void free_data(void *data)
{
    g_free(data);
    count(&freed);
}

static void begin(gboolean hold)
{
    held = hold;
    calls = freed = 0;
}

START_TEST(what_returns_leaves_its_data_to_the_caller)
{
    begin(FALSE);
    char *data = g_strdup("text");
    ck_assert(aside_call(hang, data, free_data, 60000));
    ck_assert_uint_eq(calls, 1);
    ck_assert_uint_eq(freed, 0);
    ck_assert_uint_eq(aside_left_behind(), 0);
    g_free(data);
}
END_TEST

START_TEST(what_hangs_is_left_behind_and_frees_its_data_at_the_end)
{
    begin(TRUE);
    ck_assert(!aside_call(hang, g_strdup("text"), free_data, 10));
    ck_assert_uint_eq(aside_left_behind(), 1);
    pthread_mutex_lock(&lock);
    ck_assert_uint_eq(freed, 0);
    held = FALSE;
    pthread_cond_broadcast(&changed);
    while (!freed)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    while (aside_left_behind())
        g_usleep(1000);
}
END_TEST

static void call_nothing(void *data)
{
    (void)data;
}

static void let_go_and_await(unsigned *what)
{
    pthread_mutex_lock(&lock);
    ck_assert_uint_eq(freed, 0);
    held = FALSE;
    pthread_cond_broadcast(&changed);
    while (!*what)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

START_TEST(what_follows_is_not_waited_for)
{
    begin(TRUE);
    ck_assert(aside_call_then(call_nothing, hang, g_strdup("text"), free_data, 60000));
    let_go_and_await(&freed);
    ck_assert_uint_eq(calls, 1);
}
END_TEST

START_TEST(what_is_begun_is_not_waited_for)
{
    begin(TRUE);
    aside_begin(hang, NULL);
    let_go_and_await(&calls);
}
END_TEST

START_TEST(what_follows_a_call_that_hangs_comes_behind_it)
{
    begin(TRUE);
    ck_assert(!aside_call_then(hang, hang, g_strdup("text"), free_data, 10));
    ck_assert_uint_eq(aside_left_behind(), 1);
    let_go_and_await(&freed);
    ck_assert_uint_eq(calls, 2);
    while (aside_left_behind())
        g_usleep(1000);
}
END_TEST

HARNESS_MAIN("cache/origin/aside", what_returns_leaves_its_data_to_the_caller,
             what_hangs_is_left_behind_and_frees_its_data_at_the_end,
             what_follows_is_not_waited_for, what_is_begun_is_not_waited_for,
             what_follows_a_call_that_hangs_comes_behind_it)
