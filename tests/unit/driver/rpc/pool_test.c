/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/rpc/pool.h"

#include <pthread.h>

#include "tests/unit/harness.h"

/* Jobs wait at a gate and note the order in which they ran. */
typedef struct Job {
    RpcJob job; /* first */
    int number;
} Job;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static gboolean open_gate;
static int inside, done, order[1000];

static void run(RpcJob *job)
{
    pthread_mutex_lock(&lock);
    inside++;
    pthread_cond_broadcast(&changed);
    while (!open_gate)
        pthread_cond_wait(&changed, &lock);
    order[done++] = ((Job *)job)->number;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void wait_for(const int *counter, int value)
{
    pthread_mutex_lock(&lock);
    while (*counter < value)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void let_run(void)
{
    pthread_mutex_lock(&lock);
    open_gate = TRUE;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static RpcPool *pool_of(unsigned threads, unsigned queued)
{
    return rpc_pool_new(&(RpcPoolConfig){.max_threads = threads, .max_queued = queued, .run = run});
}

START_TEST(threads_grow_to_the_bound_and_then_jobs_queue)
{
    Job jobs[6] = {0};
    RpcPool *pool = pool_of(3, 2);
    for (int i = 0; i < 5; i++)
        ck_assert(rpc_pool_submit(pool, &jobs[i].job));
    wait_for(&inside, 3);
    ck_assert(!rpc_pool_submit(pool, &jobs[5].job));
    ck_assert_int_eq(inside, 3);
    let_run();
    wait_for(&done, 5);
    ck_assert(rpc_pool_stop(pool, 10000));
}
END_TEST

START_TEST(jobs_run_in_order)
{
    static Job jobs[1000];
    RpcPool *pool = pool_of(1, 1000);
    for (int i = 0; i < 1000; i++) {
        jobs[i].number = i;
        ck_assert(rpc_pool_submit(pool, &jobs[i].job));
    }
    let_run();
    wait_for(&done, 1000);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(order[i], i);
    ck_assert(rpc_pool_stop(pool, 10000));
}
END_TEST

START_TEST(withdrawn_jobs_do_not_run)
{
    Job jobs[4] = {{.number = 0}, {.number = 1}, {.number = 2}, {.number = 3}};
    RpcPool *pool = pool_of(1, 3);
    for (int i = 0; i < 4; i++)
        ck_assert(rpc_pool_submit(pool, &jobs[i].job));
    wait_for(&inside, 1);
    ck_assert(!rpc_pool_withdraw(pool, &jobs[0].job));
    ck_assert(rpc_pool_withdraw(pool, &jobs[2].job));
    ck_assert(!rpc_pool_withdraw(pool, &jobs[2].job));
    ck_assert(rpc_pool_withdraw(pool, &jobs[3].job));
    ck_assert(rpc_pool_submit(pool, &jobs[3].job));
    let_run();
    wait_for(&done, 3);
    ck_assert(rpc_pool_stop(pool, 10000));
    ck_assert_int_eq(order[1], 1);
    ck_assert_int_eq(order[2], 3);
    ck_assert_int_eq(done, 3);
}
END_TEST

START_TEST(stop_forgets_the_queue_and_tells_of_what_still_runs)
{
    Job jobs[3] = {0};
    static RpcPool *pool; /* stays, as the pool must */
    pool = pool_of(1, 2);
    for (int i = 0; i < 3; i++)
        ck_assert(rpc_pool_submit(pool, &jobs[i].job));
    wait_for(&inside, 1);
    ck_assert(!rpc_pool_stop(pool, 10));
    ck_assert(!rpc_pool_submit(pool, &jobs[1].job));
    let_run();
    wait_for(&done, 1);
    ck_assert_int_eq(inside, 1);
    RpcPool *unused = pool_of(4, 4);
    ck_assert(rpc_pool_stop(unused, 0));
    ck_assert(rpc_pool_stop(NULL, 0));
}
END_TEST

HARNESS_MAIN("driver/rpc/pool", threads_grow_to_the_bound_and_then_jobs_queue, jobs_run_in_order,
             withdrawn_jobs_do_not_run, stop_forgets_the_queue_and_tells_of_what_still_runs)
