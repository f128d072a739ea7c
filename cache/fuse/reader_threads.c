/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request may wait for Ceph for long, and the next one must not wait for it. So there is always
 * the configured number of threads that are not stuck and stay with no source. One more thread (the
 * watcher) checks this, and only while all others are busy, or a source is busy or has all that it
 * may have. Threads more than needed cost nothing: epoll wakes the thread that came last.
 */
#include "cache/fuse/reader_threads.h"
#include <errno.h>
#include <gio/gio.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "cache/origin/thread_room.h"
#include "common/monotonic.h"

#define DEFAULT_THREADS 16
/* A request that takes longer is stuck. */
#define STUCK_MS 20
/* The watcher rests when there was nothing to do each time it looked. */
#define LOOKS 50
/* A thread that was added ends when this many wait for a request, after KEPT_MS at the earliest. */
#define IDLE_MAX 4
#define KEPT_MS 10000

enum { NO_THREAD, RUNS, HAS_ENDED };

typedef struct Thread {
    pthread_t thread;
    void *buffer;
    gboolean first;        /* it ends with the last source */
    int64_t kept_until_ms; /* of the others */
    ReaderTaken taken;     /* guarded by sources.lock */
    _Atomic int state;
} Thread;

static struct {
    pthread_mutex_t life; /* guards n, users; held while the threads are started and ended */
    unsigned n;
    unsigned users;
    ReaderSources sources;
    size_t buffer_size;
    Thread *threads; /* max_threads() */
    int end;         /* an eventfd: the threads end */
    _Atomic unsigned waiting;
    pthread_t watcher;
    pthread_mutex_t mutex; /* of the condition, which wakes the watcher */
    pthread_cond_t needed;
    gboolean stopping; /* guarded by mutex */
    _Atomic int rests; /* the watcher */
} pool = {.life = PTHREAD_MUTEX_INITIALIZER, .n = DEFAULT_THREADS};

/* Sources that have one stuck thread each when the others leave none. */
#define SOURCES_MAX 1024

static unsigned max_threads(void)
{
    return pool.n + READER_STUCK_MAX + READER_STAY_MAX + SOURCES_MAX;
}

static void wake_watcher(void)
{
    if (!atomic_load(&pool.rests) || !atomic_exchange(&pool.rests, FALSE))
        return;
    pthread_mutex_lock(&pool.mutex);
    pthread_cond_signal(&pool.needed);
    pthread_mutex_unlock(&pool.mutex);
}

static gboolean is_needed(const Thread *me)
{
    return me->first || atomic_load(&pool.waiting) < IDLE_MAX || monotonic_ms() < me->kept_until_ms;
}

/* The ID of a source with an event; 0: the thread ends. */
static uint64_t await_event(const Thread *me)
{
    while (is_needed(me) || !reader_sources_thread_may_go(&pool.sources)) {
        struct epoll_event event;
        atomic_fetch_add(&pool.waiting, 1);
        const int n = epoll_wait(pool.sources.epoll, &event, 1, me->first ? -1 : KEPT_MS);
        if (atomic_fetch_sub(&pool.waiting, 1) == 1)
            wake_watcher();
        if (n > 0)
            return event.data.u64;
    }
    return 0;
}

static void serve(Thread *me, uint64_t id)
{
    if (!reader_source_take(&pool.sources, &me->taken, id)) {
        wake_watcher();
        return;
    }
    ReaderSource *source = me->taken.source;
    do {
        const ssize_t len = source->ops->receive(source, me->buffer, pool.buffer_size);
        if (reader_source_received(&pool.sources, &me->taken, len))
            wake_watcher();
        if (len > 0)
            source->ops->process(source, me->buffer, (size_t)len);
    } while (reader_source_answered(&pool.sources, &me->taken));
}

static void *reader_thread(void *data)
{
    Thread *me = data;
    uint64_t id;
    me->taken.thread = pthread_self();
    while ((id = await_event(me)))
        serve(me, id);
    free(me->buffer);
    atomic_store(&me->state, HAS_ENDED);
    return NULL;
}

static gboolean start_thread(Thread *me)
{
    me->buffer = malloc(pool.buffer_size);
    if (!me->buffer)
        return FALSE;
    atomic_store(&me->state, RUNS);
    if (pthread_create(&me->thread, NULL, reader_thread, me) == 0) {
        reader_sources_thread_came(&pool.sources);
        return TRUE;
    }
    atomic_store(&me->state, NO_THREAD);
    free(me->buffer);
    return FALSE;
}

/* ---- the watcher */

static gboolean is_late(const ReaderTaken *taken, int64_t now)
{
    return taken->source && !taken->reads && !taken->stuck && now - taken->since_ms >= STUCK_MS;
}

/* Marks the threads that are stuck. Returns the number of those that are for all sources: not
 * stuck, and not with a source that they stay with. */
static unsigned mark_stuck(void)
{
    const int64_t now = monotonic_ms();
    unsigned good = 0;
    pthread_mutex_lock(&pool.sources.lock);
    for (unsigned i = 0; i < max_threads(); i++) {
        ReaderTaken *taken = &pool.threads[i].taken;
        if (atomic_load(&pool.threads[i].state) != RUNS)
            continue;
        if (is_late(taken, now))
            reader_source_is_stuck_locked(&pool.sources, taken);
        good += !(taken->source && (taken->reads || taken->stays || taken->stuck));
    }
    pthread_mutex_unlock(&pool.sources.lock);
    return good;
}

