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

gboolean unsynced_any(Node *node)
{
    pthread_mutex_lock(&node->mutex);
    const gboolean any = node->unsynced.writes != node->unsynced.synced;
    pthread_mutex_unlock(&node->mutex);
    return any;
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

/* ---- of inodes that the kernel has forgotten ---- */

/* Each entry has the round of syncs in which it was kept: a sync makes safe only the entries of
 * rounds before it. */
typedef struct Record {
    uint64_t id;
    Unsynced unsynced;
    unsigned round; /* of syncs, when it was kept */
} Record;

struct Forgotten {
    pthread_mutex_t mutex; /* guards all below; a leaf */
    GHashTable *by_id;     /* &Record.id -> Record */
    unsigned round;
    gboolean asked; /* for a sync */
    guint left;     /* by the last one */
};

Forgotten *forgotten_new(void)
{
    Forgotten *f = g_new0(Forgotten, 1);
    pthread_mutex_init(&f->mutex, NULL);
    f->by_id = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, g_free);
    return f;
}

void forgotten_free(Forgotten *f)
{
    g_hash_table_unref(f->by_id);
    pthread_mutex_destroy(&f->mutex);
    g_free(f);
}

void forgotten_keep(Forgotten *f, uint64_t id, const Unsynced *unsynced)
{
    if (unsynced->writes != unsynced->synced || unsynced->losses != unsynced->reported)
        forgotten_restore(f, id, unsynced);
}

void forgotten_restore(Forgotten *f, uint64_t id, const Unsynced *unsynced)
{
    Record *record = g_new(Record, 1);
    pthread_mutex_lock(&f->mutex);
    *record = (Record){id, *unsynced, f->round};
    g_hash_table_replace(f->by_id, &record->id, record);
    pthread_mutex_unlock(&f->mutex);
}

Unsynced forgotten_take(Forgotten *f, uint64_t id)
{
    Unsynced unsynced = {0};
    pthread_mutex_lock(&f->mutex);
    const Record *record = g_hash_table_lookup(f->by_id, &id);
    if (record) {
        unsynced = record->unsynced;
        g_hash_table_remove(f->by_id, &id);
    }
    pthread_mutex_unlock(&f->mutex);
    return unsynced;
}

void forgotten_failed(Forgotten *f, uint64_t id, int r)
{
    pthread_mutex_lock(&f->mutex);
    Record *record = g_hash_table_lookup(f->by_id, &id);
    if (!record) {
        record = g_new0(Record, 1);
        record->id = id;
        record->round = f->round;
        g_hash_table_replace(f->by_id, &record->id, record);
    }
    unsynced_lose(&record->unsynced, r);
    pthread_mutex_unlock(&f->mutex);
}

gboolean forgotten_are_many(Forgotten *f)
{
    pthread_mutex_lock(&f->mutex);
    gboolean many = !f->asked && g_hash_table_size(f->by_id) >= f->left + FORGOTTEN_MANY;
    f->asked |= many;
    pthread_mutex_unlock(&f->mutex);
    return many;
}

typedef struct Safe {
    unsigned round; /* up to this one */
    uint64_t session;
} Safe;

static gboolean is_safe(gpointer id, gpointer data_of_record, gpointer data)
{
    (void)id;
    const Record *record = data_of_record;
    const Safe *safe = data;
    return record->round <= safe->round && record->unsynced.session == safe->session &&
           record->unsynced.losses == record->unsynced.reported;
}

void forgotten_sync(Forgotten *f, Origin *origin)
{
    Safe safe = {.session = origin_session(origin)};
    pthread_mutex_lock(&f->mutex);
    safe.round = f->round++;
    pthread_mutex_unlock(&f->mutex);
    int r = origin->ops->sync_all ? origin->ops->sync_all(origin) : 0;
    pthread_mutex_lock(&f->mutex);
    if (r == 0 && origin_session(origin) == safe.session)
        g_hash_table_foreach_remove(f->by_id, is_safe, &safe);
    f->asked = FALSE;
    f->left = g_hash_table_size(f->by_id);
    pthread_mutex_unlock(&f->mutex);
}

void forgotten_each(Forgotten *f, void (*visit)(uint64_t id, const Unsynced *unsynced, void *data),
                    void *data)
{
    GHashTableIter iter;
    gpointer record;
    pthread_mutex_lock(&f->mutex);
    g_hash_table_iter_init(&iter, f->by_id);
    while (g_hash_table_iter_next(&iter, NULL, &record))
        visit(((const Record *)record)->id, &((const Record *)record)->unsynced, data);
    pthread_mutex_unlock(&f->mutex);
}

guint forgotten_count(Forgotten *f)
{
    pthread_mutex_lock(&f->mutex);
    guint n = g_hash_table_size(f->by_id);
    pthread_mutex_unlock(&f->mutex);
    return n;
}
