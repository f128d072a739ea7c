/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One of the threads without work waits on `timer` until the next work is due, the others on
 * `work`. A thread that is being made counts as idle, so that two tasks do not wait for one thread.
 */
#include "common/tasks.h"
#include <errno.h>
#include <pthread.h>
#include "common/monotonic.h"

/* A thread that had nothing to do for so long ends. */
#define IDLE_MS 10000
#define COMMON_THREADS 8

TAILQ_HEAD(TaskQueue, Task);

struct Tasks {
    unsigned least, most;
    gboolean (*has_spare)(void); /* NULL: always */
    pthread_mutex_t lock;
    pthread_cond_t work, timer, ended;
    struct TaskQueue ready, later; /* lock, as all below; `later` in the order of due_ms */
    unsigned n_ready;
    unsigned threads, idle;
    unsigned waiting;   /* of the idle ones, on `work` */
    uint64_t timing_ms; /* until when a thread waits; 0: none waits for a time */
    gboolean stopping;
};

static void *task_thread(void *data);

static gboolean add_thread_locked(Tasks *w)
{
    pthread_t thread;
    pthread_attr_t attr;
    if (w->threads >= w->most || (w->threads && w->has_spare && !w->has_spare()))
        return FALSE;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    const gboolean made = pthread_create(&thread, &attr, task_thread, w) == 0;
    pthread_attr_destroy(&attr);
    w->threads += made;
    w->idle += made;
    return made;
}

/* FALSE: there is no thread, and none can be made. */
static gboolean wake_locked(Tasks *w)
{
    if (w->n_ready > w->idle || w->idle == 0)
        add_thread_locked(w);
    pthread_cond_signal(w->waiting ? &w->work : &w->timer);
    return w->threads > 0;
}

static void make_ready_locked(Tasks *w, Task *task)
{
    TAILQ_INSERT_TAIL(&w->ready, task, link);
    task->due_ms = 0;
    w->n_ready++;
}

/* The work that is due. Another thread does what else there is, and waits for what comes later. */
static Task *take_locked(Tasks *w)
{
    const uint64_t now = (uint64_t)monotonic_ms();
    Task *task;
    while ((task = TAILQ_FIRST(&w->later)) && task->due_ms <= now) {
        TAILQ_REMOVE(&w->later, task, link);
        make_ready_locked(w, task);
    }
    task = TAILQ_FIRST(&w->ready);
    if (!task)
        return NULL;
    TAILQ_REMOVE(&w->ready, task, link);
    task->given = FALSE;
    if (--w->n_ready > 0 || (!TAILQ_EMPTY(&w->later) && !w->timing_ms))
        wake_locked(w);
    return task;
}

/* FALSE: nothing came in IDLE_MS. */
static gboolean wait_locked(Tasks *w)
{
    const Task *next = TAILQ_FIRST(&w->later);
    int rc = 0;
    if (next && !w->timing_ms) {
        const uint64_t due = next->due_ms;
        const struct timespec until = {(time_t)(due / 1000), (long)(due % 1000) * 1000000};
        w->timing_ms = due;
        pthread_cond_timedwait(&w->timer, &w->lock, &until);
        w->timing_ms = 0;
        return TRUE;
    }
    w->waiting++;
    if (w->threads > w->least) {
        const struct timespec until = deadline_after_ms(IDLE_MS);
        rc = pthread_cond_timedwait(&w->work, &w->lock, &until);
    } else {
        pthread_cond_wait(&w->work, &w->lock);
    }
    w->waiting--;
    return rc != ETIMEDOUT;
}

static gboolean may_end_locked(const Tasks *w)
{
    return w->threads > w->least && (TAILQ_EMPTY(&w->later) || w->timing_ms);
}

