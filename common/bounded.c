/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job has two holders, its thread and its caller; the last one frees it. `done` and
 * `abandoned` decide which that is, and change only under the lock. Threads are detached: joining
 * one that the kernel holds would hang the joiner too. The state is counted for the same reason: a
 * stuck thread may outlive the owner. A thread that has ended a job waits a while for the next one:
 * making one costs as much as a short call to Ceph.
 */
#include "common/bounded.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

/* Threads that wait, and how long. */
#define MAX_IDLE 32
#define IDLE_MS (10 * 1000)

static atomic_int running; /* of mounts */

typedef struct Job Job;

/* A thread without work, on its own stack. */
typedef struct Idle Idle;
struct Idle {
    pthread_cond_t wake;
    Job *job; /* given; then it is not in the list any more */
    Idle *next;
};

struct Bounded {
    pthread_mutex_t lock;
    unsigned references; /* the owner and every thread; guarded by lock, as all below */
    unsigned max_stuck, stuck;
    GHashTable *stuck_keys; /* key -> itself */
    Idle *idle;             /* the last to become so first */
    unsigned n_idle;
    gboolean closed; /* the owner is gone */
    gboolean of_mounts;
};

struct Job {
    Bounded *bounded;
    pthread_cond_t finished;
    char *key;
    BoundedJob work;
    gboolean done, abandoned; /* guarded by bounded->lock */
};

static void cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

static void deadline_after(struct timespec *ts, gint64 ms)
{
    clock_gettime(CLOCK_MONOTONIC, ts);
    ms = CLAMP(ms, 0, 24 * 3600 * 1000);
    ts->tv_sec += ms / 1000;
    ts->tv_nsec += (ms % 1000) * 1000000;
    if (ts->tv_nsec >= 1000000000) {
        ts->tv_sec++;
        ts->tv_nsec -= 1000000000;
    }
}

Bounded *bounded_new(unsigned max_stuck)
{
    Bounded *b = g_new0(Bounded, 1);
    pthread_mutex_init(&b->lock, NULL);
    b->references = 1;
    b->max_stuck = max_stuck;
    b->stuck_keys = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return b;
}

static void unref(Bounded *b)
{
    pthread_mutex_lock(&b->lock);
    gboolean last = --b->references == 0;
    pthread_mutex_unlock(&b->lock);
    if (!last)
        return;
    g_hash_table_unref(b->stuck_keys);
    pthread_mutex_destroy(&b->lock);
    g_free(b);
}

void bounded_free(Bounded *b)
{
    if (!b)
        return;
    pthread_mutex_lock(&b->lock);
    b->closed = TRUE;
    for (Idle *idle = b->idle; idle; idle = idle->next)
        pthread_cond_signal(&idle->wake);
    pthread_mutex_unlock(&b->lock);
    unref(b);
}

static void job_free(Job *job)
{
    pthread_cond_destroy(&job->finished);
    g_free(job->key);
    g_free(job);
}

void bounded_set_of_mounts(Bounded *b)
{
    b->of_mounts = TRUE;
}

gboolean bounded_any_of_mounts(void)
{
    return atomic_load(&running) > 0;
}

static void run_job(Bounded *b, Job *job)
{
    const gboolean counts = b->of_mounts;
    atomic_fetch_add(&running, counts);
    job->work.run(job->work.data);
    atomic_fetch_sub(&running, counts);
    pthread_mutex_lock(&b->lock);
    job->done = TRUE;
    gboolean abandoned = job->abandoned;
    if (abandoned) {
        b->stuck--;
        g_hash_table_remove(b->stuck_keys, job->key);
    } else {
        pthread_cond_signal(&job->finished);
    }
    pthread_mutex_unlock(&b->lock);
    /* Not abandoned: the caller may have freed the job by now. */
    if (abandoned) {
        job->work.free_data(job->work.data);
        job_free(job);
    }
}

