/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worker threads take lanes from a queue. One more thread, the watcher, looks at the runs that have
 * not returned and gives the work of a late one to another run of its lane.
 */
#include "cache/fuse/lanes.h"
#include <errno.h>
#include <pthread.h>
#include <sys/queue.h>
#include "common/monotonic.h"

#define THREADS_KEPT 2
#define IDLE_MS 1000
/* A run is overtaken after this time, the next one after twice this time, and so on. */
#define PATIENCE_MS 20
#define PATIENCE_MAX_MS 1000
#define LOOKS_OFTEN 100

typedef struct Lane Lane;

typedef struct Run {
    LIST_ENTRY(Run) link;
    Lane *lane;
    void *work;      /* NULL: another run has it */
    gboolean fixed;  /* another run must not take it over */
    unsigned state;  /* when it began */
    int64_t late_ms; /* when it is overtaken */
} Run;

struct Lane {
    LaneKey key;
    TAILQ_ENTRY(Lane) link;
    gboolean queued;
    unsigned runs;
    void *waiting;
};

struct Lanes {
    LaneOps ops;
    void *data;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t wake;  /* threads: a lane is queued, or the end */
    pthread_cond_t watch; /* the watcher: there is a run, or the end */
    pthread_cond_t ended; /* a thread has */
    GHashTable *lanes;    /* &Lane.key -> Lane: with work */
    TAILQ_HEAD(, Lane) queue;
    unsigned n_queued;
    LIST_HEAD(, Run) runs; /* with or without work, until they return */
    unsigned threads, idle;
    gboolean stopping;
    int64_t watch_ms; /* when the watcher looks next */
    pthread_t watcher;
};

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

static void thread_new_locked(Lanes *l)
{
    pthread_t thread;
    if (l->threads >= l->ops.threads_max || pthread_create(&thread, NULL, lane_thread, l) != 0)
        return;
    pthread_detach(thread);
    l->threads++;
}

static void enqueue_locked(Lanes *l, Lane *lane)
{
    lane->queued = TRUE;
    TAILQ_INSERT_TAIL(&l->queue, lane, link);
    l->n_queued++;
    if (l->n_queued > l->idle)
        thread_new_locked(l);
    pthread_cond_signal(&l->wake);
}

static Lane *dequeue_locked(Lanes *l)
{
    Lane *lane = TAILQ_FIRST(&l->queue);
    if (lane) {
        TAILQ_REMOVE(&l->queue, lane, link);
        lane->queued = FALSE;
        l->n_queued--;
    }
    return lane;
}

void lanes_add(Lanes *l, const LaneKey *key, void *work)
{
    pthread_mutex_lock(&l->lock);
    Lane *lane = g_hash_table_lookup(l->lanes, key);
    if (!lane) {
        lane = g_new0(Lane, 1);
        lane->key = *key;
        g_hash_table_insert(l->lanes, &lane->key, lane);
    }
    lane->waiting = lane->waiting ? l->ops.merge(lane->waiting, work) : work;
    if (!lane->queued && lane->runs == 0)
        enqueue_locked(l, lane);
    else if (lane->runs && l->watch_ms > monotonic_ms() + PATIENCE_MS)
        pthread_cond_signal(&l->watch);
    pthread_mutex_unlock(&l->lock);
}

static int64_t patience_ms(const Lane *lane)
{
    return MIN(PATIENCE_MS << (lane->runs - 1), PATIENCE_MAX_MS);
}

static void run_locked(Lanes *l, Lane *lane)
{
    const unsigned tries = lane->runs++;
    Run run = {.lane = lane, .work = lane->waiting, .late_ms = monotonic_ms() + patience_ms(lane)};
    lane->waiting = NULL;
    run.state = l->ops.state(l->data, &lane->key, run.work);
    void *aim = l->ops.aim(l->data, &lane->key, run.work);
    run.fixed = aim == NULL;
    LIST_INSERT_HEAD(&l->runs, &run, link);
    if (run.late_ms < l->watch_ms)
        pthread_cond_signal(&l->watch);
    pthread_mutex_unlock(&l->lock);
    l->ops.run(l->data, &lane->key, aim ? aim : run.work, tries);
    pthread_mutex_lock(&l->lock);
    LIST_REMOVE(&run, link);
    if (run.work) {
        pthread_mutex_unlock(&l->lock);
        l->ops.done(l->data, &lane->key, run.work);
        pthread_mutex_lock(&l->lock);
    }
    lane->runs--;
    if (lane->waiting && !lane->queued && lane->runs == 0)
        enqueue_locked(l, lane);
    if (lane->runs == 0 && !lane->queued) {
        g_hash_table_remove(l->lanes, &lane->key);
        g_free(lane);
    }
}

