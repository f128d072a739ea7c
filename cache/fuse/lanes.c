/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All lanes of the process share the worker threads, one lock, and one more thread, the watcher: it
 * looks at the runs that have not returned and gives the work of a late one to another run of its
 * lane. The first lanes start the threads, the last ones end them.
 *
 * A thread takes a lane of the next Lanes that has one to run and may have one run more. So the
 * Lanes of one session, at its bound, keep no thread from those of another. The last thread without
 * a run is left to Lanes that have none, since more threads can come late, or never.
 */
#include "cache/fuse/lanes.h"
#include <errno.h>
#include <gio/gio.h>
#include <pthread.h>
#include <sys/queue.h>
#include "cache/origin/thread_room.h"
#include "common/monotonic.h"

#define THREADS_KEPT 4
#define IDLE_MS 1000
/* A run is overtaken after this time, the next one after twice this time, and so on. */
#define PATIENCE_MS 20
#define PATIENCE_MAX_MS 1000
#define LOOKS_OFTEN 100

typedef struct Lane Lane;

typedef struct Run {
    LIST_ENTRY(Run) link;    /* all of the process */
    LIST_ENTRY(Run) of_lane; /* those of its lane */
    Lane *lane;
    void *work;      /* NULL: another run has it */
    gboolean fixed;  /* another run must not take it over */
    unsigned state;  /* when it began */
    int64_t look_ms; /* when the watcher looks at it: it is late then */
    unsigned looks;  /* that found it late */
} Run;

struct Lane {
    LaneKey key;
    Lanes *lanes;
    TAILQ_ENTRY(Lane) link;
    gboolean queued;
    unsigned n_runs;
    LIST_HEAD(, Run) runs; /* with or without work, until they return */
    void *waiting;
};

/* Guarded by the lock of the crew. */
struct Lanes {
    LaneOps ops;
    void *data;
    GHashTable *lanes; /* &Lane.key -> Lane: with work */
    TAILQ_HEAD(, Lane) queue;
    unsigned n_queued, n_runs;
    unsigned wanted;          /* threads: as many of its queue as may run now */
    TAILQ_ENTRY(Lanes) ready; /* in the crew's list: it wants some */
    gboolean stopping;
    gboolean awaited; /* lanes_await_idle() runs */
};

static struct {
    pthread_mutex_t life; /* guards users; held while the threads are started and ended */
    unsigned users;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t wake;  /* threads: a lane can run, or the end */
    pthread_cond_t watch; /* the watcher: there is a run, or the end */
    pthread_cond_t ended; /* a thread has, or some Lanes have no more work */
    TAILQ_HEAD(ReadyLanes, Lanes) ready;
    unsigned wanted; /* by all Lanes together */
    LIST_HEAD(, Run) runs;
    unsigned threads, idle;
    gboolean is_short; /* no thread could be made */
    gboolean stopping;
    int64_t watch_ms; /* when the watcher looks next */
    pthread_t watcher;
} crew = {.life = PTHREAD_MUTEX_INITIALIZER,
          .lock = PTHREAD_MUTEX_INITIALIZER,
          .ready = TAILQ_HEAD_INITIALIZER(crew.ready)};

static guint key_hash(gconstpointer key)
{
    const LaneKey *k = key;
    return (guint)((k->a * 31 + k->b * 7 + k->kind) * 0x9e3779b97f4a7c15ull >> 32);
}

static gboolean key_equal(gconstpointer left, gconstpointer right)
{
    const LaneKey *a = left, *b = right;
    return a->kind == b->kind && a->a == b->a && a->b == b->b;
}

static void *lane_thread(void *data);

static gboolean thread_new_locked(void)
{
    pthread_t thread;
    crew.is_short = (crew.threads >= THREADS_KEPT && !thread_room_has_spare()) ||
                    pthread_create(&thread, NULL, lane_thread, NULL) != 0;
    if (crew.is_short) {
        pthread_cond_signal(&crew.watch);
        return FALSE;
    }
    pthread_detach(thread);
    crew.threads++;
    crew.idle++; /* until it runs */
    return TRUE;
}

