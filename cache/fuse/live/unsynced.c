/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of writes, syncs and losses of a node; a handle remembers how many losses it has seen.
 */
#include "cache/fuse/live/unsynced.h"
#include <errno.h>
#include "cache/fuse/live/session_internal.h"

uint64_t unsynced_session(Session *s)
{
    return origin_session(s->origin);
}

void unsynced_lose(Unsynced *u, int r)
{
    u->error = r;
    u->losses++;
}

static void lose_locked(Unsynced *u)
{
    u->synced = u->writes;
    unsynced_lose(u, -EIO);
}

/* Counts a loss when the session of the unsynced writes has ended. */
static void check_session_locked(Session *s, Unsynced *u)
{
    if (u->writes == u->synced || u->session == unsynced_session(s))
        return;
    lose_locked(u);
}

void unsynced_wrote(Session *s, Node *node, uint64_t in_session)
{
    Unsynced *u = &node->unsynced;
    pthread_mutex_lock(&node->mutex);
    check_session_locked(s, u);
    const gboolean first = u->writes++ == u->synced;
    if (first || in_session != u->session) {
        /* Of another session than writes before it: one of the two is over. */
        if (!first)
            lose_locked(u);
        u->session = in_session;
    }
    pthread_mutex_unlock(&node->mutex);
}

int unsynced_changed(Session *s, Node *node, uint64_t in_session, int r)
{
    if (r == 0)
        unsynced_wrote(s, node, in_session);
    return r;
}

uint64_t unsynced_mark(Node *node)
{
    pthread_mutex_lock(&node->mutex);
    uint64_t mark = node->unsynced.writes;
    pthread_mutex_unlock(&node->mutex);
    return mark;
}

void unsynced_synced(Session *s, Node *node, uint64_t mark)
{
    Unsynced *u = &node->unsynced;
    pthread_mutex_lock(&node->mutex);
    check_session_locked(s, u);
    u->synced = MAX(u->synced, mark);
    pthread_mutex_unlock(&node->mutex);
}

UnsyncedSeen unsynced_seen(Session *s, Node *node)
{
    Unsynced *u = &node->unsynced;
    pthread_mutex_lock(&node->mutex);
    check_session_locked(s, u);
    const UnsyncedSeen seen = {.by_fsync = u->reported, .by_close = u->losses};
    pthread_mutex_unlock(&node->mutex);
    return seen;
}

void unsynced_report(const char *volume, uint64_t ino, int r)
{
    g_message("writes to inode %" G_GUINT64_FORMAT
              " of %s have failed: %s; the next fsync of the file says so",
              ino, volume, g_strerror(-r));
}

void unsynced_failed(Node *node, int r)
{
    pthread_mutex_lock(&node->mutex);
    unsynced_lose(&node->unsynced, r);
    pthread_mutex_unlock(&node->mutex);
}

/* The error of the last loss, unless `seen` is all of the losses. */
static int error_locked(Session *s, Unsynced *u, unsigned seen)
{
    check_session_locked(s, u);
    return seen == u->losses ? 0 : u->error;
}

int unsynced_error(Session *s, Node *node, UnsyncedSeen *seen)
{
    Unsynced *u = &node->unsynced;
    pthread_mutex_lock(&node->mutex);
    int r = error_locked(s, u, seen->by_fsync);
    seen->by_fsync = seen->by_close = u->reported = u->losses;
    pthread_mutex_unlock(&node->mutex);
    return r;
}

int unsynced_error_at_close(Session *s, Node *node, const UnsyncedSeen *seen)
{
    pthread_mutex_lock(&node->mutex);
    int r = error_locked(s, &node->unsynced, seen->by_close);
    pthread_mutex_unlock(&node->mutex);
    return r;
}
