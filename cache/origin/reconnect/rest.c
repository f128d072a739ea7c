/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection that nobody uses ends, and its next use makes another one. A client of Ceph costs 18
 * threads, and a session that each MDS keeps: a node may have a thousand volumes, of which few are
 * in use.
 *
 * It has no open file, no listing and no lease then, and all that was written through it is in
 * Ceph: nothing can be lost, so the origin's session is still the same one for its users. What they
 * remember, numbers and names of inodes, is found again as after a loss.
 *
 * A thread finds out whether the connection can rest. A use meanwhile keeps it: `over` is set
 * first, and taken back if there was any use since.
 */
#include "cache/origin/aside.h"
#include "cache/origin/reconnect/internal.h"
#include "cache/origin/thread_room.h"

/* With more connections than that in the process, one rests as soon as it is idle. */
#define MANY 16
#define MANY_REST_MS 2000
/* While another one waits for room to be made. */
#define WANTED_REST_MS 200

int rest_count_handle(Reconnect *o, int r)
{
    if (r == 0)
        atomic_fetch_add(&o->handles, 1);
    return r;
}

static int64_t rest_after_ms(const Reconnect *o)
{
    if (thread_room_is_wanted())
        return MIN(o->ops->rest_ms, WANTED_REST_MS);
    return reconnect_connections() > MANY ? MIN(o->ops->rest_ms, MANY_REST_MS) : o->ops->rest_ms;
}

static gboolean is_held(Reconnect *o, const Connection *c, unsigned uses)
{
    return atomic_load(&c->uses) > uses || atomic_load(&o->handles) || atomic_load(&o->touched);
}

void rest_until_used_locked(Reconnect *o)
{
    atomic_store(&o->resting, TRUE);
    atomic_store(&o->heard_ms, 0);
    atomic_store(&o->unanswered_ms, 0);
    pthread_cond_broadcast(&o->changed);
}

/* The caller uses it, and all that was written is in Ceph. */
static void rest_locked(Reconnect *o, Connection *c)
{
    if (c->over || o->stopping)
        return;
    atomic_store(&c->over, TRUE);
    if (is_held(o, c, 1)) {
        atomic_store(&c->over, FALSE);
        return;
    }
    c->rests = TRUE;
    o->current = NULL;
    o->after_loss = FALSE;
    connection_count(-1);
    rest_until_used_locked(o);
}

typedef struct Rest {
    Reconnect *o;
    Connection *c; /* in use */
} Rest;

static int check(Reconnect *o, Origin *inner)
{
    const int r = o->ops->check(inner);
    return r == -EIO ? -ENOTCONN : r; /* it is lost */
}

/* The library may say that all is written when it has dropped it with a lost session. */
static int write_all(Reconnect *o, Origin *inner)
{
    int r = check(o, inner);
    if (r == 0 && inner->ops->sync_all)
        r = inner->ops->sync_all(inner);
    return r == 0 ? check(o, inner) : r;
}

static void begin_rest(void *data)
{
    g_autofree Rest *rest = data;
    Reconnect *o = rest->o;
    Connection *c = rest->c;
    const int r = write_all(o, c->inner);
    pthread_mutex_lock(&o->lock);
    if (r == 0)
        rest_locked(o, c);
    else
        o->idle_ms = boottime_ms();
    o->rest_begins = FALSE;
    pthread_mutex_unlock(&o->lock);
    /* Last: the origin may be gone then. */
    connection_done(o, c, is_loss(r) ? r : 0);
}

void rest_look_locked(Reconnect *o, Connection *c)
{
    const int64_t now = boottime_ms();
    if (!o->ops->rest_ms || o->rest_begins)
        return;
    if (is_held(o, c, 0)) {
        atomic_store(&o->touched, FALSE);
        o->idle_ms = now;
    }
    if (now - o->idle_ms < rest_after_ms(o))
        return;
    Rest *rest = g_new(Rest, 1);
    *rest = (Rest){o, c};
    o->rest_begins = TRUE;
    atomic_fetch_add(&c->uses, 1);
    if (aside_try(begin_rest, rest))
        return;
    atomic_fetch_sub(&c->uses, 1);
    o->rest_begins = FALSE;
    g_free(rest);
}

void rest_end(Reconnect *o, Connection *c)
{
    connection_put_left(o, c);
    origin_close(g_steal_pointer(&c->inner));
}
