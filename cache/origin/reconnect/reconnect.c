/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connections of an origin: which one is current, whether Ceph still answers on it, and the
 * next one. One thread, the lease keeper, starts checks and makes leases void in time, and never
 * waits for Ceph; another, the keeper, connects again. A check may hang for as long as Ceph does,
 * so each runs on a thread of its own, and there is one at a time.
 *
 * Times. An MDS calls a client stale that has not renewed its session for session_timeout, which is
 * 30 s at least (MDSMonitor refuses less). libcephfs renews every third of it, over the connection
 * that a check uses. So when a check that was sent at T is answered, no lease goes to others before
 * T + 2/3 of 30 s. We use none after T + LEASE_MS, and have the rest for dropping the kernel's
 * pages.
 */
#include "cache/origin/aside.h"
#include "cache/origin/reconnect/internal.h"
#include <string.h>
#include "common/monotonic.h"

#define CHECK_MS 3000
#define LEASE_MS 12000
/* A new lease should not end at once. */
#define NEW_LEASE_MS (LEASE_MS / 2)
/* A check without an answer for this long may belong to a session that Ceph has ended silently. It
 * does, if a new client is answered while the check is still not, for SUSPECT_MS longer. */
#define HANG_MS 30000
#define SUSPECT_MS 5000
/* After so long without an answer monitors are asked. */
#define ASK_MONITORS_MS 5000
#define TICK_MS 1000
#define IDLE_TICK_MS 10000
#define RETRY_MS 1000
/* How long a call waits for the next connection. */
#define WAIT_MS 30000
/* How long a close waits for calls that are still running. */
#define CLOSE_WAIT_MS 5000
#define CLOSE_LOOK_MS 20

int64_t boottime_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static Connection *connection_add(Reconnect *o, Origin *inner)
{
    Connection *c = g_new0(Connection, 1);
    c->inner = inner;
    c->number = atomic_load(&o->number);
    g_ptr_array_add(o->connections, c);
    return c;
}

/* Without the lock, which all calls of a mount would share. A use is counted before `lost` is
 * looked at, and the keeper looks at the uses of what was lost before: one of the two sees the
 * other. */
static gboolean use_unless_lost(Reconnect *o, Connection *c)
{
    atomic_fetch_add(&c->uses, 1);
    if (!atomic_load(&c->lost))
        return TRUE;
    connection_done(o, c, 0);
    return FALSE;
}

Connection *connection_use(Reconnect *o, gboolean wait)
{
    Connection *c = atomic_load(&o->current);
    if (c && use_unless_lost(o, c))
        return c;
    const struct timespec until = deadline_after_ms(WAIT_MS);
    int r = 0;
    pthread_mutex_lock(&o->lock);
    while (!o->current && wait && !o->stopping && r != ETIMEDOUT)
        r = pthread_cond_timedwait(&o->changed, &o->lock, &until);
    c = o->current;
    if (c)
        atomic_fetch_add(&c->uses, 1);
    pthread_mutex_unlock(&o->lock);
    return c;
}

gboolean connection_use_this(Reconnect *o, Connection *c)
{
    if (use_unless_lost(o, c))
        return TRUE;
    pthread_mutex_lock(&o->lock);
    while (c->ending && !c->ended)
        pthread_cond_wait(&o->changed, &o->lock);
    gboolean usable = !c->ended;
    if (usable)
        atomic_fetch_add(&c->uses, 1);
    pthread_mutex_unlock(&o->lock);
    return usable;
}

/* ---- silence ---- */

static void asked(Reconnect *o, int64_t now)
{
    int64_t answered = 0;
    atomic_compare_exchange_strong(&o->unanswered_ms, &answered, now);
}

void connection_heard_data(Reconnect *o)
{
    atomic_store(&o->data_ms, boottime_ms());
}

/* Ceph has answered what was sent then. */
static void heard_locked(Reconnect *o, int64_t sent)
{
    atomic_store(&o->heard_ms, sent);
    atomic_store(&o->unanswered_ms, 0);
}

