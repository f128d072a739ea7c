/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request may wait for Ceph for long, and the next one must not wait for it. So there is always
 * the configured number of threads that are not stuck. One more thread (the watcher) checks this,
 * and only while all others are busy: a thread more than needed slows all of them down, since the
 * kernel gives requests to each in turn.
 *
 * read(2) on /dev/fuse has no way out but a request or the end of the connection, so threads that
 * still wait at readers_stop() are interrupted with a signal.
 */
#include "cache/fuse/readers.h"
#include <errno.h>
#include <gio/gio.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include "common/monotonic.h"

#define WAKE_SIGNAL SIGUSR2
#define MORE_MAX 64
/* A request that takes longer is stuck. */
#define STUCK_MS 20
/* The watcher rests when some thread was idle each time it looked. */
#define LOOKS 50
/* A thread that was added ends when this many wait for a request, after KEPT_MS at the earliest. */
#define IDLE_MAX 4
#define KEPT_MS 10000
/* Between two looks whether a thread has ended. */
#define JOIN_US 500

enum { NO_THREAD, RUNS, HAS_ENDED };

typedef struct Reader {
    Readers *readers;
    pthread_t thread;
    gboolean stays;                /* one of the first */
    int64_t kept_until_ms;         /* if it does not */
    _Atomic int64_t busy_since_ms; /* 0: waits for a request */
    _Atomic int state;
} Reader;

struct Readers {
    struct fuse_session *fuse;
    void (*ended)(void *data);
    void *data;
    unsigned n;
    Reader *threads; /* n + MORE_MAX */
    _Atomic unsigned running;
    _Atomic unsigned waiting; /* for a request */
    _Atomic int stopping;
    pthread_t watcher;
    gboolean watched;      /* there is one */
    pthread_mutex_t mutex; /* of the condition, which wakes the watcher */
    pthread_cond_t all_busy;
    _Atomic int rests; /* the watcher; it wants to be woken when all are busy */
};

struct fuse_session *readers_serve(const struct fuse_lowlevel_ops *ops, void *data, int fuse_fd,
                                   GError **error)
{
    char *argv[] = {(char *)"hearthd", NULL};
    struct fuse_args args = FUSE_ARGS_INIT(1, argv);
    struct fuse_session *fuse = fuse_session_new(&args, ops, sizeof(*ops), data);
    fuse_opt_free_args(&args);
    g_autofree char *path = g_strdup_printf("/dev/fd/%d", fuse_fd);
    if (fuse && fuse_session_mount(fuse, path) == 0)
        return fuse;
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED,
                "libfuse refuses descriptor %d: it must be a mounted /dev/fuse", fuse_fd);
    if (fuse)
        fuse_session_destroy(fuse);
    return NULL;
}

static void wake_watcher(Readers *r)
{
    if (!atomic_load(&r->rests) || !atomic_exchange(&r->rests, FALSE))
        return;
    pthread_mutex_lock(&r->mutex);
    pthread_cond_signal(&r->all_busy);
    pthread_mutex_unlock(&r->mutex);
}

static gboolean is_needed(const Reader *me)
{
    return me->stays || atomic_load(&me->readers->waiting) < IDLE_MAX ||
           monotonic_ms() < me->kept_until_ms;
}

/* Called by a thread that ends. */
static void thread_ends(Readers *r)
{
    if (atomic_fetch_sub(&r->running, 1) == 1 && !atomic_load(&r->stopping) && r->ended)
        r->ended(r->data);
}

static void *reader_thread(void *data)
{
    Reader *me = data;
    Readers *r = me->readers;
    struct fuse_buf buf = {.mem = NULL};
    while (!atomic_load(&r->stopping) && !fuse_session_exited(r->fuse) && is_needed(me)) {
        atomic_fetch_add(&r->waiting, 1);
        int got = fuse_session_receive_buf(r->fuse, &buf);
        atomic_store(&me->busy_since_ms, monotonic_ms());
        if (atomic_fetch_sub(&r->waiting, 1) == 1)
            wake_watcher(r);
        if (got > 0)
            fuse_session_process_buf(r->fuse, &buf);
        atomic_store(&me->busy_since_ms, 0);
        if (got <= 0 && got != -EINTR && got != -EAGAIN)
            break;
    }
    free(buf.mem);
    thread_ends(r);
    atomic_store(&me->state, HAS_ENDED);
    return NULL;
}

/* ---- one more ---- */

