/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks belong to a connection, and are lost with it: others may have had them since. So they are
 * not taken again on the next connection, where calls with them answer -EIO. Files of the inode are
 * not opened again on it either, for as long as there are such lost locks: a write that was begun
 * under a lock is not made without it.
 */
#include "cache/origin/reconnect/internal.h"

struct OriginLocks {
    uint64_t ino;
    Connection *connection;
    uint64_t number;
    OriginLocks *inner;
};

static Reconnect *reconnect_of(Origin *base)
{
    return (Reconnect *)base;
}

gboolean locks_are_lost(Reconnect *o, const Connection *c, uint64_t ino)
{
    gboolean lost = FALSE;
    pthread_mutex_lock(&o->locks_mutex);
    for (guint i = 0; i < o->locks->len && !lost; i++) {
        const OriginLocks *l = g_ptr_array_index(o->locks, i);
        lost = l->ino == ino && l->number != c->number;
    }
    pthread_mutex_unlock(&o->locks_mutex);
    return lost;
}

int locks_open_on(Reconnect *o, Connection *c, uint64_t ino, OriginNode *node, OriginLocks **locks)
{
    OriginLocks *inner;
    int r = c->inner->ops->locks_open(c->inner, node, &inner);
    if (r < 0)
        return r;
    OriginLocks *l = g_new0(OriginLocks, 1);
    *l = (OriginLocks){ino, c, c->number, inner};
    pthread_mutex_lock(&o->locks_mutex);
    g_ptr_array_add(o->locks, l);
    pthread_mutex_unlock(&o->locks_mutex);
    atomic_fetch_add(&o->handles, 1);
    *locks = l;
    return 0;
}

/* FALSE: it is over, with all locks. */
static gboolean use(Reconnect *o, const OriginLocks *l)
{
    if (!connection_try_use(o, l->connection))
        return FALSE;
    if (l->connection->number == l->number)
        return TRUE;
    connection_done(o, l->connection, 0);
    return FALSE;
}

/* libcephfs answers EIO once it has lost a lock with its session, as the canary's check does. */
static int done(Reconnect *o, const OriginLocks *l, int r)
{
    connection_done(o, l->connection, r == -EIO ? -ENOTCONN : r);
    return is_loss(r) ? -EIO : r;
}

int reconnect_lock_set(Origin *base, OriginLocks *locks, const struct flock *lock, uint64_t owner)
{
    Reconnect *o = reconnect_of(base);
    if (!use(o, locks))
        return -EIO;
    Origin *inner = locks->connection->inner;
    return done(o, locks, inner->ops->lock_set(inner, locks->inner, lock, owner));
}

int reconnect_lock_get(Origin *base, OriginLocks *locks, struct flock *lock, uint64_t owner)
{
    Reconnect *o = reconnect_of(base);
    if (!use(o, locks))
        return -EIO;
    Origin *inner = locks->connection->inner;
    return done(o, locks, inner->ops->lock_get(inner, locks->inner, lock, owner));
}

/* The close of one that is lost would ask Ceph to give back the locks. It waits until the
 * connection has ended. */
void reconnect_locks_close(Origin *base, OriginLocks *locks)
{
    Reconnect *o = reconnect_of(base);
    Connection *c = locks->connection;
    const gboolean used = use(o, locks);
    pthread_mutex_lock(&o->locks_mutex);
    g_ptr_array_remove_fast(o->locks, locks);
    if (!used)
        g_ptr_array_add(o->lost_locks, locks);
    pthread_mutex_unlock(&o->locks_mutex);
    atomic_fetch_sub(&o->handles, 1);
    if (!used)
        return;
    c->inner->ops->locks_close(c->inner, locks->inner);
    connection_done(o, c, 0);
    g_free(locks);
}

void locks_free_lost(Reconnect *o)
{
    for (guint i = 0; i < o->lost_locks->len; i++) {
        OriginLocks *l = g_ptr_array_index(o->lost_locks, i);
        l->connection->inner->ops->locks_close(l->connection->inner, l->inner);
        g_free(l);
    }
    g_ptr_array_unref(o->lost_locks);
    g_ptr_array_unref(o->locks);
    pthread_mutex_destroy(&o->locks_mutex);
}
