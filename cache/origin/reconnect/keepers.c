/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two threads of an origin that is not at rest. The lease keeper starts checks and makes leases
 * void in time, and never waits for Ceph; the keeper connects again, and ends what is over.
 */
#include <gio/gio.h>
#include "common/monotonic.h"
#include "cache/origin/reconnect/internal.h"

/* A check without an answer for this long may belong to a session that Ceph has ended silently. It
 * does, if a new client is answered while the check is still not, for SUSPECT_MS longer. */
#define HANG_MS 30000
#define SUSPECT_MS 5000
#define TICK_MS 1000
#define IDLE_TICK_MS 2000
#define LEASES_IDLE_TICK_MS 10000
#define RETRY_MS 1000
#define END_CALLS_AGAIN_MS 30000
/* How often the log is told that there is no connection yet. */
#define TELL_MS 30000

static void leases_are_void(Reconnect *o)
{
    pthread_mutex_lock(&o->listener_mutex);
    if (o->listener.leases_void)
        o->listener.leases_void(o->listener.data);
    pthread_mutex_unlock(&o->listener_mutex);
}

static gboolean can_end_locked(const Reconnect *o, const Connection *c)
{
    return !c->uses && (c->rests || boottime_ms() - c->lost_ms >= o->ops->quiet_ms);
}

/* They would wait for ever for a session that Ceph has ended without a word, and that connection
 * could not end. */
static void end_calls_locked(Reconnect *o, Connection *c)
{
    if (c->rests || !c->uses || !c->end_calls_ms || boottime_ms() < c->end_calls_ms ||
        !o->ops->end_calls)
        return;
    pthread_mutex_unlock(&o->lock);
    const gboolean done = o->ops->end_calls(o->data, c->inner);
    pthread_mutex_lock(&o->lock);
    c->end_calls_ms = done ? 0 : boottime_ms() + END_CALLS_AGAIN_MS;
}

gboolean keepers_end_over_locked(Reconnect *o)
{
    gboolean all = TRUE;
    for (guint i = 0; i < o->connections->len; i++) {
        Connection *c = g_ptr_array_index(o->connections, i);
        if (!c->over || c->ending)
            continue;
        if (!can_end_locked(o, c)) {
            end_calls_locked(o, c);
            all = FALSE;
            continue;
        }
        const gboolean rests = c->rests;
        c->ending = TRUE;
        pthread_mutex_unlock(&o->lock);
        if (rests)
            rest_end(o, c);
        else
            o->ops->abandon(c->inner);
        pthread_mutex_lock(&o->lock);
        c->ended = TRUE;
        connection_close_left_locked(o, c);
        pthread_cond_broadcast(&o->changed);
    }
    return all;
}

/* Waiting for Ceph does not help. Without room for threads a call waits as if Ceph were away. */
static gboolean is_refusal(const GError *error)
{
    return g_error_matches(error, G_IO_ERROR, G_IO_ERROR_NO_SPACE) ||
           g_error_matches(error, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED) ||
           g_error_matches(error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND);
}

static void tell_locked(Reconnect *o, const GError *error)
{
    const int64_t now = boottime_ms();
    if (o->told_ms && now - o->told_ms < TELL_MS)
        return;
    o->told_ms = now;
    g_message("not connected to Ceph again yet: %s", error->message);
}

static void connect_locked(Reconnect *o)
{
    g_autoptr(GError) error = NULL;
    const gboolean after_loss = o->after_loss;
    pthread_mutex_unlock(&o->lock);
    leases_are_void(o);
    int64_t sent = boottime_ms();
    Origin *inner = o->ops->connect(o->data, after_loss, &error);
    if (inner) {
        pthread_mutex_lock(&o->listener_mutex);
        if (inner->ops->listen)
            inner->ops->listen(inner, &o->listener);
    }
    pthread_mutex_lock(&o->lock);
    o->refused = is_refusal(error);
    if (inner) {
        o->told_ms = 0;
        connection_add_locked(o, inner);
        checks_heard_locked(o, sent);
        /* Not before: removing the listener goes through the connections. */
        pthread_mutex_unlock(&o->listener_mutex);
        if (after_loss)
            g_message("connected to Ceph again");
        return;
    }
    tell_locked(o, error);
    if (!after_loss && !o->waiters) {
        rest_until_used_locked(o);
        return;
    }
    const struct timespec next = deadline_after_ms(RETRY_MS);
    int r = 0;
    while (!o->stopping && r != ETIMEDOUT)
        r = pthread_cond_timedwait(&o->changed, &o->lock, &next);
}

