/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses are sampled without bias (reservoir sampling) when more come than are kept: recording the
 * first ones would keep refreshing the same objects of an epoch read in a fixed order.
 */
#include "cache/store/index/ledger.h"
#include <errno.h>
#include <string.h>

void ledger_init(Ledger *ledger)
{
    memset(ledger, 0, sizeof(*ledger));
    pthread_mutex_init(&ledger->lock, NULL);
    pthread_cond_init(&ledger->changed, NULL);
    ledger->pending = g_hash_table_new_full(object_id_hash, object_id_equal, NULL, g_free);
    ledger->dropped = g_hash_table_new_full(object_id_hash, object_id_equal, g_free, NULL);
    ledger->removing = g_hash_table_new_full(object_id_hash, object_id_equal, g_free, NULL);
    ledger->uses = g_new(ObjectId, LEDGER_USES_MAX);
    ledger->random = 0x9e3779b97f4a7c15ULL;
}

void ledger_destroy(Ledger *ledger)
{
    g_hash_table_destroy(ledger->pending);
    g_hash_table_destroy(ledger->dropped);
    g_hash_table_destroy(ledger->removing);
    g_free(ledger->uses);
    pthread_cond_destroy(&ledger->changed);
    pthread_mutex_destroy(&ledger->lock);
}

int ledger_announce(Ledger *ledger, const ObjectId *id, const Record *record)
{
    int rc = 0;
    pthread_mutex_lock(&ledger->lock);
    for (;;) {
        Pending *present = g_hash_table_lookup(ledger->pending, id);
        gboolean removing = g_hash_table_contains(ledger->removing, id);
        if (!present && !removing)
            break;
        if (!removing && !present->dropped && present->state != PENDING_LINKING) {
            rc = -EEXIST;
            break;
        }
        pthread_cond_wait(&ledger->changed, &ledger->lock);
    }
    if (rc == 0 && g_hash_table_size(ledger->pending) >= LEDGER_PENDING_MAX)
        rc = -EBUSY;
    if (rc == 0) {
        Pending *pending = g_new0(Pending, 1);
        pending->id = *id;
        pending->record = *record;
        g_hash_table_insert(ledger->pending, &pending->id, pending);
    }
    pthread_mutex_unlock(&ledger->lock);
    return rc;
}

uint64_t ledger_linked(Ledger *ledger, const ObjectId *id, gboolean linked, uint64_t reserved)
{
    pthread_mutex_lock(&ledger->lock);
    Pending *pending = g_hash_table_lookup(ledger->pending, id);
    if (pending && linked) {
        pending->state = PENDING_LINKED;
        ledger->waiting.bytes += record_charge(pending->record.key.size);
        ledger->waiting.objects++;
        g_hash_table_remove(ledger->dropped, id);
        ledger->linked.bytes += record_charge(pending->record.key.size);
        ledger->linked.objects++;
        if (reserved) {
            ledger->reserved.bytes -= reserved;
            ledger->reserved.objects--;
        }
    } else if (pending) {
        g_hash_table_remove(ledger->pending, id);
    }
    uint64_t waiting = ledger->waiting.objects;
    pthread_cond_broadcast(&ledger->changed);
    pthread_mutex_unlock(&ledger->lock);
    return waiting;
}

void ledger_remove_locked(Ledger *ledger, Pending *pending)
{
    ledger->waiting.bytes -= record_charge(pending->record.key.size);
    ledger->waiting.objects--;
    g_hash_table_remove(ledger->pending, &pending->id);
    pthread_cond_broadcast(&ledger->changed);
}

void ledger_note_dropped_locked(Ledger *ledger, const ObjectId *id)
{
    g_hash_table_add(ledger->dropped, g_memdup2(id, sizeof(*id)));
}

gboolean ledger_removing(Ledger *ledger, const ObjectId *id, gboolean recorded)
{
    pthread_mutex_lock(&ledger->lock);
    const Pending *pending = g_hash_table_lookup(ledger->pending, id);
    gboolean may = !g_hash_table_contains(ledger->removing, id) &&
                   !(pending && (recorded || pending->state == PENDING_LINKING));
    if (may)
        g_hash_table_add(ledger->removing, g_memdup2(id, sizeof(*id)));
    pthread_mutex_unlock(&ledger->lock);
    return may;
}

void ledger_removed(Ledger *ledger, const ObjectId *id)
{
    pthread_mutex_lock(&ledger->lock);
    g_hash_table_remove(ledger->removing, id);
    pthread_cond_broadcast(&ledger->changed);
    pthread_mutex_unlock(&ledger->lock);
}

gboolean ledger_drop(Ledger *ledger, const ObjectId *id)
{
    gboolean noted = TRUE;
    pthread_mutex_lock(&ledger->lock);
    Pending *pending = g_hash_table_lookup(ledger->pending, id);
    if (pending && pending->state == PENDING_LINKED)
        ledger_remove_locked(ledger, pending);
    else if (pending && pending->state == PENDING_FLUSHING)
        pending->dropped = TRUE;
    else if (!pending && g_hash_table_size(ledger->dropped) < LEDGER_DROPPED_MAX)
        ledger_note_dropped_locked(ledger, id);
    else if (!pending)
        noted = FALSE;
    pthread_mutex_unlock(&ledger->lock);
    return noted;
}

