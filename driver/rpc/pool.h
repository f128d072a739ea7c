/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worker threads that run jobs in order of arrival. Threads are made as jobs find none idle, up to
 * a bound; beyond it jobs queue, up to another bound; beyond that they are refused. A job that
 * still queues can be withdrawn. The caller owns jobs; the pool links them only while they queue.
 */
#ifndef HEARTH_DRIVER_RPC_POOL_H
#define HEARTH_DRIVER_RPC_POOL_H

#include <glib.h>

typedef struct RpcPool RpcPool;
typedef struct RpcJob RpcJob;
struct RpcJob { /* all fields are the pool's, under its lock */
    RpcJob *previous, *next;
    gboolean queued;
};

typedef struct RpcPoolConfig {
    unsigned max_threads;
    unsigned max_queued;
    void (*run)(RpcJob *job); /* on a worker; the pool does not touch the job afterwards */
} RpcPoolConfig;

RpcPool *rpc_pool_new(const RpcPoolConfig *config);
/* FALSE: the queue is full, the pool stops, or there is no thread and none can be made. */
gboolean rpc_pool_submit(RpcPool *pool, RpcJob *job);
/* TRUE: it was queued and never runs. FALSE: a worker has it, or had it. */
gboolean rpc_pool_withdraw(RpcPool *pool, RpcJob *job);
/*
 * Takes no more jobs, forgets those queued, and waits up to `wait_ms` for those running. TRUE: the
 * threads are joined and the pool is freed. FALSE: a job still runs; the pool must stay, leaked.
 */
gboolean rpc_pool_stop(RpcPool *pool, unsigned wait_ms);

#endif
