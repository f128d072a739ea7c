#include "cache/fuse/unsynced.h"
#include <errno.h>
#include "cache/fuse/session_internal.h"

uint64_t unsynced_session(Session *s)
{
    return origin_session(s->origin);
}

/* Notices that the session of unsynced writes is not the one there is now. */
static void look_locked(Session *s, Unsynced *u)
{
    if (u->writes == u->synced || u->session == unsynced_session(s))
        return;
    u->synced = u->writes;
    u->error = -EIO;
    u->losses++;
}

void unsynced_wrote(Session *s, Node *node, uint64_t in_session)
{
    Unsynced *u = &node->unsynced;
    pthread_mutex_lock(&node->mutex);
    look_locked(s, u);
    if (u->writes++ == u->synced)
        u->session = in_session;
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
    look_locked(s, u);
    u->synced = MAX(u->synced, mark);
    pthread_mutex_unlock(&node->mutex);
}

unsigned unsynced_seen(Node *node)
{
    pthread_mutex_lock(&node->mutex);
    unsigned told = node->unsynced.told;
    pthread_mutex_unlock(&node->mutex);
    return told;
}

void unsynced_failed(Node *node, int r)
{
    pthread_mutex_lock(&node->mutex);
    node->unsynced.error = r;
    node->unsynced.losses++;
    pthread_mutex_unlock(&node->mutex);
}

int unsynced_error(Session *s, Node *node, unsigned *seen)
{
    Unsynced *u = &node->unsynced;
    pthread_mutex_lock(&node->mutex);
    look_locked(s, u);
    int r = *seen == u->losses ? 0 : u->error;
    *seen = u->told = u->losses;
    pthread_mutex_unlock(&node->mutex);
    return r;
}