static void start_wanted_locked(void)
{
    while (crew.wanted && crew.wanted >= crew.idle && thread_new_locked())
        ;
}

/* After each change of n_queued or n_runs. */
static void recount_locked(Lanes *l)
{
    const unsigned free_runs = l->ops.threads_max - MIN(l->n_runs, l->ops.threads_max);
    const unsigned wanted = MIN(l->n_queued, free_runs);
    if (wanted && !l->wanted)
        TAILQ_INSERT_TAIL(&crew.ready, l, ready);
    else if (!wanted && l->wanted)
        TAILQ_REMOVE(&crew.ready, l, ready);
    crew.wanted = crew.wanted - l->wanted + wanted;
    const gboolean more = wanted > l->wanted;
    l->wanted = wanted;
    if (!more)
        return;
    start_wanted_locked();
    pthread_cond_signal(&crew.wake);
}

static void enqueue_locked(Lane *lane)
{
    Lanes *l = lane->lanes;
    lane->queued = TRUE;
    TAILQ_INSERT_TAIL(&l->queue, lane, link);
    l->n_queued++;
    recount_locked(l);
}

/* Counts its run. The Lanes go behind all others. */
static Lane *dequeue_locked(void)
{
    Lanes *l;
    TAILQ_FOREACH (l, &crew.ready, ready)
        if (l->n_runs == 0 || crew.idle > 0)
            break;
    if (!l)
        return NULL;
    TAILQ_REMOVE(&crew.ready, l, ready);
    TAILQ_INSERT_TAIL(&crew.ready, l, ready);
    Lane *lane = TAILQ_FIRST(&l->queue);
    TAILQ_REMOVE(&l->queue, lane, link);
    lane->queued = FALSE;
    l->n_queued--;
    l->n_runs++;
    recount_locked(l);
    return lane;
}

/* Those of its runs that are late are looked at soon. */
static void hurry_locked(Lane *lane)
{
    const int64_t soon = monotonic_ms() + PATIENCE_MS;
    Run *run;
    LIST_FOREACH (run, &lane->runs, of_lane) {
        if (!run->looks)
            continue;
        run->looks = 1;
        run->look_ms = MIN(run->look_ms, soon);
    }
    if (crew.watch_ms > soon)
        pthread_cond_signal(&crew.watch);
}

void lanes_add(Lanes *l, const LaneKey *key, void *work)
{
    pthread_mutex_lock(&crew.lock);
    Lane *lane = g_hash_table_lookup(l->lanes, key);
    if (!lane) {
        lane = g_new0(Lane, 1);
        lane->key = *key;
        lane->lanes = l;
        LIST_INIT(&lane->runs);
        g_hash_table_insert(l->lanes, &lane->key, lane);
    }
    lane->waiting = lane->waiting ? l->ops.merge(lane->waiting, work) : work;
    if (!lane->queued && lane->n_runs == 0)
        enqueue_locked(lane);
    else if (lane->n_runs)
        hurry_locked(lane);
    pthread_mutex_unlock(&crew.lock);
}

static int64_t patience_ms(const Lane *lane)
{
    return MIN(PATIENCE_MS << (lane->n_runs - 1), PATIENCE_MAX_MS);
}

/* Frees it when it has no work. */
static void run_has_returned_locked(Lane *lane)
{
    Lanes *l = lane->lanes;
    lane->n_runs--;
    l->n_runs--;
    recount_locked(l);
    if (lane->waiting && !lane->queued && lane->n_runs == 0)
        enqueue_locked(lane);
    if (lane->n_runs == 0 && !lane->queued) {
        g_hash_table_remove(l->lanes, &lane->key);
        g_free(lane);
    }
    if ((l->stopping || l->awaited) && g_hash_table_size(l->lanes) == 0)
        pthread_cond_broadcast(&crew.ended);
}

