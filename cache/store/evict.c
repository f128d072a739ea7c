/*
 * Eviction, least recently used first, in batches of one transaction each.
 *
 * A file is removed before its record. A crash between the two leaves a record without a file,
 * which costs nothing: the next open misses, and the record goes with the next fill or eviction of
 * that object. The other order would leave files that nobody counts, and would not work at all on a
 * full file system, where LMDB cannot commit before something is freed. The danger of this order, a
 * record that outlives its file and vouches for a later, unsynced one of the same name, is met in
 * store_publish(): it deletes any record of the id before it links.
 *
 * Objects not yet recorded are the newest; only when nothing else is left are they flushed, so as
 * to be evicted like the others. Objects somebody has open are not spared: their descriptors stay
 * good.
 */
#include <errno.h>
#include "cache/store/internal.h"

#define BATCH 256

/* Recency that is known only in memory so far decides as well. */
static void apply_uses(Store *store)
{
    size_t n;
    IndexTotals delta;
    g_autofree ObjectId *uses = ledger_take_uses(&store->ledger, &n);
    g_autofree IndexChange *changes = g_new0(IndexChange, n);
    uint64_t now = store_wall_ms(store);
    for (size_t i = 0; i < n; i++)
        changes[i] = (IndexChange){.op = INDEX_TOUCH, .id = uses[i], .record.last_use_ms = now};
    uint64_t slack = store->hooks.slack_ms == UINT64_MAX ? 0 : store->hooks.slack_ms;
    if (n)
        index_apply(store->index, changes, n, slack, &delta);
}

/* Removes files and records of a batch. *removed gets what is gone; FALSE: the disk failed. */
static gboolean remove_batch(Store *store, const IndexEntry *entries, size_t n,
                             IndexTotals *removed)
{
    g_autofree IndexChange *changes = g_new(IndexChange, n);
    size_t gone = 0;
    int rc = 0;
    *removed = (IndexTotals){0, 0};
    for (size_t i = 0; i < n && rc == 0; i++) {
        if (!ledger_removing(&store->ledger, &entries[i].id, TRUE))
            continue;
        rc = layout_unlink_object(&store->layout, &entries[i].id);
        if (rc == 0) {
            removed->bytes += record_charge(entries[i].size);
            removed->objects++;
        } else if (rc == -ENOENT) {
            rc = 0;
        }
        if (rc == 0)
            changes[gone++] = (IndexChange){.op = INDEX_DELETE,
                                            .id = entries[i].id,
                                            .record.last_use_ms = entries[i].last_use_ms};
        else
            ledger_removed(&store->ledger, &entries[i].id);
    }
    IndexTotals delta;
    int indexed = index_apply(store->index, changes, gone, 0, &delta);
    if (indexed == 0)
        ledger_indexed(&store->ledger, &delta);
    else if (indexed == -EUCLEAN)
        atomic_store(&store->index_lost, TRUE);
    for (size_t i = 0; i < gone; i++)
        ledger_removed(&store->ledger, &changes[i].id);
    room_credit(store, removed);
    atomic_fetch_add(&store->evicted_objects, removed->objects);
    atomic_fetch_add(&store->evicted_bytes, removed->bytes);
    if (rc == 0)
        rc = indexed;
    disk_failed(&store->disk, rc, store_mono_ms());
    return rc == 0;
}

IndexTotals store_evict_locked(Store *store, const TagId *tag, uint64_t bytes, uint64_t objects)
{
    IndexTotals total = {0, 0};
    IndexCursor cursor = {.started = FALSE};
    IndexEntry *entries = g_new(IndexEntry, BATCH);
    gboolean flushed = FALSE;
    apply_uses(store);
    while (total.bytes < bytes || total.objects < objects) {
        uint64_t want_bytes = bytes - MIN(bytes, total.bytes);
        uint64_t want_objects = objects - MIN(objects, total.objects);
        gboolean end;
        ssize_t n = index_oldest(store->index, tag, &cursor, want_bytes, want_objects, entries,
                                 BATCH, &end);
        IndexTotals removed;
        if (n == -EUCLEAN)
            atomic_store(&store->index_lost, TRUE);
        if (n < 0 || (n > 0 && !remove_batch(store, entries, (size_t)n, &removed)))
            break;
        if (n > 0) {
            total.bytes += removed.bytes;
            total.objects += removed.objects;
        } else if (end) {
            if (flushed || store_flush(store) < 0)
                break;
            flushed = TRUE;
            cursor.started = FALSE;
        }
    }
    g_free(entries);
    return total;
}

void *store_evictor(void *data)
{
    Store *store = data;
    do {
        if (disk_state(&store->disk) == STORE_DISK_BYPASS)
            continue;
        pthread_mutex_lock(&store->evict_lock);
        IndexTotals excess = room_excess(store);
        if (excess.bytes || excess.objects)
            store_evict_locked(store, NULL, excess.bytes, excess.objects);
        pthread_mutex_unlock(&store->evict_lock);
    } while (wake_wait(&store->evictor, store->hooks.check_ms));
    return NULL;
}
