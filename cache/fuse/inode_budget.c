/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/fuse/inode_budget.h"
#include <pthread.h>
#include <stdatomic.h>
#include "common/tasks.h"

/* Kernels are asked for some more than is too much: this part of the bound. */
#define MORE_PART 32
/* Kernels forget soon, except for what is in use. While nothing is forgotten, they are asked less
 * and less often. */
#define AGAIN_MS 100
#define AGAIN_MAX_MS 10000

static void trim(Task *task);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, InodeHolder) holders = LIST_HEAD_INITIALIZER(holders); /* lock */
static _Atomic uint64_t held, most = INODE_BUDGET_DEFAULT;
static _Atomic uint64_t forgotten; /* since the process began */
static _Atomic gboolean trimming;  /* the task is given, or runs */
static Task task = {.run = trim};
static uint64_t forgotten_before, pause_ms; /* the task's */

static gboolean is_too_much(void)
{
    const uint64_t bound = atomic_load(&most);
    return bound && atomic_load(&held) > bound;
}

static void begin_if_due(void)
{
    if (!is_too_much() || atomic_exchange(&trimming, TRUE))
        return;
    pause_ms = AGAIN_MS;
    if (!tasks_give(tasks_common(), &task))
        atomic_store(&trimming, FALSE);
}

static void ask_locked(uint64_t n)
{
    const uint64_t all = MAX(atomic_load(&held), 1);
    InodeHolder *h;
    LIST_FOREACH (h, &holders, link) {
        const uint64_t share = n * h->count(h->data) / all;
        if (share)
            h->forget(h->data, share);
    }
}

static void trim(Task *t)
{
    const uint64_t now = atomic_load(&held), bound = atomic_load(&most);
    const uint64_t gone = atomic_load(&forgotten);
    pause_ms = gone > forgotten_before ? AGAIN_MS : MIN(2 * pause_ms, AGAIN_MAX_MS);
    forgotten_before = gone;
    pthread_mutex_lock(&lock);
    const gboolean too_much = is_too_much(), ask = too_much && !LIST_EMPTY(&holders);
    if (ask)
        ask_locked(now - MIN(now, bound) + bound / MORE_PART);
    pthread_mutex_unlock(&lock);
    if (ask && tasks_give_later(tasks_common(), t, pause_ms))
        return;
    atomic_store(&trimming, FALSE);
    if (!too_much)
        begin_if_due(); /* more may have come before the line above */
}

void inode_budget_set(uint64_t bound)
{
    atomic_store(&most, bound);
    begin_if_due();
}

uint64_t inode_budget_most(void)
{
    return atomic_load(&most);
}

uint64_t inode_budget_held(void)
{
    return atomic_load(&held);
}

void inode_budget_join(InodeHolder *holder)
{
    pthread_mutex_lock(&lock);
    LIST_INSERT_HEAD(&holders, holder, link);
    pthread_mutex_unlock(&lock);
    begin_if_due();
}

void inode_budget_leave(InodeHolder *holder)
{
    pthread_mutex_lock(&lock);
    LIST_REMOVE(holder, link);
    pthread_mutex_unlock(&lock);
}

void inode_budget_added(void)
{
    atomic_fetch_add(&held, 1);
    begin_if_due();
}

void inode_budget_removed(void)
{
    atomic_fetch_sub(&held, 1);
    atomic_fetch_add(&forgotten, 1);
}
