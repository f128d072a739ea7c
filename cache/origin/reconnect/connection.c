/* SPDX-License-Identifier: Apache-2.0 */
/* Which connection is current, and which calls use it. */
#include <time.h>
#include "cache/origin/reconnect/internal.h"

/* How long calls of a lost connection have to return by themselves. */
#define END_CALLS_MS 1000

static _Atomic int connections;

unsigned reconnect_connections(void)
{
    return (unsigned)MAX(atomic_load(&connections), 0);
}

void connection_count(int change)
{
    atomic_fetch_add(&connections, change);
}

int64_t boottime_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void connection_asked(Reconnect *o, int64_t now)
{
    int64_t answered = 0;
    atomic_compare_exchange_strong(&o->unanswered_ms, &answered, now);
}

static Connection *struct_locked(Reconnect *o)
{
    for (guint i = 0; i < o->connections->len; i++) {
        Connection *c = g_ptr_array_index(o->connections, i);
        if (c->rests && c->ended)
            return c;
    }
    Connection *c = g_new0(Connection, 1);
    atomic_store(&c->over, TRUE);
    g_ptr_array_add(o->connections, c);
    return c;
}

void connection_add_locked(Reconnect *o, Origin *inner)
{
    Connection *c = struct_locked(o);
    pthread_mutex_lock(&o->left_mutex);
    c->number = ++o->numbers;
    g_clear_pointer(&c->left, g_ptr_array_unref); /* of nodes that are freed */
    pthread_mutex_unlock(&o->left_mutex);
    c->inner = inner;
    c->rests = c->ending = c->ended = FALSE;
    c->wanted = c->begun = c->answered = c->failed = 0;
    c->asked_ms = c->suspect_ms = 0;
    atomic_store(&c->over, FALSE);
    o->idle_ms = boottime_ms();
    connection_count(1);
    atomic_store(&o->current, c);
    pthread_cond_broadcast(&o->changed);
}

/* Without the lock, which all calls of a mount would share. A use is counted before `over` is
 * looked at, and uses are looked at after it was set: one of the two sees the other. */
gboolean connection_try_use(Reconnect *o, Connection *c)
{
    atomic_fetch_add(&c->uses, 1);
    if (!atomic_load(&c->over))
        return TRUE;
    connection_done(o, c, 0);
    return FALSE;
}

static ConnectionUse use_over(Reconnect *o, Connection *c, uint64_t number)
{
    ConnectionUse use = CONNECTION_USED;
    pthread_mutex_lock(&o->lock);
    while (c->number == number && c->ending && !c->ended)
        pthread_cond_wait(&o->changed, &o->lock);
    if (c->number != number || (c->ended && c->rests))
        use = CONNECTION_GONE;
    else if (c->ended)
        use = CONNECTION_ENDED;
    else
        atomic_fetch_add(&c->uses, 1);
    pthread_mutex_unlock(&o->lock);
    return use;
}

ConnectionUse connection_use_this(Reconnect *o, Connection *c, uint64_t number)
{
    if (!connection_try_use(o, c))
        return use_over(o, c, number);
    if (c->number == number)
        return CONNECTION_USED;
    connection_done(o, c, 0);
    return CONNECTION_GONE;
}

gboolean connection_any_used_locked(const Reconnect *o)
{
    unsigned uses = 0;
    for (guint i = 0; i < o->connections->len; i++)
        uses += ((Connection *)g_ptr_array_index(o->connections, i))->uses;
    return uses > 0;
}

void connection_lose_locked(Reconnect *o, Connection *c)
{
    if (c->over)
        return;
    c->lost_ms = boottime_ms();
    c->end_calls_ms = c->lost_ms + END_CALLS_MS;
    atomic_store(&c->over, TRUE);
    atomic_store(&o->heard_ms, 0);
    connection_asked(o, c->lost_ms);
    atomic_fetch_add(&o->session, 1);
    o->current = NULL;
    o->after_loss = TRUE;
    connection_count(-1);
    pthread_cond_broadcast(&o->changed);
    g_message("the session with Ceph is lost; fsync and close of files with unsynced writes answer "
              "EIO; connecting again");
}

void connection_done(Reconnect *o, Connection *c, int64_t r)
{
    /* A waiter for the last use is not woken here; it checks again soon. */
    if (!is_loss(r) && !atomic_load(&c->over) && !atomic_load(&o->stopping)) {
        atomic_fetch_sub(&c->uses, 1); /* last: the origin may be gone then */
        return;
    }
    pthread_mutex_lock(&o->lock);
    if (is_loss(r))
        connection_lose_locked(o, c);
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

void connection_put_at_end(Reconnect *o, Connection *c, uint64_t number, OriginNode *inner)
{
    pthread_mutex_lock(&o->left_mutex);
    if (c->number == number) {
        if (!c->left)
            c->left = g_ptr_array_new();
        g_ptr_array_add(c->left, inner);
    }
    pthread_mutex_unlock(&o->left_mutex);
}

void connection_put_left(Reconnect *o, Connection *c)
{
    pthread_mutex_lock(&o->left_mutex);
    g_autoptr(GPtrArray) left = g_steal_pointer(&c->left);
    pthread_mutex_unlock(&o->left_mutex);
    for (guint i = 0; c->inner && left && i < left->len; i++)
        c->inner->ops->put(c->inner, g_ptr_array_index(left, i));
}

gboolean connection_close_at_end(Reconnect *o, Connection *c, OriginFile *inner)
{
    if (!atomic_load(&c->over))
        return FALSE;
    pthread_mutex_lock(&o->lock);
    const gboolean later = !c->rests && !c->ended;
    if (later && !c->files)
        c->files = g_ptr_array_new();
    if (later)
        g_ptr_array_add(c->files, inner);
    pthread_mutex_unlock(&o->lock);
    return later;
}

void connection_close_left_locked(Reconnect *o, Connection *c)
{
    g_autoptr(GPtrArray) files = g_steal_pointer(&c->files);
    pthread_mutex_unlock(&o->lock);
    for (guint i = 0; files && i < files->len; i++)
        c->inner->ops->close(c->inner, g_ptr_array_index(files, i));
    pthread_mutex_lock(&o->lock);
}
