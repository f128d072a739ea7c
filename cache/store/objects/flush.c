/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flush. A record promises that an object's bytes survive a power cut, so the order is
 * always: sync the file system, then commit the records. One syncfs(2) for a few seconds of fills
 * costs far less than an fsync(2) for each of ten thousand small files.
 *
 * A sync that fails means that the bytes of any object of the batch may be lost although its pages
 * look clean: all of the batch is removed.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <fcntl.h>
#include "cache/store/objects/internal.h"
#include "cache/store/objects/verity.h"

static GPtrArray *collect_pending(Ledger *ledger)
{
    GPtrArray *batch = g_ptr_array_new();
    GHashTableIter iter;
    gpointer value;
    pthread_mutex_lock(&ledger->lock);
    g_hash_table_iter_init(&iter, ledger->pending);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        Pending *pending = value;
        if (pending->state != PENDING_LINKED)
            continue;
        pending->state = PENDING_FLUSHING;
        g_ptr_array_add(batch, pending);
    }
    pthread_mutex_unlock(&ledger->lock);
    return batch;
}

/* Removes objects whose bytes or records did not reach the disk. */
static void discard_batch(Store *store, GPtrArray *batch)
{
    for (guint i = 0; i < batch->len; i++)
        layout_unlink_object(&store->layout, &((Pending *)batch->pdata[i])->id);
    pthread_mutex_lock(&store->ledger.lock);
    for (guint i = 0; i < batch->len; i++)
        ledger_remove_locked(&store->ledger, batch->pdata[i]);
    pthread_mutex_unlock(&store->ledger.lock);
}

static int sync_objects(Store *store)
{
    int rc = store->hooks.syncfs ? store->hooks.syncfs(store->hooks.data, store->layout.objects_fd)
                                 : syncfs(store->layout.objects_fd);
    return rc < 0 ? -errno : 0;
}

/* An object that cannot be sealed is still verified by its checksum. */
static void seal_all(Store *store, const GPtrArray *batch)
{
    int rc = 0;
    for (guint i = 0; i < batch->len && store->verity; i++) {
        int one = verity_seal(store, &((Pending *)batch->pdata[i])->id);
        if (one == 0)
            atomic_fetch_add(&store->sealed, 1);
        else if (one != -ENOENT)
            rc = one;
    }
    if (rc < 0)
        g_warning("cache: fs-verity: some objects are not sealed: %s", g_strerror(-rc));
}

/*
 * Deletions come first: an id may have been dropped and filled again. `put` gets the members of the
 * batch that a record is written for.
 */
static GArray *changes_of(Store *store, GPtrArray *batch, GPtrArray *put, guint *n_dropped)
{
    Ledger *ledger = &store->ledger;
    GArray *changes = g_array_new(FALSE, FALSE, sizeof(IndexChange));
    GHashTableIter iter;
    gpointer key;
    pthread_mutex_lock(&ledger->lock);
    g_hash_table_iter_init(&iter, ledger->dropped);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        IndexChange change = {.op = INDEX_DELETE, .id = *(ObjectId *)key};
        g_array_append_val(changes, change);
    }
    *n_dropped = changes->len;
    for (guint i = 0; i < batch->len; i++) {
        Pending *pending = batch->pdata[i];
        if (pending->dropped)
            continue;
        IndexChange change = {.op = INDEX_PUT, .id = pending->id, .record = pending->record};
        g_array_append_val(changes, change);
        g_ptr_array_add(put, pending);
    }
    pthread_mutex_unlock(&ledger->lock);

    size_t n;
    g_autofree ObjectId *uses = ledger_take_uses(ledger, &n);
    uint64_t now = store_wall_ms(store);
    for (size_t i = 0; i < n; i++) {
        IndexChange change = {.op = INDEX_TOUCH, .id = uses[i], .record.last_use_ms = now};
        g_array_append_val(changes, change);
    }
    return changes;
}

static void note_recorded(Store *store, GPtrArray *batch, GPtrArray *put, const GArray *changes,
                          guint n_dropped, const IndexTotals *delta)
{
    Ledger *ledger = &store->ledger;
    pthread_mutex_lock(&ledger->lock);
    ledger->commits++;
    ledger->indexed.bytes += delta->bytes;
    ledger->indexed.objects += delta->objects;
    for (guint i = 0; i < n_dropped; i++)
        g_hash_table_remove(ledger->dropped, &g_array_index(changes, IndexChange, i).id);
    for (guint i = 0; i < put->len; i++) {
        Pending *pending = put->pdata[i];
        if (pending->dropped) /* since the changes were made up */
            ledger_note_dropped_locked(ledger, &pending->id);
    }
    for (guint i = 0; i < batch->len; i++)
        ledger_remove_locked(ledger, batch->pdata[i]);
    pthread_mutex_unlock(&ledger->lock);
}

int store_flush(Store *store)
{
    pthread_mutex_lock(&store->flush_lock);
    g_autoptr(GPtrArray) batch = collect_pending(&store->ledger);
    g_autoptr(GPtrArray) put = g_ptr_array_new();
    int rc = batch->len ? sync_objects(store) : 0;
    if (rc < 0) {
        discard_batch(store, batch);
    } else {
        seal_all(store, batch);
        guint n_dropped;
        g_autoptr(GArray) changes = changes_of(store, batch, put, &n_dropped);
        IndexTotals delta;
        uint64_t slack = store->hooks.slack_ms == UINT64_MAX ? 0 : store->hooks.slack_ms;
        rc = index_apply(store->index, (IndexChange *)changes->data, changes->len, slack, &delta);
        if (rc < 0)
            discard_batch(store, batch);
        else
            note_recorded(store, batch, put, changes, n_dropped, &delta);
        if (rc == -EUCLEAN)
            atomic_store(&store->index_lost, TRUE);
    }
    pthread_mutex_unlock(&store->flush_lock);
    if (rc < 0) {
        g_warning("cache: recording %u new objects: %s: they were removed", batch->len,
                  g_strerror(-rc));
        disk_failed(&store->disk, rc, monotonic_ms());
    } else if (batch->len) {
        disk_succeeded(&store->disk, monotonic_ms());
    }
    return rc;
}
