/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invariants:
 * 1. A thread touches the descriptor of a source only while it has taken the source, or while it
 *    holds the lock and the source is in `by_id`. So none does after reader_source_remove(). An
 *    event that epoll returns late has an ID that does not exist any more.
 * 2. A source that is not armed has a thread that reads, or is held, dead or being stopped. So no
 *    request waits for one that is being served, unless too many are.
 * 3. ended() is called by the last thread that has a dead source, which it has until then.
 * 4. A source that has a thread never takes the last one that has none. So another source waits
 *    only when the last one serves a source that had none.
 */
#include "cache/fuse/reader_sources.h"
#include <errno.h>
#include <gio/gio.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "common/monotonic.h"

#define WAKE_SIGNAL SIGUSR2
/* A source becomes busy by so many requests in this time, and quiet by fewer. */
#define WINDOW_MS 100
#define BUSY_REQUESTS 25
/* ... or by none for so long. */
#define IDLE_MS 300

static void wake(int signal)
{
    (void)signal;
}

gboolean reader_sources_init(ReaderSources *all, unsigned fresh_max, GError **error)
{
    *all = (ReaderSources){.epoll = epoll_create1(EPOLL_CLOEXEC), .fresh_max = fresh_max};
    if (all->epoll < 0) {
        g_set_error(error, G_IO_ERROR, g_io_error_from_errno(errno), "epoll_create1: %s",
                    g_strerror(errno));
        return FALSE;
    }
    const struct sigaction action = {.sa_handler = wake}; /* no SA_RESTART: read(2) returns */
    sigaction(WAKE_SIGNAL, &action, NULL);
    pthread_mutex_init(&all->lock, NULL);
    pthread_cond_init(&all->returned, NULL);
    all->by_id = g_hash_table_new(g_int64_hash, g_int64_equal);
    TAILQ_INIT(&all->held);
    TAILQ_INIT(&all->busy);
    return TRUE;
}

void reader_sources_clear(ReaderSources *all)
{
    close(all->epoll);
    g_hash_table_unref(all->by_id);
    pthread_cond_destroy(&all->returned);
    pthread_mutex_destroy(&all->lock);
}

static int control(const ReaderSources *all, int operation, ReaderSource *s)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.u64 = s->id};
    return epoll_ctl(all->epoll, operation, s->fd, &event);
}

gboolean reader_source_add(ReaderSources *all, ReaderSource *s, GError **error)
{
    pthread_mutex_lock(&all->lock);
    s->id = ++all->last_id;
    s->armed = TRUE;
    LIST_INIT(&s->readers);
    s->ops->set_waits(s, FALSE);
    const gboolean added = control(all, EPOLL_CTL_ADD, s) == 0;
    if (added)
        g_hash_table_insert(all->by_id, &s->id, s);
    else
        g_set_error(error, G_IO_ERROR, g_io_error_from_errno(errno), "epoll_ctl: %s",
                    g_strerror(errno));
    pthread_mutex_unlock(&all->lock);
    return added;
}

/* ---- armed or held */

static gboolean is_one_left(const ReaderSources *all)
{
    return all->threads < all->taken + 2;
}

/* The last thread is for a source that has none. */
static gboolean leaves_last(const ReaderSources *all, const ReaderSource *s)
{
    return s->taken > 0 && is_one_left(all);
}

static gboolean has_too_many(const ReaderSources *all, const ReaderSource *s)
{
    const unsigned left = all->stuck < READER_STUCK_MAX ? READER_STUCK_MAX - all->stuck : 0;
    const unsigned serving = s->taken - s->reading; /* each may become stuck */
    const unsigned most = MAX(1, MIN(READER_SOURCE_STUCK_MAX, left));
    return serving - s->stuck >= all->fresh_max || serving >= most || leaves_last(all, s);
}

static void unhold_locked(ReaderSources *all, ReaderSource *s)
{
    if (s->held)
        TAILQ_REMOVE(&all->held, s, held_link);
    s->held = FALSE;
}

