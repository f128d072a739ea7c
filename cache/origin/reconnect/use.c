/* SPDX-License-Identifier: Apache-2.0 */
/* A call gets the current connection, or waits for the next one. */
#include "common/monotonic.h"
#include "cache/origin/reconnect/internal.h"

/* How long a call waits for the next connection, and then while a monitor answers. */
#define WAIT_MS 30000
#define WAIT_MORE_MS 5000

/* A monitor answers, so an MDS may take over soon. */
static gboolean may_come_locked(Reconnect *o)
{
    if (o->refused || !o->ops->monitors_silent_ms)
        return FALSE;
    pthread_mutex_unlock(&o->lock);
    const uint64_t ms = o->ops->monitors_silent_ms(o->data);
    pthread_mutex_lock(&o->lock);
    return ms < WAIT_MS;
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
    struct timespec until = deadline_after_ms(WAIT_MS);
    pthread_mutex_lock(&o->lock);
    while (wait && !o->current && !o->stopping && wake_locked(o)) {
        if (pthread_cond_timedwait(&o->changed, &o->lock, &until) != ETIMEDOUT)
            continue;
        if (!may_come_locked(o))
            break;
        until = deadline_after_ms(WAIT_MORE_MS);
    }
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
