/* SPDX-License-Identifier: Apache-2.0 */
/* Each entry has the round of syncs in which it was kept: a sync makes safe only the entries of
 * rounds before it. */
#include "cache/fuse/live/forgotten.h"
#include <pthread.h>

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
    if (unsynced->writes == unsynced->synced && unsynced->losses == unsynced->reported)
        return;
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

guint forgotten_count(Forgotten *f)
{
    pthread_mutex_lock(&f->mutex);
    guint n = g_hash_table_size(f->by_id);
    pthread_mutex_unlock(&f->mutex);
    return n;
}