static void leave_idle_locked(Bounded *b, Idle *self)
{
    for (Idle **at = &b->idle; *at; at = &(*at)->next) {
        if (*at == self) {
            *at = self->next;
            b->n_idle--;
            return;
        }
    }
}

/* NULL: none came, or none is wanted any more. */
static Job *await_job(Bounded *b)
{
    Idle self = {.job = NULL};
    struct timespec until;
    deadline_after(&until, IDLE_MS);
    cond_init(&self.wake);
    pthread_mutex_lock(&b->lock);
    if (!b->closed && b->n_idle < MAX_IDLE) {
        self.next = b->idle;
        b->idle = &self;
        b->n_idle++;
        while (!self.job && !b->closed &&
               pthread_cond_timedwait(&self.wake, &b->lock, &until) != ETIMEDOUT)
            ;
        if (!self.job)
            leave_idle_locked(b, &self);
    }
    pthread_mutex_unlock(&b->lock);
    pthread_cond_destroy(&self.wake);
    return self.job;
}

static void *job_thread(void *arg)
{
    Job *job = arg;
    Bounded *b = job->bounded;
    for (; job; job = await_job(b))
        run_job(b, job);
    unref(b);
    return NULL;
}

/* To a thread that waits, or to a new one. 0 or an errno. */
static int start_job(Bounded *b, Job *job)
{
    pthread_mutex_lock(&b->lock);
    Idle *idle = b->idle;
    if (idle) {
        b->idle = idle->next;
        b->n_idle--;
        idle->job = job;
        pthread_cond_signal(&idle->wake);
    } else {
        b->references++;
    }
    pthread_mutex_unlock(&b->lock);
    if (idle)
        return 0;
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&detached, 256 * 1024);
    pthread_t thread;
    int rc = pthread_create(&thread, &detached, job_thread, job);
    pthread_attr_destroy(&detached);
    if (rc != 0)
        unref(b);
    return rc;
}

gboolean bounded_run(Bounded *b, const char *key, const char *what, const BoundedJob *work,
                     gint64 timeout_ms, GError **error)
{
    pthread_mutex_lock(&b->lock);
    gboolean same = g_hash_table_contains(b->stuck_keys, key);
    gboolean refused = same || b->stuck >= b->max_stuck;
    pthread_mutex_unlock(&b->lock);
    if (refused) {
        hearth_fail(error, HEARTH_ERROR_UNAVAILABLE,
                    same ? "%s: an earlier attempt still hangs; check hearthd and the Ceph cluster"
                         : "%s: too many mounts hang; check hearthd and the Ceph cluster",
                    what);
        work->free_data(work->data);
        return FALSE;
    }

    Job *job = g_new0(Job, 1);
    cond_init(&job->finished);
    job->bounded = b;
    job->key = g_strdup(key);
    job->work = *work;

    int rc = start_job(b, job);
    if (rc != 0) {
        hearth_fail(error, HEARTH_ERROR_UNAVAILABLE, "%s: no thread: %s", what, g_strerror(rc));
        work->free_data(work->data);
        job_free(job);
        return FALSE;
    }

    struct timespec deadline;
    deadline_after(&deadline, timeout_ms);
    pthread_mutex_lock(&b->lock);
    while (!job->done && pthread_cond_timedwait(&job->finished, &b->lock, &deadline) != ETIMEDOUT)
        ;
    gboolean done = job->done;
    if (!done) {
        job->abandoned = TRUE;
        b->stuck++;
        g_hash_table_add(b->stuck_keys, g_strdup(key));
    }
    pthread_mutex_unlock(&b->lock);
    if (done) {
        job_free(job);
        return TRUE;
    }
    return hearth_fail(error, HEARTH_ERROR_DEADLINE_EXCEEDED,
                       "%s: no answer within %" G_GINT64_FORMAT
                       " ms; check hearthd and the Ceph cluster",
                       what, timeout_ms);
}
