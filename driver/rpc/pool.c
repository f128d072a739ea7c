/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One lock guards everything. A worker that waits for Ceph may wait for ever, so stopping is
 * bounded and reports instead of joining at any price: the process can then only exit.
 */
#include "driver/rpc/pool.h"

#include <pthread.h>
#include <time.h>

struct RpcPool {
    RpcPoolConfig config;
    pthread_mutex_t lock;
    pthread_cond_t wake;    /* work, or the end */
    pthread_cond_t retired; /* a worker left its loop */
    /* The lock guards the fields below. */
    RpcJob *head, *tail;
    unsigned queued;
    unsigned threads;
    unsigned busy;    /* of them, running a job; the others will take one each of those queued */
    unsigned working; /* threads that have not left their loop */
    gboolean stopping;
    pthread_t *handles;
};

static void unlink_locked(RpcPool *pool, RpcJob *job)
{
    *(job->previous ? &job->previous->next : &pool->head) = job->next;
    *(job->next ? &job->next->previous : &pool->tail) = job->previous;
    *job = (RpcJob){0};
    pool->queued--;
}

static void *worker(void *data)
{
    RpcPool *pool = data;
    pthread_setname_np(pthread_self(), "rpc-worker");
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (!pool->head && !pool->stopping)
            pthread_cond_wait(&pool->wake, &pool->lock);
        if (pool->stopping)
            break;
        RpcJob *job = pool->head;
        unlink_locked(pool, job);
        pool->busy++;
        pthread_mutex_unlock(&pool->lock);
        pool->config.run(job);
        pthread_mutex_lock(&pool->lock);
        pool->busy--;
    }
    pool->working--;
    pthread_cond_signal(&pool->retired);
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

RpcPool *rpc_pool_new(const RpcPoolConfig *config)
{
    RpcPool *pool = g_new0(RpcPool, 1);
    pool->config = *config;
    pool->handles = g_new0(pthread_t, config->max_threads);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->retired, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return pool;
}

gboolean rpc_pool_submit(RpcPool *pool, RpcJob *job)
{
    pthread_mutex_lock(&pool->lock);
    if (!pool->stopping && pool->queued >= pool->threads - pool->busy &&
        pool->threads < pool->config.max_threads &&
        pthread_create(&pool->handles[pool->threads], NULL, worker, pool) == 0) {
        pool->threads++;
        pool->working++;
    }
    gboolean accepted = !pool->stopping && pool->threads > 0 &&
                        pool->queued < pool->threads - pool->busy + pool->config.max_queued;
    if (accepted) {
        *job = (RpcJob){.previous = pool->tail, .queued = TRUE};
        *(pool->tail ? &pool->tail->next : &pool->head) = job;
        pool->tail = job;
        pool->queued++;
        pthread_cond_signal(&pool->wake);
    }
    pthread_mutex_unlock(&pool->lock);
    return accepted;
}

gboolean rpc_pool_withdraw(RpcPool *pool, RpcJob *job)
{
    pthread_mutex_lock(&pool->lock);
    gboolean queued = job->queued;
    if (queued)
        unlink_locked(pool, job);
    pthread_mutex_unlock(&pool->lock);
    return queued;
}

gboolean rpc_pool_stop(RpcPool *pool, unsigned wait_ms)
{
    if (!pool)
        return TRUE;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += wait_ms / 1000;
    until.tv_nsec += (long)(wait_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&pool->lock);
    pool->stopping = TRUE;
    while (pool->head)
        unlink_locked(pool, pool->head);
    pthread_cond_broadcast(&pool->wake);
    int timed_out = 0;
    while (pool->working > 0 && !timed_out)
        timed_out = pthread_cond_timedwait(&pool->retired, &pool->lock, &until);
    gboolean done = pool->working == 0;
    pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 0; i < pool->threads; i++)
        done ? pthread_join(pool->handles[i], NULL) : pthread_detach(pool->handles[i]);
    if (!done)
        return FALSE;
    pthread_cond_destroy(&pool->wake);
    pthread_cond_destroy(&pool->retired);
    pthread_mutex_destroy(&pool->lock);
    g_free(pool->handles);
    g_free(pool);
    return TRUE;
}
