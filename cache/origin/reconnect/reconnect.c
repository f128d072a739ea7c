/* SPDX-License-Identifier: Apache-2.0 */
/* The origin: how it begins and ends, and what is asked of it besides its operations. */
#include "cache/origin/aside.h"
#include "cache/origin/reconnect/internal.h"
#include <string.h>
#include "common/monotonic.h"

/* How long a close waits for calls that are still running. */
#define CLOSE_WAIT_MS 5000
#define CLOSE_LOOK_MS 20
#define END_LOOK_MS 1000

/* Gives the listener to one connection. */
static void tell_locked(Reconnect *o, Connection *c, const OriginListener *listener)
{
    const uint64_t number = c->number;
    pthread_mutex_unlock(&o->lock);
    if (connection_use_this(o, c, number) == CONNECTION_USED) {
        if (c->inner->ops->listen)
            c->inner->ops->listen(c->inner, listener);
        connection_done(o, c, 0);
    }
    pthread_mutex_lock(&o->lock);
}

void reconnect_listen(Origin *base, const OriginListener *listener)
{
    Reconnect *o = (Reconnect *)base;
    pthread_mutex_lock(&o->listener_mutex);
    o->listener = listener ? *listener : (OriginListener){0};
    pthread_mutex_unlock(&o->listener_mutex);
    /* The keeper gives those that come later the new one. */
    pthread_mutex_lock(&o->lock);
    for (guint i = 0; i < o->connections->len; i++)
        tell_locked(o, g_ptr_array_index(o->connections, i), listener);
    pthread_mutex_unlock(&o->lock);
}

void reconnect_reach(Origin *base, const char *monitors, const char *key, unsigned timeout_sec)
{
    const Reconnect *o = (Reconnect *)base;
    if (o->ops->reach)
        o->ops->reach(o->data, monitors, key, timeout_sec);
}

uint64_t reconnect_session(Origin *base)
{
    return atomic_load(&((Reconnect *)base)->session);
}

gboolean reconnect_rests(Origin *base)
{
    return atomic_load(&((Reconnect *)base)->resting);
}

static void connection_free(gpointer data)
{
    Connection *c = data;
    g_clear_pointer(&c->left, g_ptr_array_unref);
    g_clear_pointer(&c->inner, origin_close);
    g_free(c);
}

static void free_all(Reconnect *o)
{
    if (o->current)
        connection_count(-1);
    for (guint i = 0; i < o->connections->len; i++)
        connection_put_left(o, g_ptr_array_index(o->connections, i));
    locks_free_lost(o);
    g_ptr_array_unref(o->connections);
    o->ops->free_data(o->data);
    pthread_cond_destroy(&o->changed);
    pthread_mutex_destroy(&o->left_mutex);
    pthread_mutex_destroy(&o->listener_mutex);
    pthread_mutex_destroy(&o->lock);
    g_free(o);
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
    pthread_mutex_init(&o->locks_mutex, NULL);
    o->locks = g_ptr_array_new();
    o->lost_locks = g_ptr_array_new();
    cond_init_monotonic(&o->changed);
    o->connections = g_ptr_array_new_with_free_func(connection_free);
    atomic_store(&o->session, 1);
    pthread_mutex_lock(&o->lock);
    connection_add_locked(o, first);
    const gboolean started = keepers_start_locked(o);
    pthread_mutex_unlock(&o->lock);
    if (started)
        return &o->base;
    reconnect_destroy(&o->base);
    return NULL;
}

/* FALSE: the keeper, or a call, hangs in Ceph. */
static gboolean await_idle(Reconnect *o, int64_t until_ms)
{
    gboolean idle;
    pthread_mutex_lock(&o->lock);
    while (!(idle = !o->keeper_runs && !o->lease_keeper_runs && !connection_any_used_locked(o)) &&
           monotonic_ms() < until_ms) {
        const struct timespec next = deadline_after_ms(CLOSE_LOOK_MS);
        pthread_cond_timedwait(&o->changed, &o->lock, &next);
    }
    pthread_mutex_unlock(&o->lock);
    return idle;
}

static void end_all(Reconnect *o)
{
    pthread_mutex_lock(&o->lock);
    while (!keepers_end_over_locked(o)) {
        const struct timespec next = deadline_after_ms(END_LOOK_MS);
        pthread_cond_timedwait(&o->changed, &o->lock, &next);
    }
    pthread_mutex_unlock(&o->lock);
    free_all(o);
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
    /* A session that Ceph has ended without a word would have the end wait for ever. */
    if (o->current && o->keeper_runs)
        checks_want_locked(o, o->current);
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
    if (await_idle(o, monotonic_ms() + CLOSE_WAIT_MS)) {
        end_all(o);
        return;
    }
    g_message("a call to Ceph has not returned: its connection ends when it does");
    aside_begin(finish_late, o);
}
