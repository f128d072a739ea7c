/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether Ceph answers on a connection. A check may hang for as long as Ceph does, so each runs on
 * a thread of its own, and there is one at a time.
 *
 * Times. An MDS calls a client stale that has not renewed its session for session_timeout, which is
 * 30 s at least (MDSMonitor refuses less). libcephfs renews every third of it, over the connection
 * that a check uses. So when a check that was sent at T is answered, no lease goes to others before
 * T + 2/3 of 30 s. We use none after T + RECONNECT_LEASE_MS, and have the rest for dropping the
 * kernel's pages.
 */
#include "cache/origin/reconnect/internal.h"

/* A new lease should not end at once. */
#define NEW_LEASE_MS (RECONNECT_LEASE_MS / 2)
/* After so long without an answer monitors are asked. */
#define ASK_MONITORS_MS 5000

void checks_heard_data(Reconnect *o)
{
    atomic_store(&o->data_ms, boottime_ms());
}

void checks_heard_locked(Reconnect *o, int64_t sent)
{
    atomic_store(&o->heard_ms, sent);
    atomic_store(&o->unanswered_ms, 0);
}

gboolean checks_just_heard(Reconnect *o)
{
    return boottime_ms() - atomic_load(&o->heard_ms) < NEW_LEASE_MS;
}

gboolean reconnect_vouches(Origin *base)
{
    return boottime_ms() - atomic_load(&((Reconnect *)base)->heard_ms) < RECONNECT_LEASE_MS;
}

static void check_once_locked(Reconnect *o, Connection *c)
{
    const uint64_t number = ++c->begun;
    const int64_t sent = c->asked_ms = boottime_ms();
    connection_asked(o, sent);
    pthread_mutex_unlock(&o->lock);
    int r = o->ops->check(c->inner);
    pthread_mutex_lock(&o->lock);
    c->asked_ms = 0;
    if (r == 0)
        c->answered = number;
    else
        c->failed = number;
    if (r == -EIO || is_loss(r))
        connection_lose_locked(o, c);
    else if (r == 0 && !c->over)
        checks_heard_locked(o, sent);
    pthread_cond_broadcast(&o->changed);
}

static void check_wanted_locked(Reconnect *o, Connection *c)
{
    while (!c->over && c->begun < c->wanted)
        check_once_locked(o, c);
    c->checking = FALSE;
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
    check_wanted_locked(o, c);
    pthread_mutex_unlock(&o->lock);
    /* Last: the origin may be gone then. */
    connection_done(o, c, 0);
    return NULL;
}

/* Of which one is wanted. FALSE: no thread can be made. */
static gboolean begin_locked(Reconnect *o, Connection *c)
{
    Checker *checker = g_new0(Checker, 1);
    *checker = (Checker){o, c};
    pthread_t thread;
    c->checking = TRUE;
    atomic_fetch_add(&c->uses, 1);
    if (pthread_create(&thread, NULL, checker_thread, checker) == 0) {
        pthread_detach(thread);
        return TRUE;
    }
    c->checking = FALSE;
    atomic_fetch_sub(&c->uses, 1);
    g_free(checker);
    return FALSE;
}

uint64_t checks_want_locked(Reconnect *o, Connection *c)
{
    c->wanted = c->begun + 1;
    if (!c->checking && !begin_locked(o, c))
        c->failed = ++c->begun;
    return c->wanted;
}

/* The same; without a thread the caller asks, which uses the connection. */
static uint64_t want_certainly_locked(Reconnect *o, Connection *c)
{
    const uint64_t wanted = c->wanted = c->begun + 1;
    if (c->checking || begin_locked(o, c))
        return wanted;
    c->checking = TRUE;
    check_wanted_locked(o, c);
    return wanted;
}

int checks_ask(Reconnect *o, Connection *c)
{
    pthread_mutex_lock(&o->lock);
    const uint64_t number = c->over ? 0 : want_certainly_locked(o, c);
    while (!c->over && c->answered < number && c->failed < number)
        pthread_cond_wait(&o->changed, &o->lock);
    gboolean good = !c->over && c->answered >= number;
    pthread_mutex_unlock(&o->lock);
    return good ? 0 : -EIO;
}

/* A call that hangs says nothing: Ceph may be well but for one placement group. A file's bytes may
 * come although the MDS does not answer, and a monitor may answer while another MDS takes over. */
uint64_t reconnect_silent_ms(Origin *base)
{
    Reconnect *o = (Reconnect *)base;
    const int64_t now = boottime_ms();
    if (now - atomic_load(&o->heard_ms) >= RECONNECT_CHECK_MS) {
        pthread_mutex_lock(&o->lock);
        Connection *c = o->current;
        if (c && !c->checking)
            checks_want_locked(o, c);
        pthread_mutex_unlock(&o->lock);
    }
    const int64_t unanswered = atomic_load(&o->unanswered_ms), data = atomic_load(&o->data_ms);
    const uint64_t silent = unanswered ? (uint64_t)MAX(now - MAX(unanswered, data), 0) : 0;
    if (silent < ASK_MONITORS_MS || !o->ops->monitors_silent_ms)
        return silent;
    const uint64_t monitors = o->ops->monitors_silent_ms(o->data);
    return MIN(silent, monitors);
}