static void lose_locked(Reconnect *o, Connection *c)
{
    if (c->lost)
        return;
    c->lost_ms = boottime_ms();
    atomic_store(&c->lost, TRUE);
    atomic_store(&o->heard_ms, 0);
    asked(o, c->lost_ms);
    atomic_fetch_add(&o->number, 1);
    o->current = NULL;
    pthread_cond_broadcast(&o->changed);
    g_message("the session with Ceph is lost; fsync and close of files with unsynced writes answer "
              "EIO; connecting again");
}

void connection_done(Reconnect *o, Connection *c, int64_t r)
{
    /* A waiter for the last use is not woken here; it checks again soon. */
    if (!is_loss(r) && !atomic_load(&c->lost) && !atomic_load(&o->stopping)) {
        atomic_fetch_sub(&c->uses, 1); /* last: the origin may be gone then */
        return;
    }
    pthread_mutex_lock(&o->lock);
    if (is_loss(r))
        lose_locked(o, c);
    if (atomic_fetch_sub(&c->uses, 1) == 1)
        pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
}

void connection_count_lease(Reconnect *o, int change)
{
    if (change < 0) {
        atomic_fetch_sub(&o->leases, 1);
        return;
    }
    atomic_fetch_add(&o->leases, 1);
    if (!atomic_load(&o->leased))
        atomic_store(&o->leased, TRUE);
    if (!atomic_load(&o->dozes) || !atomic_exchange(&o->dozes, FALSE))
        return;
    pthread_mutex_lock(&o->lock);
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
}

gboolean connection_was_just_heard(Reconnect *o)
{
    return boottime_ms() - atomic_load(&o->heard_ms) < NEW_LEASE_MS;
}

uint64_t reconnect_session(Origin *base)
{
    return atomic_load(&((Reconnect *)base)->number);
}

gboolean reconnect_vouches(Origin *base)
{
    return boottime_ms() - atomic_load(&((Reconnect *)base)->heard_ms) < LEASE_MS;
}

/* ---- checks ---- */

static void check_once_locked(Reconnect *o, Connection *c)
{
    const uint64_t number = ++c->begun;
    const int64_t sent = c->asked_ms = boottime_ms();
    asked(o, sent);
    pthread_mutex_unlock(&o->lock);
    int r = o->ops->check(c->inner);
    pthread_mutex_lock(&o->lock);
    c->asked_ms = 0;
    if (r == 0)
        c->answered = number;
    else
        c->failed = number;
    if (r == -EIO || is_loss(r))
        lose_locked(o, c);
    else if (r == 0 && !c->lost)
        heard_locked(o, sent);
    pthread_cond_broadcast(&o->changed);
}

typedef struct Checker {
    Reconnect *o;
    Connection *c;
} Checker;

static void *checker_thread(void *data)
{
    Checker checker = *(Checker *)data;
    Reconnect *o = checker.o;
    Connection *c = checker.c;
    g_free(data);
    pthread_mutex_lock(&o->lock);
    while (!c->lost && c->begun < c->wanted)
        check_once_locked(o, c);
    c->checking = FALSE;
    pthread_mutex_unlock(&o->lock);
    /* Last: the origin may be gone then. */
    connection_done(o, c, 0);
    return NULL;
}

/* Has a check begin, and gives its number. It uses the connection while it runs. */
static uint64_t want_check_locked(Reconnect *o, Connection *c)
{
    c->wanted = c->begun + 1;
    if (c->checking)
        return c->wanted;
    Checker *checker = g_new0(Checker, 1);
    *checker = (Checker){o, c};
    pthread_t thread;
    c->checking = TRUE;
    atomic_fetch_add(&c->uses, 1);
    if (pthread_create(&thread, NULL, checker_thread, checker) == 0) {
        pthread_detach(thread);
        return c->wanted;
    }
    c->failed = ++c->begun;
    c->checking = FALSE;
    atomic_fetch_sub(&c->uses, 1);
    g_free(checker);
    return c->wanted;
}