static void *lane_thread(void *data)
{
    Lanes *l = data;
    int r = 0;
    pthread_mutex_lock(&l->lock);
    for (;;) {
        Lane *lane = dequeue_locked(l);
        if (lane) {
            run_locked(l, lane);
            r = 0;
            continue;
        }
        /* A running thread may still add work. */
        if ((l->stopping && g_hash_table_size(l->lanes) == 0) ||
            (r == ETIMEDOUT && l->threads > THREADS_KEPT))
            break;
        const struct timespec until = deadline_after_ms(IDLE_MS);
        l->idle++;
        if (l->threads > THREADS_KEPT || l->stopping)
            r = pthread_cond_timedwait(&l->wake, &l->lock, &until);
        else
            r = pthread_cond_wait(&l->wake, &l->lock);
        l->idle--;
    }
    l->threads--;
    pthread_cond_broadcast(&l->wake);
    pthread_cond_broadcast(&l->ended);
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* ---- the watcher ---- */

/* Whether one that has not returned began in this state, and so blocks where another would. */
static gboolean tried_locked(Lanes *l, const Lane *lane, unsigned state)
{
    Run *run;
    LIST_FOREACH (run, &l->runs, link)
        if (run->lane == lane && run->state == state)
            return TRUE;
    return FALSE;
}

static void overtake_locked(Lanes *l, Run *run)
{
    Lane *lane = run->lane;
    const void *work = run->work ? run->work : lane->waiting;
    if (run->fixed || lane->queued || lane->runs >= LANE_RUNS_MAX || !work ||
        tried_locked(l, lane, l->ops.state(l->data, &lane->key, work)))
        return;
    if (run->work)
        lane->waiting = lane->waiting ? l->ops.merge(lane->waiting, run->work) : run->work;
    run->work = NULL;
    enqueue_locked(l, lane);
}

/* Whether something is blocked. *next_ms: when to look again; 0: nothing runs. */
static gboolean look_locked(Lanes *l, int64_t *next_ms)
{
    const int64_t now = monotonic_ms();
    gboolean blocked = FALSE;
    Run *run;
    *next_ms = 0;
    LIST_FOREACH (run, &l->runs, link) {
        if (run->late_ms <= now) {
            blocked = TRUE;
            overtake_locked(l, run);
        } else if (!*next_ms || run->late_ms < *next_ms) {
            *next_ms = run->late_ms;
        }
    }
    if (blocked && (!*next_ms || now + PATIENCE_MS < *next_ms))
        *next_ms = now + PATIENCE_MS;
    return blocked;
}

static void *watcher_thread(void *data)
{
    Lanes *l = data;
    unsigned looks = 0; /* in a row that found something blocked */
    pthread_mutex_lock(&l->lock);
    while (!l->stopping || l->threads) {
        int64_t next_ms;
        gboolean blocked = look_locked(l, &next_ms);
        looks = blocked ? looks + 1 : 0;
        /* Runs that are blocked for long are checked less often. */
        if (looks > LOOKS_OFTEN)
            next_ms += PATIENCE_MAX_MS;
        l->watch_ms = next_ms ? next_ms : INT64_MAX;
        struct timespec until = {.tv_sec = next_ms / 1000, .tv_nsec = next_ms % 1000 * 1000000};
        if (next_ms)
            pthread_cond_timedwait(&l->watch, &l->lock, &until);
        else if (LIST_EMPTY(&l->runs) && (!l->stopping || l->threads))
            pthread_cond_wait(&l->watch, &l->lock);
        l->watch_ms = 0;
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

Lanes *lanes_start(const LaneOps *ops, void *data)
{
    Lanes *l = g_new0(Lanes, 1);
    l->ops = *ops;
    l->data = data;
    pthread_mutex_init(&l->lock, NULL);
    cond_init_monotonic(&l->wake);
    cond_init_monotonic(&l->watch);
    pthread_cond_init(&l->ended, NULL);
    l->lanes = g_hash_table_new(key_hash, key_equal);
    TAILQ_INIT(&l->queue);
    pthread_mutex_lock(&l->lock);
    for (int i = 0; i < THREADS_KEPT; i++)
        thread_new_locked(l);
    pthread_mutex_unlock(&l->lock);
    pthread_create(&l->watcher, NULL, watcher_thread, l);
    return l;
}

void lanes_stop(Lanes *l)
{
    pthread_mutex_lock(&l->lock);
    l->stopping = TRUE;
    pthread_cond_broadcast(&l->wake);
    pthread_cond_broadcast(&l->watch);
    while (l->threads)
        pthread_cond_wait(&l->ended, &l->lock);
    pthread_cond_broadcast(&l->watch);
    pthread_mutex_unlock(&l->lock);
    pthread_join(l->watcher, NULL);
    g_hash_table_unref(l->lanes);
    pthread_cond_destroy(&l->wake);
    pthread_cond_destroy(&l->watch);
    pthread_cond_destroy(&l->ended);
    pthread_mutex_destroy(&l->lock);
    g_free(l);
}

unsigned lanes_count(Lanes *l)
{
    pthread_mutex_lock(&l->lock);
    unsigned n = g_hash_table_size(l->lanes);
    pthread_mutex_unlock(&l->lock);
    return n;
}

unsigned lanes_threads(Lanes *l)
{
    pthread_mutex_lock(&l->lock);
    unsigned n = l->threads;
    pthread_mutex_unlock(&l->lock);
    return n;
}