static void start_thread(Readers *r, Reader *me)
{
    me->readers = r;
    atomic_store(&me->state, RUNS);
    if (pthread_create(&me->thread, NULL, reader_thread, me) == 0)
        return;
    atomic_store(&me->state, NO_THREAD);
    thread_ends(r);
}

/* Not after the last one has ended. */
static gboolean count_one_more(Readers *r)
{
    unsigned running = atomic_load(&r->running);
    while (running && !atomic_compare_exchange_weak(&r->running, &running, running + 1)) {
    }
    return running != 0;
}

static gboolean is_stuck(const Reader *thread, int64_t now)
{
    const int64_t since = atomic_load(&thread->busy_since_ms);
    return since && now - since >= STUCK_MS;
}

/* Starts a thread for each one that is stuck. */
static void replace_stuck(Readers *r)
{
    const int64_t now = monotonic_ms();
    unsigned good = 0;
    for (unsigned i = 0; i < r->n + MORE_MAX; i++)
        good += atomic_load(&r->threads[i].state) == RUNS && !is_stuck(&r->threads[i], now);
    for (unsigned i = r->n; i < r->n + MORE_MAX && good < r->n; i++) {
        Reader *more = &r->threads[i];
        const int state = atomic_load(&more->state);
        if (state == RUNS)
            continue;
        if (!count_one_more(r))
            return;
        if (state == HAS_ENDED)
            pthread_join(more->thread, NULL);
        more->kept_until_ms = now + KEPT_MS;
        start_thread(r, more);
        good++;
    }
}

/* Until all threads are busy. */
static void rest_locked(Readers *r)
{
    atomic_store(&r->rests, TRUE);
    while (atomic_load(&r->rests) && atomic_load(&r->waiting) && !atomic_load(&r->stopping))
        pthread_cond_wait(&r->all_busy, &r->mutex);
    atomic_store(&r->rests, FALSE);
}

static void *watcher(void *data)
{
    Readers *r = data;
    int idle = 0;
    pthread_mutex_lock(&r->mutex);
    while (!atomic_load(&r->stopping)) {
        if (idle >= LOOKS) {
            rest_locked(r);
            idle = 0;
        }
        const struct timespec next = deadline_after_ms(STUCK_MS);
        pthread_cond_timedwait(&r->all_busy, &r->mutex, &next);
        idle++;
        if (atomic_load(&r->waiting))
            continue;
        idle = 0;
        replace_stuck(r);
    }
    pthread_mutex_unlock(&r->mutex);
    return NULL;
}

static void wake(int signal)
{
    (void)signal;
}

Readers *readers_start(struct fuse_session *fuse, unsigned n, void (*ended)(void *data), void *data)
{
    Readers *r = g_new0(Readers, 1);
    r->fuse = fuse;
    r->ended = ended;
    r->data = data;
    r->n = n;
    r->threads = g_new0(Reader, n + MORE_MAX);
    pthread_mutex_init(&r->mutex, NULL);
    cond_init_monotonic(&r->all_busy);
    struct sigaction action = {.sa_handler = wake};
    sigaction(WAKE_SIGNAL, &action, NULL);
    atomic_store(&r->running, n);
    for (unsigned i = 0; i < n; i++) {
        r->threads[i].stays = TRUE;
        start_thread(r, &r->threads[i]);
    }
    r->watched = pthread_create(&r->watcher, NULL, watcher, r) == 0;
    return r;
}

/* The signal may come between the check and the read, so it is repeated until the thread is gone.
 */
static void join_thread(pthread_t thread)
{
    while (pthread_tryjoin_np(thread, NULL) != 0) {
        pthread_kill(thread, WAKE_SIGNAL);
        g_usleep(JOIN_US);
    }
}

void readers_stop(Readers *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->mutex);
    atomic_store(&r->stopping, 1);
    pthread_cond_signal(&r->all_busy);
    pthread_mutex_unlock(&r->mutex);
    if (r->watched)
        pthread_join(r->watcher, NULL); /* no thread is made from here on */
    fuse_session_exit(r->fuse);
    for (unsigned i = 0; i < r->n + MORE_MAX; i++)
        if (atomic_load(&r->threads[i].state) != NO_THREAD)
            join_thread(r->threads[i].thread);
    pthread_cond_destroy(&r->all_busy);
    pthread_mutex_destroy(&r->mutex);
    g_free(r->threads);
    g_free(r);
}