int connection_check(Reconnect *o, Connection *c)
{
    pthread_mutex_lock(&o->lock);
    const uint64_t number = c->lost ? 0 : want_check_locked(o, c);
    while (!c->lost && c->answered < number && c->failed < number)
        pthread_cond_wait(&o->changed, &o->lock);
    gboolean good = !c->lost && c->answered >= number;
    pthread_mutex_unlock(&o->lock);
    return good ? 0 : -EIO;
}

/* A call that hangs says nothing: Ceph may be well but for one placement group. A file's bytes may
 * come although the MDS does not answer, and a monitor may answer while another MDS takes over. */
uint64_t reconnect_silent_ms(Origin *base)
{
    Reconnect *o = (Reconnect *)base;
    const int64_t now = boottime_ms();
    if (now - atomic_load(&o->heard_ms) >= CHECK_MS) {
        pthread_mutex_lock(&o->lock);
        Connection *c = o->current;
        if (c && !c->checking)
            want_check_locked(o, c);
        pthread_mutex_unlock(&o->lock);
    }
    const int64_t unanswered = atomic_load(&o->unanswered_ms), data = atomic_load(&o->data_ms);
    const uint64_t silent = unanswered ? (uint64_t)MAX(now - MAX(unanswered, data), 0) : 0;
    if (silent < ASK_MONITORS_MS || !o->ops->monitors_silent_ms)
        return silent;
    const uint64_t monitors = o->ops->monitors_silent_ms(o->data);
    return MIN(silent, monitors);
}

/* ---- the keeper ---- */

static void leases_are_void(Reconnect *o)
{
    pthread_mutex_lock(&o->listener_mutex);
    if (o->listener.leases_void)
        o->listener.leases_void(o->listener.data);
    pthread_mutex_unlock(&o->listener_mutex);
}

void connection_put_at_end(Reconnect *o, Connection *c, OriginNode *inner)
{
    pthread_mutex_lock(&o->left_mutex);
    if (!c->left)
        c->left = g_ptr_array_new();
    g_ptr_array_add(c->left, inner);
    pthread_mutex_unlock(&o->left_mutex);
}

static void put_left(Connection *c)
{
    for (guint i = 0; c->left && i < c->left->len; i++)
        c->inner->ops->put(c->inner, g_ptr_array_index(c->left, i));
    g_clear_pointer(&c->left, g_ptr_array_unref);
}

static void connection_free(gpointer data)
{
    Connection *c = data;
    put_left(c);
    origin_close(c->inner);
    g_free(c);
}

/* Ends what is lost, not used any more, and quiet. FALSE: something is not so yet. */
static gboolean end_lost_locked(Reconnect *o)
{
    gboolean all = TRUE;
    for (guint i = 0; i < o->connections->len; i++) {
        Connection *c = g_ptr_array_index(o->connections, i);
        if (!c->lost || c->ending)
            continue;
        if (c->uses || boottime_ms() - c->lost_ms < o->ops->quiet_ms) {
            all = FALSE;
            continue;
        }
        c->ending = TRUE;
        pthread_mutex_unlock(&o->lock);
        o->ops->abandon(c->inner);
        pthread_mutex_lock(&o->lock);
        c->ended = TRUE;
        pthread_cond_broadcast(&o->changed);
    }
    return all;
}

static void connect_locked(Reconnect *o)
{
    g_autoptr(GError) error = NULL;
    pthread_mutex_unlock(&o->lock);
    leases_are_void(o);
    int64_t sent = boottime_ms();
    Origin *inner = o->ops->connect(o->data, &error);
    if (inner) {
        pthread_mutex_lock(&o->listener_mutex);
        if (inner->ops->listen)
            inner->ops->listen(inner, &o->listener);
    }
    pthread_mutex_lock(&o->lock);
    if (inner) {
        o->current = connection_add(o, inner);
        heard_locked(o, sent);
        pthread_cond_broadcast(&o->changed);
        /* Not before: removing the listener goes through the connections. */
        pthread_mutex_unlock(&o->listener_mutex);
        g_message("connected to Ceph again");
        return;
    }
    g_message("not connected to Ceph again yet: %s", error->message);
    const struct timespec next = deadline_after_ms(RETRY_MS);
    int r = 0;
    while (!o->stopping && r != ETIMEDOUT)
        r = pthread_cond_timedwait(&o->changed, &o->lock, &next);
}

