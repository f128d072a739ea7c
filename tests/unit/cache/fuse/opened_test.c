/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/fuse/opened.h"
#include <pthread.h>
#include "tests/unit/harness.h"

START_TEST(a_number_finds_what_was_opened_until_it_is_removed)
{
    Opened *opened = opened_new();
    int a, b;
    ck_assert_ptr_null(opened_any(opened));
    const uint64_t fh_a = opened_add(opened, &a), fh_b = opened_add(opened, &b);
    ck_assert_ptr_eq(opened_find(opened, fh_a), &a);
    ck_assert_ptr_eq(opened_find(opened, fh_b), &b);
    ck_assert_ptr_null(opened_find(opened, 0));
    opened_remove(opened, fh_a);
    ck_assert_ptr_null(opened_find(opened, fh_a));
    ck_assert_ptr_eq(opened_any(opened), &b);
    opened_free(opened);
}
END_TEST

START_TEST(a_number_is_not_given_twice)
{
    Opened *opened = opened_new();
    int a;
    const uint64_t first = opened_add(opened, &a);
    opened_remove(opened, first);
    ck_assert_uint_gt(opened_add(opened, &a), first);
    opened_free(opened);
}
END_TEST

static void count(void *what, void *data)
{
    (void)data;
    ++*(int *)what;
}

START_TEST(each_is_visited_once)
{
    Opened *opened = opened_new();
    int visits[100] = {0};
    for (guint i = 0; i < G_N_ELEMENTS(visits); i++)
        opened_add(opened, &visits[i]);
    opened_each(opened, count, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(visits); i++)
        ck_assert_int_eq(visits[i], 1);
    opened_free(opened);
}
END_TEST

static void *open_and_close(void *data)
{
    for (int i = 0; i < 2000; i++) {
        const uint64_t fh = opened_add(data, &i);
        if (opened_find(data, fh) != &i)
            return data;
        opened_remove(data, fh);
    }
    return NULL;
}

START_TEST(threads_get_numbers_of_their_own)
{
    Opened *opened = opened_new();
    pthread_t threads[4];
    for (guint i = 0; i < G_N_ELEMENTS(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, open_and_close, opened), 0);
    for (guint i = 0; i < G_N_ELEMENTS(threads); i++) {
        void *failed = opened;
        pthread_join(threads[i], &failed);
        ck_assert_ptr_null(failed);
    }
    ck_assert_ptr_null(opened_any(opened));
    opened_free(opened);
}
END_TEST

HARNESS_MAIN("cache/fuse/opened", a_number_finds_what_was_opened_until_it_is_removed,
             a_number_is_not_given_twice, each_is_visited_once, threads_get_numbers_of_their_own)