/* Those with fewer threads come first, and so get the next one. */
static void hold_locked(ReaderSources *all, ReaderSource *s)
{
    ReaderSource *next;
    s->held = TRUE;
    TAILQ_FOREACH (next, &all->held, held_link)
        if (next->taken > s->taken)
            break;
    if (next)
        TAILQ_INSERT_BEFORE(next, s, held_link);
    else
        TAILQ_INSERT_TAIL(&all->held, s, held_link);
}

/* After each change of what it depends on. */
static void arm_locked(ReaderSources *all, ReaderSource *s)
{
    if (s->armed || s->reading || s->dead || s->stopping) {
        unhold_locked(all, s);
    } else if (!has_too_many(all, s)) {
        unhold_locked(all, s);
        s->armed = TRUE;
        control(all, EPOLL_CTL_MOD, s);
    } else if (!s->held) {
        hold_locked(all, s);
    }
}

static void stays_locked(ReaderSources *all, ReaderTaken *taken, gboolean stays)
{
    if (taken->stays == stays)
        return;
    taken->stays = stays;
    if (stays) {
        taken->source->staying++;
        all->staying++;
    } else {
        taken->source->staying--;
        all->staying--;
    }
}

void reader_source_is_stuck_locked(ReaderSources *all, ReaderTaken *taken)
{
    stays_locked(all, taken, FALSE);
    taken->stuck = TRUE;
    taken->source->stuck++;
    all->stuck++;
    arm_locked(all, taken->source);
}

static void arm_held_locked(ReaderSources *all)
{
    ReaderSource *s, *next;
    for (s = TAILQ_FIRST(&all->held); s; s = next) {
        next = TAILQ_NEXT(s, held_link);
        arm_locked(all, s);
    }
}

void reader_sources_scarce_locked(ReaderSources *all, gboolean scarce)
{
    all->scarce = scarce;
}

void reader_sources_thread_came(ReaderSources *all)
{
    pthread_mutex_lock(&all->lock);
    all->threads++;
    arm_held_locked(all);
    pthread_mutex_unlock(&all->lock);
}

gboolean reader_sources_thread_may_go(ReaderSources *all)
{
    pthread_mutex_lock(&all->lock);
    const gboolean may = !is_one_left(all);
    all->threads -= may ? 1 : 0;
    pthread_mutex_unlock(&all->lock);
    return may;
}

static void is_not_stuck_locked(ReaderSources *all, ReaderTaken *taken)
{
    if (!taken->stuck)
        return;
    taken->stuck = FALSE;
    taken->source->stuck--;
    all->stuck--;
    arm_held_locked(all);
}

/* ---- busy or quiet */

static void become_busy_locked(ReaderSources *all, ReaderSource *s)
{
    s->busy = TRUE;
    TAILQ_INSERT_TAIL(&all->busy, s, busy_link);
    s->ops->set_waits(s, TRUE);
}

/* A thread that is about to read does not wait any more, and one that waits gets the signal. */
static void become_quiet_locked(ReaderSources *all, ReaderSource *s)
{
    if (!s->busy)
        return;
    s->busy = FALSE;
    TAILQ_REMOVE(&all->busy, s, busy_link);
    s->ops->set_waits(s, FALSE);
    const ReaderTaken *reader;
    LIST_FOREACH (reader, &s->readers, link)
        pthread_kill(reader->thread, WAKE_SIGNAL);
}

/* TRUE: it has become busy. */
static gboolean count_locked(ReaderSources *all, ReaderSource *s, int64_t now)
{
    if (now - s->window_ms >= WINDOW_MS) {
        if (s->requests < BUSY_REQUESTS)
            become_quiet_locked(all, s);
        s->window_ms = now;
        s->requests = 0;
    }
    if (++s->requests < BUSY_REQUESTS || s->busy)
        return FALSE;
    become_busy_locked(all, s);
    return TRUE;
}

