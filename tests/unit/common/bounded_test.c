/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "common/bounded.h"
#include "tests/unit/harness.h"

/* Work that lasts until `gate` is opened; `freed` tells that its data was freed. */
typedef struct Work {
    int gate, freed;
    int result;
} Work;

static Work *work_new(gboolean open)
{
    Work *w = g_new0(Work, 1);
    w->gate = eventfd(open ? 1 : 0, EFD_CLOEXEC | EFD_SEMAPHORE);
    w->freed = eventfd(0, EFD_CLOEXEC);
    return w;
}

static void work_run(void *data)
{
    Work *w = data;
    eventfd_t value;
    eventfd_read(w->gate, &value);
    w->result = 42;
}

/* The descriptors are the test's. */
static void work_free(void *data)
{
    Work *w = data;
    int freed = w->freed;
    g_free(w);
    eventfd_write(freed, 1);
}

static void expect_freed(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    ck_assert_int_eq(poll(&p, 1, 10000), 1);
    eventfd_t value; /* reading orders us after the writer */
    eventfd_read(fd, &value);
}

START_TEST(gives_the_result_of_work_that_ends_in_time)
{
    g_autoptr(Bounded) b = bounded_new(2);
    Work *w = work_new(TRUE);
    ck_assert(bounded_run(b, "v", "work", &(BoundedJob){work_run, w, work_free}, 10000, NULL));
    ck_assert_int_eq(w->result, 42);
    close(w->gate);
    close(w->freed);
    g_free(w);
}
END_TEST

START_TEST(leaves_hung_work_behind_and_limits_it)
{
    Bounded *b = bounded_new(2);
    int gates[2], freed[2];
    g_autoptr(GError) error = NULL;
    const char *keys[] = {"v", "w"};
    for (int i = 0; i < 2; i++) {
        Work *w = work_new(FALSE);
        gates[i] = w->gate;
        freed[i] = w->freed;
        ck_assert(
            !bounded_run(b, keys[i], "work", &(BoundedJob){work_run, w, work_free}, 10, &error));
        ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_DEADLINE_EXCEEDED));
        g_clear_error(&error);
        /* The same volume again: not another thread. */
        Work *again = work_new(TRUE);
        int gate = again->gate, done = again->freed;
        ck_assert(!bounded_run(b, keys[i], "work", &(BoundedJob){work_run, again, work_free}, 10000,
                               &error));
        ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_UNAVAILABLE));
        g_clear_error(&error);
        expect_freed(done);
        close(gate);
        close(done);
    }
    /* A third volume: too many hang. */
    Work *third = work_new(TRUE);
    int gate = third->gate, done = third->freed;
    ck_assert(
        !bounded_run(b, "x", "work", &(BoundedJob){work_run, third, work_free}, 10000, &error));
    ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_UNAVAILABLE));
    expect_freed(done);
    close(gate);
    close(done);

    /* One comes back: the others may run again. */
    eventfd_write(gates[0], 1);
    expect_freed(freed[0]);
    Work *w = work_new(TRUE);
    ck_assert(bounded_run(b, "v", "work", &(BoundedJob){work_run, w, work_free}, 10000, NULL));
    close(w->gate);
    close(w->freed);
    g_free(w);

    /* One still hangs when the owner goes. */
    bounded_free(b);
    eventfd_write(gates[1], 1);
    expect_freed(freed[1]);
    for (int i = 0; i < 2; i++) {
        close(gates[i]);
        close(freed[i]);
    }
}
END_TEST

HARNESS_MAIN("common/bounded", gives_the_result_of_work_that_ends_in_time,
             leaves_hung_work_behind_and_limits_it)