/* With blocklisting switched off, a client whose session was ended may never hear of it: the
 * library then waits for ever. */
static void suspect_locked(Reconnect *o, Connection *c)
{
    const int64_t asked = c->asked_ms;
    gboolean end = c->suspect_ms && boottime_ms() - c->suspect_ms >= SUSPECT_MS;
    pthread_mutex_unlock(&o->lock);
    gboolean yes = end ? o->ops->fence(o->data) : o->ops->answers(o->data);
    pthread_mutex_lock(&o->lock);
    if (c->asked_ms != asked || !yes)
        c->suspect_ms = 0;
    else if (end)
        lose_locked(o, c);
    else if (!c->suspect_ms)
        c->suspect_ms = boottime_ms();
}

/* Until something changes, or it is time to look again. */
static void tick_locked(Reconnect *o, gboolean idle)
{
    const struct timespec next = deadline_after_ms(idle ? IDLE_TICK_MS : TICK_MS);
    if (!o->stopping)
        pthread_cond_timedwait(&o->changed, &o->lock, &next);
}

static gboolean is_used_locked(const Reconnect *o)
{
    const Connection *c = o->current;
    return c && c->uses;
}

/* A lease that begins from here on is seen, or wakes the lease keeper. Most leases are short: if
 * each woke the keeper, that would be the largest cost of opening a file. */
static gboolean may_doze_locked(Reconnect *o)
{
    atomic_store(&o->dozes, TRUE);
    const gboolean leased = atomic_exchange(&o->leased, FALSE) || atomic_load(&o->leases);
    if (!leased && !is_used_locked(o))
        return TRUE;
    atomic_store(&o->dozes, FALSE);
    return FALSE;
}

/* Leases are void in time whatever hangs in Ceph: this thread asks it for nothing. */
static void *lease_keeper(void *data)
{
    Reconnect *o = data;
    gboolean dropped = FALSE; /* leases, since Ceph was heard from */
    pthread_mutex_lock(&o->lock);
    while (!o->stopping) {
        Connection *c = o->current;
        const int64_t now = boottime_ms(), heard = atomic_load(&o->heard_ms);
        const gboolean silent = now - heard >= LEASE_MS;
        if (c && !c->checking && now - heard >= CHECK_MS && (c->uses || atomic_load(&o->leases)))
            want_check_locked(o, c);
        if (silent && !dropped && atomic_load(&o->leases)) {
            pthread_mutex_unlock(&o->lock);
            leases_are_void(o);
            pthread_mutex_lock(&o->lock);
            dropped = TRUE;
        }
        dropped = dropped && silent;
        tick_locked(o, may_doze_locked(o));
    }
    pthread_mutex_unlock(&o->lock);
    return NULL;
}

static void *keeper(void *data)
{
    Reconnect *o = data;
    pthread_mutex_lock(&o->lock);
    while (!o->stopping) {
        const gboolean all_ended = end_lost_locked(o);
        Connection *c = o->current;
        if (!c) {
            connect_locked(o);
            continue;
        }
        if (c->asked_ms && boottime_ms() - c->asked_ms >= HANG_MS)
            suspect_locked(o, c);
        if (o->current)
            tick_locked(o, all_ended && !is_used_locked(o));
    }
    o->keeper_ended = TRUE;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
    return NULL;
}

/* ---- the origin ---- */