static void run_locked(Lane *lane)
{
    Lanes *l = lane->lanes;
    const unsigned tries = lane->n_runs++;
    Run run = {.lane = lane, .work = lane->waiting, .look_ms = monotonic_ms() + patience_ms(lane)};
    lane->waiting = NULL;
    run.state = l->ops.state(l->data, &lane->key, run.work);
    void *aim = l->ops.aim(l->data, &lane->key, run.work);
    run.fixed = aim == NULL;
    LIST_INSERT_HEAD(&crew.runs, &run, link);
    LIST_INSERT_HEAD(&lane->runs, &run, of_lane);
    if (run.look_ms < crew.watch_ms)
        pthread_cond_signal(&crew.watch);
    pthread_mutex_unlock(&crew.lock);
    l->ops.run(l->data, &lane->key, aim ? aim : run.work, tries);
    pthread_mutex_lock(&crew.lock);
    LIST_REMOVE(&run, link);
    LIST_REMOVE(&run, of_lane);
    if (run.work) {
        pthread_mutex_unlock(&crew.lock);
        l->ops.done(l->data, &lane->key, run.work);
        pthread_mutex_lock(&crew.lock);
    }
    run_has_returned_locked(lane);
}

static void *lane_thread(void *data)
{
    (void)data;
    int r = 0;
    pthread_mutex_lock(&crew.lock);
    crew.idle--;
    for (;;) {
        Lane *lane = dequeue_locked();
        if (lane) {
            run_locked(lane);
            r = 0;
            continue;
        }
        const gboolean may_go = crew.threads > THREADS_KEPT && crew.idle > 0;
        if (crew.stopping || (r == ETIMEDOUT && may_go))
            break;
        const struct timespec until = deadline_after_ms(IDLE_MS);
        crew.idle++;
        if (crew.threads > THREADS_KEPT)
            r = pthread_cond_timedwait(&crew.wake, &crew.lock, &until);
        else
            r = pthread_cond_wait(&crew.wake, &crew.lock);
        crew.idle--;
    }
    crew.threads--;
    pthread_cond_broadcast(&crew.ended);
    pthread_mutex_unlock(&crew.lock);
    return NULL;
}

/* ---- the watcher ---- */

/* Whether one that has not returned began in this state, and so blocks where another would. */
static gboolean tried_locked(const Lane *lane, unsigned state)
{
    const Run *run;
    LIST_FOREACH (run, &lane->runs, of_lane)
        if (run->state == state)
            return TRUE;
    return FALSE;
}

static void overtake_locked(Run *run)
{
    Lane *lane = run->lane;
    const Lanes *l = lane->lanes;
    const void *work = run->work ? run->work : lane->waiting;
    if (run->fixed || lane->queued || lane->n_runs >= LANE_RUNS_MAX || !work ||
        tried_locked(lane, l->ops.state(l->data, &lane->key, work)))
        return;
    if (run->work)
        lane->waiting = lane->waiting ? l->ops.merge(lane->waiting, run->work) : run->work;
    run->work = NULL;
    enqueue_locked(lane);
}

/* Returns when to look again; INT64_MAX: nothing runs. */
static int64_t look_locked(void)
{
    const int64_t now = monotonic_ms();
    int64_t next_ms = INT64_MAX;
    Run *run;
    LIST_FOREACH (run, &crew.runs, link) {
        if (run->look_ms <= now) {
            overtake_locked(run);
            /* What is blocked for long is looked at less often. */
            run->look_ms = now + (run->looks < LOOKS_OFTEN ? PATIENCE_MS : PATIENCE_MAX_MS);
            run->looks++;
        }
        next_ms = MIN(next_ms, run->look_ms);
    }
    if (!crew.is_short)
        return next_ms;
    crew.is_short = FALSE;
    start_wanted_locked();
    return crew.is_short ? MIN(next_ms, now + PATIENCE_MAX_MS) : next_ms;
}