gboolean reader_sources_look_locked(ReaderSources *all)
{
    const int64_t now = monotonic_ms();
    ReaderSource *s, *next;
    for (s = TAILQ_FIRST(&all->busy); s; s = next) {
        next = TAILQ_NEXT(s, busy_link);
        if (now - s->window_ms >= IDLE_MS)
            become_quiet_locked(all, s);
    }
    gboolean fresh = FALSE; /* held until threads return, come, or are found to be stuck */
    TAILQ_FOREACH (s, &all->held, held_link)
        fresh |= is_one_left(all) || s->taken - s->stuck - s->reading >= all->fresh_max;
    return fresh || !TAILQ_EMPTY(&all->busy);
}

/* ---- taken */

static void reads_locked(ReaderTaken *taken, gboolean reads)
{
    ReaderSource *s = taken->source;
    taken->reads = reads;
    if (reads) {
        s->reading++;
        LIST_INSERT_HEAD(&s->readers, taken, link);
    } else {
        s->reading--;
        LIST_REMOVE(taken, link);
    }
}

gboolean reader_source_take(ReaderSources *all, ReaderTaken *taken, uint64_t id)
{
    pthread_mutex_lock(&all->lock);
    ReaderSource *s = g_hash_table_lookup(all->by_id, &id);
    if (s) {
        s->armed = FALSE;
        s->events++;
    }
    if (s && (s->stopping || s->dead))
        s = NULL;
    if (s && leaves_last(all, s)) { /* it was armed while there were more */
        arm_locked(all, s);
        s = NULL;
    }
    if (s) {
        s->taken++;
        all->taken++;
        taken->source = s;
        reads_locked(taken, TRUE);
    }
    pthread_mutex_unlock(&all->lock);
    return s != NULL;
}

gboolean reader_source_received(ReaderSources *all, ReaderTaken *taken, ssize_t len)
{
    const int64_t now = monotonic_ms();
    ReaderSource *s = taken->source;
    pthread_mutex_lock(&all->lock);
    reads_locked(taken, FALSE);
    taken->since_ms = now;
    if (len == 0) {
        s->dead = TRUE;
        become_quiet_locked(all, s);
    }
    const gboolean busy_now = len > 0 && !s->stopping && count_locked(all, s, now);
    arm_locked(all, s);
    const gboolean watch = busy_now || s->held;
    pthread_mutex_unlock(&all->lock);
    return watch;
}

static gboolean may_stay(const ReaderSources *all, const ReaderTaken *taken)
{
    const ReaderSource *s = taken->source;
    return s->busy && !s->dead && !s->stopping && !all->scarce && all->threads > all->taken &&
           (taken->stays ||
            (s->staying < READER_SOURCE_STAY_MAX && all->staying < READER_STAY_MAX));
}

gboolean reader_source_answered(ReaderSources *all, ReaderTaken *taken)
{
    ReaderSource *s = taken->source;
    pthread_mutex_lock(&all->lock);
    is_not_stuck_locked(all, taken);
    stays_locked(all, taken, may_stay(all, taken));
    if (taken->stays) {
        reads_locked(taken, TRUE);
        pthread_mutex_unlock(&all->lock);
        return TRUE;
    }
    if (s->taken == 1 && s->dead && !s->stopping && !s->end_told) {
        s->end_told = TRUE;
        pthread_mutex_unlock(&all->lock);
        s->ops->ended(s);
        pthread_mutex_lock(&all->lock);
    }
    s->taken--;
    all->taken--;
    taken->source = NULL;
    arm_locked(all, s);
    arm_held_locked(all);
    if (s->stopping && s->taken == 0)
        pthread_cond_broadcast(&all->returned);
    pthread_mutex_unlock(&all->lock);
    return FALSE;
}

void reader_source_remove(ReaderSources *all, ReaderSource *s)
{
    pthread_mutex_lock(&all->lock);
    s->stopping = TRUE;
    become_quiet_locked(all, s);
    unhold_locked(all, s);
    while (s->taken)
        pthread_cond_wait(&all->returned, &all->lock);
    g_hash_table_remove(all->by_id, &s->id);
    control(all, EPOLL_CTL_DEL, s);
    pthread_mutex_unlock(&all->lock);
}
