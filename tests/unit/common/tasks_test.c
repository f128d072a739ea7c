/* SPDX-License-Identifier: Apache-2.0 */
#include "common/tasks.h"
#include <pthread.h>
#include <stdatomic.h>
#include "common/monotonic.h"
#include "tests/unit/harness.h"

#define AWAIT_MS 20000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
static gboolean gate_closed;
static atomic_uint running, ran;

static void set_gate(gboolean closed)
{
    pthread_mutex_lock(&lock);
    gate_closed = closed;
    pthread_cond_broadcast(&opened);
    pthread_mutex_unlock(&lock);
}

static void run_gated(Task *task)
{
    (void)task;
    atomic_fetch_add(&running, 1);
    pthread_mutex_lock(&lock);
    while (gate_closed)
        pthread_cond_wait(&opened, &lock);
    pthread_mutex_unlock(&lock);
    atomic_fetch_add(&ran, 1);
}

static void await_count(atomic_uint *count, unsigned n)
{
    const int64_t until = monotonic_ms() + AWAIT_MS;
    while (atomic_load(count) < n && monotonic_ms() < until)
        g_usleep(1000);
    ck_assert_uint_ge(atomic_load(count), n);
}

START_TEST(each_work_gets_a_thread_until_there_are_enough)
{
    Tasks *w = tasks_new(0, 4);
    Task tasks[10] = {{.run = NULL}};
    set_gate(TRUE);
    ck_assert_uint_eq(tasks_threads(w), 0);
    for (int i = 0; i < 10; i++) {
        tasks[i].run = run_gated;
        ck_assert(tasks_give(w, &tasks[i]));
    }
    await_count(&running, 4);
    ck_assert_uint_eq(tasks_threads(w), 4);
    ck_assert_uint_eq(atomic_load(&running), 4);
    set_gate(FALSE);
    tasks_free(w);
    ck_assert_uint_eq(atomic_load(&ran), 10);
}
END_TEST

static atomic_bool spare;

static gboolean is_spare(void)
{
    return atomic_load(&spare);
}

START_TEST(without_room_for_a_thread_work_waits_for_the_one_there_is)
{
    Tasks *w = tasks_new(0, 4);
    Task tasks[4] = {{.run = NULL}};
    tasks_set_spare(w, is_spare);
    atomic_store(&spare, FALSE);
    set_gate(TRUE);
    for (int i = 0; i < 3; i++) {
        tasks[i].run = run_gated;
        ck_assert(tasks_give(w, &tasks[i]));
    }
    await_count(&running, 1);
    ck_assert_uint_eq(tasks_threads(w), 1);
    atomic_store(&spare, TRUE);
    tasks[3].run = run_gated;
    ck_assert(tasks_give(w, &tasks[3]));
    await_count(&running, 2);
    ck_assert_uint_ge(tasks_threads(w), 2);
    set_gate(FALSE);
    tasks_free(w);
    ck_assert_uint_eq(atomic_load(&ran), 4);
}
END_TEST

START_TEST(work_that_was_taken_back_is_not_run)
{
    Tasks *w = tasks_new(0, 1);
    Task first = {.run = run_gated}, second = {.run = run_gated}, later = {.run = run_gated};
    set_gate(TRUE);
    ck_assert(tasks_give(w, &first));
    await_count(&running, 1);
    ck_assert(tasks_give(w, &second));
    ck_assert(tasks_give_later(w, &later, 100000));
    ck_assert(!tasks_take_back(w, &first));
    ck_assert(tasks_take_back(w, &second));
    ck_assert(!tasks_take_back(w, &second));
    ck_assert(tasks_take_back(w, &later));
    set_gate(FALSE);
    tasks_free(w);
    ck_assert_uint_eq(atomic_load(&ran), 1);
}
END_TEST

typedef struct Timed {
    Task task;
    int64_t due_ms;
} Timed;

static void run_timed(Task *task)
{
    const Timed *t = (Timed *)task;
    ck_assert_int_ge(monotonic_ms(), t->due_ms);
    atomic_fetch_add(&ran, 1);
}

START_TEST(later_work_is_run_when_it_is_due_also_when_sooner_work_comes)
{
    Tasks *w = tasks_new(0, 2);
    Timed timed[5] = {{.due_ms = 0}};
    static const unsigned after[] = {300, 100, 100000, 20, 200};
    for (int i = 0; i < 5; i++) {
        timed[i] = (Timed){{.run = run_timed}, monotonic_ms() + after[i]};
        ck_assert(tasks_give_later(w, &timed[i].task, after[i]));
    }
    await_count(&ran, 4);
    ck_assert(tasks_take_back(w, &timed[2].task));
    tasks_free(w);
}
END_TEST

/* While one thread is busy, another one waits for the time. */
START_TEST(later_work_does_not_wait_for_other_work)
{
    Tasks *w = tasks_new(0, 2);
    Task busy = {.run = run_gated};
    Timed timed = {{.run = run_timed}, 0};
    set_gate(TRUE);
    ck_assert(tasks_give_later(w, &timed.task, 50));
    ck_assert(tasks_give(w, &busy));
    await_count(&running, 1);
    await_count(&ran, 1);
    set_gate(FALSE);
    tasks_free(w);
    ck_assert_uint_eq(atomic_load(&ran), 2);
}
END_TEST

typedef struct Again {
    Task task;
    unsigned left;
} Again;

static void run_again(Task *task)
{
    Again *again = (Again *)task;
    atomic_fetch_add(&ran, 1);
    if (--again->left)
        tasks_give_later(tasks_common(), task, 1);
}

START_TEST(work_gives_itself_again)
{
    Again again[20];
    for (int i = 0; i < 20; i++) {
        again[i] = (Again){{.run = run_again}, 50};
        ck_assert(tasks_give(tasks_common(), &again[i].task));
    }
    await_count(&ran, 1000);
}
END_TEST

HARNESS_MAIN("common/tasks", each_work_gets_a_thread_until_there_are_enough,
             without_room_for_a_thread_work_waits_for_the_one_there_is,
             work_that_was_taken_back_is_not_run,
             later_work_is_run_when_it_is_due_also_when_sooner_work_comes,
             later_work_does_not_wait_for_other_work, work_gives_itself_again)