LedgerFinding ledger_find(Ledger *ledger, const ObjectId *id)
{
    LedgerFinding finding = LEDGER_UNKNOWN;
    pthread_mutex_lock(&ledger->lock);
    const Pending *pending = g_hash_table_lookup(ledger->pending, id);
    if (pending)
        finding =
            pending->dropped || pending->state == PENDING_LINKING ? LEDGER_DROPPED : LEDGER_HELD;
    else if (g_hash_table_contains(ledger->dropped, id) ||
             g_hash_table_contains(ledger->removing, id))
        finding = LEDGER_DROPPED;
    pthread_mutex_unlock(&ledger->lock);
    return finding;
}

static uint64_t next_random(Ledger *ledger)
{
    uint64_t x = ledger->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return ledger->random = x;
}

void ledger_used(Ledger *ledger, const ObjectId *id)
{
    pthread_mutex_lock(&ledger->lock);
    ledger->opens++;
    if (ledger->n_uses < LEDGER_USES_MAX) {
        ledger->uses[ledger->n_uses++] = *id;
    } else {
        uint64_t slot = next_random(ledger) % ledger->opens;
        if (slot < LEDGER_USES_MAX)
            ledger->uses[slot] = *id;
    }
    pthread_mutex_unlock(&ledger->lock);
}

ObjectId *ledger_take_uses(Ledger *ledger, size_t *n)
{
    pthread_mutex_lock(&ledger->lock);
    *n = ledger->n_uses;
    ObjectId *taken = g_memdup2(ledger->uses, *n * sizeof(ObjectId));
    ledger->n_uses = 0;
    ledger->opens = 0;
    pthread_mutex_unlock(&ledger->lock);
    return taken;
}

void ledger_indexed(Ledger *ledger, const IndexTotals *delta)
{
    pthread_mutex_lock(&ledger->lock);
    ledger->indexed.bytes += delta->bytes;
    ledger->indexed.objects += delta->objects;
    pthread_mutex_unlock(&ledger->lock);
}

IndexTotals ledger_held(Ledger *ledger)
{
    pthread_mutex_lock(&ledger->lock);
    IndexTotals held = {ledger->indexed.bytes + ledger->waiting.bytes,
                        ledger->indexed.objects + ledger->waiting.objects};
    pthread_mutex_unlock(&ledger->lock);
    return held;
}

IndexTotals ledger_sum(Ledger *ledger)
{
    pthread_mutex_lock(&ledger->lock);
    IndexTotals sum = {ledger->indexed.bytes + ledger->waiting.bytes + ledger->reserved.bytes,
                       ledger->indexed.objects + ledger->waiting.objects +
                           ledger->reserved.objects};
    pthread_mutex_unlock(&ledger->lock);
    return sum;
}

IndexTotals ledger_ever_linked(Ledger *ledger)
{
    pthread_mutex_lock(&ledger->lock);
    IndexTotals linked = ledger->linked;
    pthread_mutex_unlock(&ledger->lock);
    return linked;
}

void ledger_unreserve(Ledger *ledger, const IndexTotals *charge)
{
    pthread_mutex_lock(&ledger->lock);
    ledger->reserved.bytes -= charge->bytes;
    ledger->reserved.objects -= charge->objects;
    pthread_mutex_unlock(&ledger->lock);
}

void ledger_written(Ledger *ledger, int64_t bytes)
{
    pthread_mutex_lock(&ledger->lock);
    ledger->written += (uint64_t)bytes;
    pthread_mutex_unlock(&ledger->lock);
}

uint64_t ledger_written_bytes(Ledger *ledger)
{
    pthread_mutex_lock(&ledger->lock);
    const uint64_t bytes = ledger->written;
    pthread_mutex_unlock(&ledger->lock);
    return bytes;
}

IndexTotals ledger_waiting_of(Ledger *ledger, const TagId *tag)
{
    IndexTotals sum = {0, 0};
    GHashTableIter iter;
    gpointer value;
    pthread_mutex_lock(&ledger->lock);
    g_hash_table_iter_init(&iter, ledger->pending);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const Pending *pending = value;
        if (pending->state == PENDING_LINKING || pending->dropped ||
            memcmp(&pending->record.tag, tag, sizeof(*tag)) != 0)
            continue;
        sum.bytes += record_charge(pending->record.key.size);
        sum.objects++;
    }
    pthread_mutex_unlock(&ledger->lock);
    return sum;
}

uint64_t ledger_commits(Ledger *ledger)
{
    pthread_mutex_lock(&ledger->lock);
    const uint64_t commits = ledger->commits;
    pthread_mutex_unlock(&ledger->lock);
    return commits;
}

gboolean ledger_awaits(Ledger *ledger, gboolean (*wanted)(const TagId *tag, const void *data),
                       const void *data)
{
    gboolean any = FALSE;
    GHashTableIter iter;
    gpointer value;
    pthread_mutex_lock(&ledger->lock);
    g_hash_table_iter_init(&iter, ledger->pending);
    while (!any && g_hash_table_iter_next(&iter, NULL, &value)) {
        const Pending *pending = value;
        any = pending->state != PENDING_LINKING && !pending->dropped &&
              wanted(&pending->record.tag, data);
    }
    pthread_mutex_unlock(&ledger->lock);
    return any;
}

void ledger_reset(Ledger *ledger, const IndexTotals *indexed)
{
    GHashTableIter iter;
    gpointer value;
    pthread_mutex_lock(&ledger->lock);
    g_hash_table_iter_init(&iter, ledger->pending);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        if (((Pending *)value)->state != PENDING_LINKING)
            g_hash_table_iter_remove(&iter);
    g_hash_table_remove_all(ledger->dropped);
    ledger->waiting = (IndexTotals){0, 0};
    ledger->indexed = *indexed;
    pthread_cond_broadcast(&ledger->changed);
    pthread_mutex_unlock(&ledger->lock);
}
