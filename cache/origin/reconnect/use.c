/* SPDX-License-Identifier: Apache-2.0 */
/* A call gets the current connection, or waits for the next one. */
#include "common/monotonic.h"
#include "cache/origin/reconnect/internal.h"

/* In how many steps a call waits. At each a monitor is asked. */
#define STEPS 6

/* An MDS may take over soon then. */
static gboolean monitor_answers_locked(Reconnect *o)
{
    if (o->refused || !o->ops->monitors_silent_ms)
        return FALSE;
    pthread_mutex_unlock(&o->lock);
    const uint64_t ms = o->ops->monitors_silent_ms(o->data);
    pthread_mutex_lock(&o->lock);
    return ms < (uint64_t)o->ops->wait_ms;
}

/* FALSE: a thread could not be made. */
static gboolean wake_locked(Reconnect *o)
{
    if (!o->resting)
        return TRUE;
    if (!keepers_start_locked(o))
        return FALSE;
    connection_asked(o, boottime_ms());
    atomic_store(&o->resting, FALSE);
    pthread_cond_broadcast(&o->changed);
    return TRUE;
}

static Connection *await_connection(Reconnect *o, gboolean wait)
{
    const int64_t until_ms = monotonic_ms() + o->ops->wait_ms;
    pthread_mutex_lock(&o->lock);
    o->waiters++;
    while (wait && !o->current && !o->stopping && wake_locked(o)) {
        const struct timespec step = deadline_after_ms((uint64_t)o->ops->wait_ms / STEPS);
        if (pthread_cond_timedwait(&o->changed, &o->lock, &step) == ETIMEDOUT &&
            !monitor_answers_locked(o) && monotonic_ms() >= until_ms)
            break;
    }
    o->waiters--;
    Connection *c = o->current;
    if (c)
        atomic_fetch_add(&c->uses, 1);
    pthread_mutex_unlock(&o->lock);
    return c;
}

Connection *connection_use(Reconnect *o, gboolean wait)
{
    Connection *c = atomic_load(&o->current);
    if (!c || !connection_try_use(o, c))
        c = await_connection(o, wait);
    if (c && !atomic_load(&o->touched))
        atomic_store(&o->touched, TRUE);
    return c;
}