void reconnect_listen(Origin *base, const OriginListener *listener)
{
    Reconnect *o = (Reconnect *)base;
    pthread_mutex_lock(&o->listener_mutex);
    o->listener = listener ? *listener : (OriginListener){0};
    pthread_mutex_unlock(&o->listener_mutex);
    /* The keeper gives those that come later the new one. */
    for (guint i = 0;; i++) {
        pthread_mutex_lock(&o->lock);
        Connection *c = i < o->connections->len ? g_ptr_array_index(o->connections, i) : NULL;
        pthread_mutex_unlock(&o->lock);
        if (!c)
            return;
        if (connection_use_this(o, c)) {
            if (c->inner->ops->listen)
                c->inner->ops->listen(c->inner, listener);
            connection_done(o, c, 0);
        }
    }
}

void reconnect_reach(Origin *base, const char *monitors, const char *key, unsigned timeout_sec)
{
    const Reconnect *o = (Reconnect *)base;
    if (o->ops->reach)
        o->ops->reach(o->data, monitors, key, timeout_sec);
}

Origin *reconnect_begin(const OriginOps *origin_ops, Origin *first, const ReconnectOps *ops,
                        void *data)
{
    Reconnect *o = g_new0(Reconnect, 1);
    o->base.ops = origin_ops;
    memcpy(o->base.space, first->space, sizeof(o->base.space));
    o->ops = ops;
    o->data = data;
    pthread_mutex_init(&o->lock, NULL);
    pthread_mutex_init(&o->listener_mutex, NULL);
    pthread_mutex_init(&o->left_mutex, NULL);
    cond_init_monotonic(&o->changed);
    o->connections = g_ptr_array_new_with_free_func(connection_free);
    atomic_store(&o->number, 1);
    o->current = connection_add(o, first);
    pthread_create(&o->keeper, NULL, keeper, o);
    pthread_create(&o->lease_keeper, NULL, lease_keeper, o);
    return &o->base;
}

static gboolean any_used_locked(const Reconnect *o)
{
    unsigned uses = 0;
    for (guint i = 0; i < o->connections->len; i++)
        uses += ((Connection *)g_ptr_array_index(o->connections, i))->uses;
    return uses > 0;
}

/* FALSE: the keeper, or a call, hangs in Ceph. */
static gboolean await_idle(Reconnect *o, int64_t until_ms)
{
    gboolean idle;
    pthread_mutex_lock(&o->lock);
    while (!(idle = o->keeper_ended && !any_used_locked(o)) && monotonic_ms() < until_ms) {
        const struct timespec next = deadline_after_ms(CLOSE_LOOK_MS);
        pthread_cond_timedwait(&o->changed, &o->lock, &next);
    }
    pthread_mutex_unlock(&o->lock);
    return idle;
}

static void end_all(Reconnect *o)
{
    pthread_join(o->keeper, NULL);
    pthread_mutex_lock(&o->lock);
    while (!end_lost_locked(o)) {
        const struct timespec next = deadline_after_ms(TICK_MS);
        pthread_cond_timedwait(&o->changed, &o->lock, &next);
    }
    pthread_mutex_unlock(&o->lock);
    g_ptr_array_unref(o->connections);
    o->ops->free_data(o->data);
    pthread_cond_destroy(&o->changed);
    pthread_mutex_destroy(&o->left_mutex);
    pthread_mutex_destroy(&o->listener_mutex);
    pthread_mutex_destroy(&o->lock);
    g_free(o);
}

static void finish_late(void *data)
{
    await_idle(data, INT64_MAX);
    end_all(data);
}

void reconnect_destroy(Origin *base)
{
    Reconnect *o = (Reconnect *)base;
    pthread_mutex_lock(&o->lock);
    o->stopping = TRUE;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
    pthread_join(o->lease_keeper, NULL);
    if (await_idle(o, monotonic_ms() + CLOSE_WAIT_MS)) {
        end_all(o);
        return;
    }
    g_message("a call to Ceph has not returned: its connection ends when it does");
    aside_begin(finish_late, o);
}