static void *task_thread(void *data)
{
    Tasks *w = data;
    pthread_mutex_lock(&w->lock);
    for (gboolean stays = TRUE;;) {
        w->idle--;
        Task *task = take_locked(w);
        if (!task && (w->stopping || (!stays && may_end_locked(w))))
            break;
        if (task) {
            pthread_mutex_unlock(&w->lock);
            task->run(task);
            pthread_mutex_lock(&w->lock);
        }
        w->idle++;
        stays = task || wait_locked(w);
    }
    w->threads--;
    pthread_cond_signal(&w->ended);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

Tasks *tasks_new(unsigned least, unsigned most)
{
    Tasks *w = g_new0(Tasks, 1);
    w->least = least;
    w->most = most;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->ended, NULL);
    cond_init_monotonic(&w->work);
    cond_init_monotonic(&w->timer);
    TAILQ_INIT(&w->ready);
    TAILQ_INIT(&w->later);
    return w;
}

void tasks_set_spare(Tasks *w, gboolean (*has_spare)(void))
{
    w->has_spare = has_spare;
}

void tasks_free(Tasks *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->stopping = TRUE;
    pthread_cond_broadcast(&w->work);
    pthread_cond_broadcast(&w->timer);
    while (w->threads > 0)
        pthread_cond_wait(&w->ended, &w->lock);
    pthread_mutex_unlock(&w->lock);
    pthread_cond_destroy(&w->work);
    pthread_cond_destroy(&w->timer);
    pthread_cond_destroy(&w->ended);
    pthread_mutex_destroy(&w->lock);
    g_free(w);
}

static Tasks *common;

/* The one thread that stays means that what was given is run, however many threads there are. */
static void make_common(void)
{
    common = tasks_new(1, COMMON_THREADS);
    pthread_mutex_lock(&common->lock);
    if (!add_thread_locked(common))
        g_error("cannot start a thread");
    pthread_mutex_unlock(&common->lock);
}

Tasks *tasks_common(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_common);
    return common;
}

gboolean tasks_give(Tasks *w, Task *task)
{
    pthread_mutex_lock(&w->lock);
    task->given = TRUE;
    make_ready_locked(w, task);
    const gboolean given = wake_locked(w);
    if (!given) {
        TAILQ_REMOVE(&w->ready, task, link);
        w->n_ready--;
        task->given = FALSE;
    }
    pthread_mutex_unlock(&w->lock);
    return given;
}

gboolean tasks_give_later(Tasks *w, Task *task, uint64_t ms)
{
    pthread_mutex_lock(&w->lock);
    task->given = TRUE;
    task->due_ms = (uint64_t)monotonic_ms() + MAX(ms, 1);
    Task *after = TAILQ_LAST(&w->later, TaskQueue);
    while (after && after->due_ms > task->due_ms)
        after = TAILQ_PREV(after, TaskQueue, link);
    if (after)
        TAILQ_INSERT_AFTER(&w->later, after, task, link);
    else
        TAILQ_INSERT_HEAD(&w->later, task, link);
    gboolean given = TRUE;
    if (w->timing_ms && !after) /* sooner than what is waited for */
        pthread_cond_signal(&w->timer);
    else if (!w->timing_ms)
        given = wake_locked(w);
    if (!given) {
        TAILQ_REMOVE(&w->later, task, link);
        task->given = FALSE;
    }
    pthread_mutex_unlock(&w->lock);
    return given;
}

gboolean tasks_take_back(Tasks *w, Task *task)
{
    pthread_mutex_lock(&w->lock);
    const gboolean given = task->given;
    if (given && task->due_ms)
        TAILQ_REMOVE(&w->later, task, link);
    else if (given)
        TAILQ_REMOVE(&w->ready, task, link);
    w->n_ready -= given && !task->due_ms;
    task->given = FALSE;
    pthread_mutex_unlock(&w->lock);
    return given;
}

unsigned tasks_threads(Tasks *w)
{
    pthread_mutex_lock(&w->lock);
    const unsigned threads = w->threads;
    pthread_mutex_unlock(&w->lock);
    return threads;
}
