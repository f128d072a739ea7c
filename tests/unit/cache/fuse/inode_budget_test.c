/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/fuse/inode_budget.h"
#include <pthread.h>
#include <stdatomic.h>
#include "tests/unit/harness.h"

/* It forgets as it is asked to, or nothing at all. */
typedef struct Table {
    InodeHolder holder;
    _Atomic uint64_t n, asked, calls;
    gboolean keeps;
} Table;

static uint64_t count(void *data)
{
    return atomic_load(&((Table *)data)->n);
}

static void take_from(Table *t, uint64_t n)
{
    atomic_fetch_sub(&t->n, n);
    for (; n; n--)
        inode_budget_removed();
}

static void forget(void *data, uint64_t n)
{
    Table *t = data;
    atomic_fetch_add(&t->asked, n);
    atomic_fetch_add(&t->calls, 1);
    if (!t->keeps)
        take_from(t, MIN(n, count(t)));
}

static void join(Table *t, uint64_t n)
{
    *t = (Table){.n = n, .holder = {.count = count, .forget = forget, .data = t}};
    inode_budget_join(&t->holder);
    for (; n; n--)
        inode_budget_added();
}

static void leave(Table *t)
{
    inode_budget_leave(&t->holder);
    take_from(t, count(t));
}

static void await_held(uint64_t most)
{
    while (inode_budget_held() > most)
        g_usleep(1000);
}

START_TEST(each_forgets_in_proportion_to_what_it_has)
{
    Table large, small;
    inode_budget_set(0);
    join(&large, 300);
    join(&small, 100);
    ck_assert_uint_eq(large.calls, 0);
    inode_budget_set(100);
    await_held(100);
    ck_assert_uint_ge(count(&large), 2 * count(&small));
    ck_assert_uint_gt(count(&small), 0);
    leave(&large);
    leave(&small);
    ck_assert_uint_eq(inode_budget_held(), 0);
}
END_TEST

START_TEST(what_comes_later_is_bounded_too)
{
    Table t;
    inode_budget_set(100);
    join(&t, 0);
    for (int i = 0; i < 1000; i++) {
        atomic_fetch_add(&t.n, 1);
        inode_budget_added();
    }
    await_held(100);
    leave(&t);
}
END_TEST

START_TEST(what_cannot_be_forgotten_is_asked_for_less_and_less)
{
    Table t;
    inode_budget_set(10);
    join(&t, 0);
    t.keeps = TRUE;
    atomic_fetch_add(&t.n, 20);
    for (int i = 0; i < 20; i++)
        inode_budget_added();
    while (atomic_load(&t.calls) < 3)
        g_usleep(1000);
    g_usleep(1000000);
    ck_assert_uint_lt(atomic_load(&t.calls), 10);
    leave(&t);
}
END_TEST

static _Atomic gboolean enough;

static void *add_on(void *data)
{
    Table *t = data;
    while (!atomic_load(&enough)) {
        for (int i = 0; i < 200; i++) {
            atomic_fetch_add(&t->n, 1);
            inode_budget_added();
        }
        g_usleep(10000);
    }
    return NULL;
}

/* Between two questions more come than are too much. */
START_TEST(a_kernel_that_forgets_is_asked_again_soon_although_more_come)
{
    Table t;
    pthread_t adder;
    inode_budget_set(100);
    join(&t, 0);
    atomic_store(&enough, FALSE);
    pthread_create(&adder, NULL, add_on, &t);
    const gint64 from = g_get_monotonic_time();
    while (atomic_load(&t.calls) < 15)
        g_usleep(1000);
    ck_assert_int_lt(g_get_monotonic_time() - from, 20 * G_TIME_SPAN_SECOND);
    atomic_store(&enough, TRUE);
    pthread_join(adder, NULL);
    leave(&t);
}
END_TEST

static double cpu_seconds(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

/* As while a session ends: it takes no part any more, and frees what it has. */
START_TEST(what_nobody_can_forget_keeps_no_thread_busy)
{
    Table t;
    inode_budget_set(10);
    for (int i = 0; i < 20; i++)
        inode_budget_added();
    const double before = cpu_seconds();
    g_usleep(1000000);
    ck_assert_double_lt(cpu_seconds() - before, 0.3);
    join(&t, 20);
    while (atomic_load(&t.calls) == 0)
        g_usleep(1000);
    leave(&t);
}
END_TEST

HARNESS_MAIN("cache/fuse/inode_budget", each_forgets_in_proportion_to_what_it_has,
             what_comes_later_is_bounded_too,
             a_kernel_that_forgets_is_asked_again_soon_although_more_come,
             what_cannot_be_forgotten_is_asked_for_less_and_less,
             what_nobody_can_forget_keeps_no_thread_busy)
