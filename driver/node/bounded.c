/*
 * A job has two holders, its thread and its caller; whoever is last frees it. `done` and
 * `abandoned` decide who that is and change only under the lock. Threads are detached: joining one
 * that the kernel holds would hang the joiner too. The state is counted for the same reason: a
 * stuck thread may outlive the owner.
 */
#include "driver/node/bounded.h"
#include <errno.h>
#include <pthread.h>
#include <time.h>

struct Bounded {
    pthread_mutex_t lock;
    unsigned references; /* the owner and every thread; guarded by lock, as all below */
    unsigned max_stuck, stuck;
    GHashTable *stuck_keys; /* key -> itself */
};

typedef struct Job {
    Bounded *bounded;
    pthread_cond_t finished;
    char *key;
    void (*run)(void *data);
    void *data;
    void (*free_data)(void *data);
    gboolean done, abandoned; /* guarded by bounded->lock */
} Job;

Bounded *bounded_new(unsigned max_stuck)
{
    Bounded *b = g_new0(Bounded, 1);
    pthread_mutex_init(&b->lock, NULL);
    b->references = 1;
    b->max_stuck = max_stuck;
    b->stuck_keys = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return b;
}

void bounded_free(Bounded *b)
{
    if (!b)
        return;
    pthread_mutex_lock(&b->lock);
    gboolean last = --b->references == 0;
    pthread_mutex_unlock(&b->lock);
    if (!last)
        return;
    g_hash_table_unref(b->stuck_keys);
    pthread_mutex_destroy(&b->lock);
    g_free(b);
}

static void job_free(Job *job)
{
    pthread_cond_destroy(&job->finished);
    g_free(job->key);
    g_free(job);
}

static void *job_thread(void *arg)
{
    Job *job = arg;
    Bounded *b = job->bounded;
    job->run(job->data);
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
        job->free_data(job->data);
        job_free(job);
    }
    bounded_free(b);
    return NULL;
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

gboolean bounded_run(Bounded *b, const char *key, const char *what, void (*run)(void *data),
                     void *data, void (*free_data)(void *data), gint64 timeout_ms, GError **error)
{
    pthread_mutex_lock(&b->lock);
    gboolean same = g_hash_table_contains(b->stuck_keys, key);
    gboolean refused = same || b->stuck >= b->max_stuck;
    if (!refused)
        b->references++;
    pthread_mutex_unlock(&b->lock);
    if (refused) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_UNAVAILABLE,
                    same ? "%s: an earlier attempt still hangs; check hearthd and the Ceph cluster"
                         : "%s: too many mounts hang; check hearthd and the Ceph cluster",
                    what);
        free_data(data);
        return FALSE;
    }

    Job *job = g_new0(Job, 1);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&job->finished, &monotonic);
    pthread_condattr_destroy(&monotonic);
    job->bounded = b;
    job->key = g_strdup(key);
    job->run = run;
    job->data = data;
    job->free_data = free_data;

    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&detached, 256 * 1024);
    pthread_t thread;
    int rc = pthread_create(&thread, &detached, job_thread, job);
    pthread_attr_destroy(&detached);
    if (rc != 0) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_UNAVAILABLE, "%s: no thread: %s", what,
                    g_strerror(rc));
        free_data(data);
        job_free(job);
        bounded_free(b);
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
    g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_DEADLINE_EXCEEDED,
                "%s: no answer within %" G_GINT64_FORMAT " ms; check hearthd and the Ceph cluster",
                what, timeout_ms);
    return FALSE;
}