static void *watcher_thread(void *data)
{
    (void)data;
    pthread_mutex_lock(&crew.lock);
    while (!crew.stopping) {
        const int64_t next_ms = crew.watch_ms = look_locked();
        const struct timespec until = {.tv_sec = next_ms / 1000,
                                       .tv_nsec = next_ms % 1000 * 1000000};
        if (next_ms == INT64_MAX)
            pthread_cond_wait(&crew.watch, &crew.lock);
        else
            pthread_cond_timedwait(&crew.watch, &crew.lock, &until);
        crew.watch_ms = 0;
    }
    pthread_mutex_unlock(&crew.lock);
    return NULL;
}

/* ---- start and end ---- */

static void end_threads(void)
{
    pthread_mutex_lock(&crew.lock);
    crew.stopping = TRUE;
    pthread_cond_broadcast(&crew.wake);
    pthread_cond_broadcast(&crew.watch);
    while (crew.threads)
        pthread_cond_wait(&crew.ended, &crew.lock);
    pthread_mutex_unlock(&crew.lock);
}

static void clear_conditions(void)
{
    pthread_cond_destroy(&crew.wake);
    pthread_cond_destroy(&crew.watch);
    pthread_cond_destroy(&crew.ended);
}

static gboolean start_threads(void)
{
    cond_init_monotonic(&crew.wake);
    cond_init_monotonic(&crew.watch);
    cond_init_monotonic(&crew.ended);
    crew.stopping = FALSE;
    pthread_mutex_lock(&crew.lock);
    for (int i = 0; i < THREADS_KEPT; i++)
        thread_new_locked();
    const gboolean some = crew.threads > 0;
    pthread_mutex_unlock(&crew.lock);
    if (some && pthread_create(&crew.watcher, NULL, watcher_thread, NULL) == 0)
        return TRUE;
    end_threads();
    clear_conditions();
    return FALSE;
}

Lanes *lanes_start(const LaneOps *ops, void *data, GError **error)
{
    pthread_mutex_lock(&crew.life);
    const gboolean running = crew.users > 0 || start_threads();
    crew.users += running;
    pthread_mutex_unlock(&crew.life);
    if (!running) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED,
                    "no thread can be made for notifications: check pids.max and memory");
        return NULL;
    }
    Lanes *l = g_new0(Lanes, 1);
    l->ops = *ops;
    l->data = data;
    l->lanes = g_hash_table_new(key_hash, key_equal);
    TAILQ_INIT(&l->queue);
    return l;
}

void lanes_stop(Lanes *l)
{
    pthread_mutex_lock(&crew.lock);
    l->stopping = TRUE;
    while (g_hash_table_size(l->lanes))
        pthread_cond_wait(&crew.ended, &crew.lock);
    pthread_mutex_unlock(&crew.lock);
    pthread_mutex_lock(&crew.life);
    if (--crew.users == 0) {
        end_threads();
        pthread_join(crew.watcher, NULL);
        clear_conditions();
    }
    pthread_mutex_unlock(&crew.life);
    g_hash_table_unref(l->lanes);
    g_free(l);
}

gboolean lanes_await_idle(Lanes *l, unsigned timeout_ms)
{
    const struct timespec until = deadline_after_ms(timeout_ms);
    int r = 0;
    pthread_mutex_lock(&crew.lock);
    l->awaited = TRUE;
    while (g_hash_table_size(l->lanes) && r != ETIMEDOUT)
        r = pthread_cond_timedwait(&crew.ended, &crew.lock, &until);
    l->awaited = FALSE;
    const gboolean idle = g_hash_table_size(l->lanes) == 0;
    pthread_mutex_unlock(&crew.lock);
    return idle;
}

unsigned lanes_count(Lanes *l)
{
    pthread_mutex_lock(&crew.lock);
    unsigned n = g_hash_table_size(l->lanes);
    pthread_mutex_unlock(&crew.lock);
    return n;
}

unsigned lanes_threads(void)
{
    pthread_mutex_lock(&crew.lock);
    unsigned n = crew.threads;
    pthread_mutex_unlock(&crew.lock);
    return n;
}