static void lose_silently_ended_locked(Reconnect *o, Connection *c)
{
    if (c->over)
        return;
    connection_lose_locked(o, c);
    c->end_calls_ms = c->lost_ms; /* they do not return by themselves */
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
        lose_silently_ended_locked(o, c);
    else if (!c->suspect_ms)
        c->suspect_ms = boottime_ms();
}

/* Until something changes, or it is time to look again. */
static void tick_locked(Reconnect *o, unsigned ms)
{
    const struct timespec next = deadline_after_ms(ms);
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

/* What begins to rest is asked there. */
static gboolean wants_check_locked(const Reconnect *o, const Connection *c, int64_t now)
{
    return !c->checking && now - atomic_load(&o->heard_ms) >= RECONNECT_CHECK_MS &&
           (c->uses > (o->rest_begins ? 1 : 0) || atomic_load(&o->leases));
}

/* Leases are void in time whatever hangs in Ceph: this thread asks it for nothing. */
static void *lease_keeper(void *data)
{
    Reconnect *o = data;
    gboolean dropped = FALSE; /* leases, since Ceph was heard from */
    pthread_mutex_lock(&o->lock);
    while (!o->stopping && !o->resting) {
        Connection *c = o->current;
        const int64_t now = boottime_ms();
        const gboolean silent = now - atomic_load(&o->heard_ms) >= RECONNECT_LEASE_MS;
        if (c && wants_check_locked(o, c, now))
            checks_want_locked(o, c);
        if (silent && !dropped && atomic_load(&o->leases)) {
            pthread_mutex_unlock(&o->lock);
            leases_are_void(o);
            pthread_mutex_lock(&o->lock);
            dropped = TRUE;
        }
        dropped = dropped && silent;
        tick_locked(o, may_doze_locked(o) ? LEASES_IDLE_TICK_MS : TICK_MS);
    }
    o->lease_keeper_runs = FALSE;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
    return NULL;
}

/* FALSE: there is nothing to do until the origin is used again. */
static gboolean keep_locked(Reconnect *o)
{
    const gboolean all_ended = keepers_end_over_locked(o);
    Connection *c = o->current;
    if (!c && o->resting && all_ended)
        return FALSE;
    if (!c && !o->resting) {
        connect_locked(o);
        return TRUE;
    }
    if (c && c->asked_ms && boottime_ms() - c->asked_ms >= HANG_MS)
        suspect_locked(o, c);
    if (o->current == c && c)
        rest_look_locked(o, c);
    if (o->current == c)
        tick_locked(o, all_ended && !is_used_locked(o) ? IDLE_TICK_MS : TICK_MS);
    return TRUE;
}

/* The origin is being closed: calls that still wait for Ceph have to return first. FALSE: none
 * does. */
static gboolean finish_locked(Reconnect *o)
{
    Connection *c = o->current;
    keepers_end_over_locked(o);
    if (!connection_any_used_locked(o))
        return FALSE;
    if (c && wants_check_locked(o, c, boottime_ms()))
        checks_want_locked(o, c);
    if (c && c->asked_ms && boottime_ms() - c->asked_ms >= HANG_MS)
        suspect_locked(o, c);
    const struct timespec next = deadline_after_ms(TICK_MS);
    if (connection_any_used_locked(o))
        pthread_cond_timedwait(&o->changed, &o->lock, &next);
    return TRUE;
}

static void *keeper(void *data)
{
    Reconnect *o = data;
    pthread_mutex_lock(&o->lock);
    while (o->stopping ? finish_locked(o) : keep_locked(o))
        ;
    o->keeper_runs = FALSE;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
    return NULL;
}

static gboolean start(void *(*run)(void *), Reconnect *o)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, o) != 0)
        return FALSE;
    pthread_detach(thread);
    return TRUE;
}

gboolean keepers_start_locked(Reconnect *o)
{
    o->keeper_runs = o->keeper_runs || start(keeper, o);
    o->lease_keeper_runs = o->lease_keeper_runs || (o->keeper_runs && start(lease_keeper, o));
    return o->keeper_runs && o->lease_keeper_runs;
}