/* Starts a thread for each one that is stuck, or stays with a source. */
static void replace_stuck(void)
{
    unsigned good = mark_stuck();
    for (unsigned i = 0; i < max_threads() && good < pool.n; i++) {
        Thread *more = &pool.threads[i];
        const int state = atomic_load(&more->state);
        if (state == RUNS)
            continue;
        if (!thread_room_has_spare())
            break;
        if (state == HAS_ENDED)
            pthread_join(more->thread, NULL);
        atomic_store(&more->state, NO_THREAD);
        more->kept_until_ms = monotonic_ms() + KEPT_MS;
        if (!start_thread(more))
            break;
        good++;
    }
    pthread_mutex_lock(&pool.sources.lock);
    reader_sources_scarce_locked(&pool.sources, good < pool.n);
    pthread_mutex_unlock(&pool.sources.lock);
}

static gboolean has_work(void)
{
    pthread_mutex_lock(&pool.sources.lock);
    const gboolean some = reader_sources_look_locked(&pool.sources);
    pthread_mutex_unlock(&pool.sources.lock);
    return some || atomic_load(&pool.waiting) == 0;
}

static void rest_locked(void)
{
    atomic_store(&pool.rests, TRUE);
    while (atomic_load(&pool.rests) && !has_work() && !pool.stopping)
        pthread_cond_wait(&pool.needed, &pool.mutex);
    atomic_store(&pool.rests, FALSE);
}

static void *watcher(void *data)
{
    (void)data;
    int idle = 0;
    pthread_mutex_lock(&pool.mutex);
    while (!pool.stopping) {
        if (idle >= LOOKS) {
            rest_locked();
            idle = 0;
        }
        const struct timespec next = deadline_after_ms(STUCK_MS);
        pthread_cond_timedwait(&pool.needed, &pool.mutex, &next);
        idle++;
        if (!has_work())
            continue;
        idle = 0;
        replace_stuck();
    }
    pthread_mutex_unlock(&pool.mutex);
    return NULL;
}

/* ---- start and end */

static gboolean no_thread(GError **error)
{
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED,
                "no thread can be made for FUSE requests: check pids.max and memory");
    return FALSE;
}

static void join_all(void)
{
    eventfd_write(pool.end, 1);
    for (unsigned i = 0; i < max_threads(); i++)
        if (atomic_load(&pool.threads[i].state) != NO_THREAD)
            pthread_join(pool.threads[i].thread, NULL);
}

static void clear(void)
{
    pthread_cond_destroy(&pool.needed);
    pthread_mutex_destroy(&pool.mutex);
    g_clear_pointer(&pool.threads, g_free);
    reader_sources_clear(&pool.sources);
    if (pool.end >= 0)
        close(pool.end);
}

static gboolean add_end(GError **error)
{
    struct epoll_event event = {.events = EPOLLIN}; /* not one-shot: it wakes all */
    pool.end = eventfd(0, EFD_CLOEXEC);
    if (pool.end >= 0 && epoll_ctl(pool.sources.epoll, EPOLL_CTL_ADD, pool.end, &event) == 0)
        return TRUE;
    g_set_error(error, G_IO_ERROR, g_io_error_from_errno(errno), "eventfd: %s", g_strerror(errno));
    return FALSE;
}

static gboolean start_threads(GError **error)
{
    unsigned started = 0;
    for (unsigned i = 0; i < pool.n; i++) {
        pool.threads[i].first = TRUE;
        started += start_thread(&pool.threads[i]);
    }
    if (started == 0)
        return no_thread(error);
    pool.stopping = FALSE;
    if (pthread_create(&pool.watcher, NULL, watcher, NULL) == 0)
        return TRUE;
    join_all();
    return no_thread(error);
}

static gboolean start(size_t buffer_size, GError **error)
{
    if (!reader_sources_init(&pool.sources, MAX(1, pool.n - 1), error))
        return FALSE;
    pool.buffer_size = buffer_size;
    pool.threads = g_new0(Thread, max_threads());
    pthread_mutex_init(&pool.mutex, NULL);
    cond_init_monotonic(&pool.needed);
    if (add_end(error) && start_threads(error))
        return TRUE;
    clear();
    return FALSE;
}

static void end(void)
{
    pthread_mutex_lock(&pool.mutex);
    pool.stopping = TRUE;
    pthread_cond_signal(&pool.needed);
    pthread_mutex_unlock(&pool.mutex);
    pthread_join(pool.watcher, NULL); /* no thread is made from here on */
    join_all();
    clear();
}

static void drop_user_locked(void)
{
    if (--pool.users == 0)
        end();
}

void reader_threads_set(unsigned n)
{
    pthread_mutex_lock(&pool.life);
    if (pool.users == 0)
        pool.n = n ? n : DEFAULT_THREADS;
    pthread_mutex_unlock(&pool.life);
}

gboolean reader_threads_add(ReaderSource *source, size_t buffer_size, GError **error)
{
    pthread_mutex_lock(&pool.life);
    gboolean ok = pool.users > 0 || start(buffer_size, error);
    if (ok) {
        pool.users++;
        ok = reader_source_add(&pool.sources, source, error);
        if (!ok)
            drop_user_locked();
    }
    pthread_mutex_unlock(&pool.life);
    return ok;
}

void reader_threads_remove(ReaderSource *source)
{
    reader_source_remove(&pool.sources, source);
    pthread_mutex_lock(&pool.life);
    drop_user_locked();
    pthread_mutex_unlock(&pool.life);
}

uint64_t reader_threads_events(ReaderSource *source)
{
    pthread_mutex_lock(&pool.sources.lock);
    const uint64_t events = source->events;
    pthread_mutex_unlock(&pool.sources.lock);
    return events;
}
