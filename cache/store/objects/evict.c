/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eviction: objects of unused tags first, then of tags in use, each in the order of victims.h;
 * objects of pinned tags only when the tag is named. In batches of one transaction each.
 *
 * A file is removed before its record. A crash between the two leaves a record without a file,
 * which costs nothing: the next open misses, and the record goes with the next fill or eviction of
 * that object. The other order would leave files that are not counted, and would not work at all on
 * a full file system, where LMDB cannot commit before something is freed. The danger of this order,
 * a record that outlives its file and vouches for a later, unsynced one of the same name, is met in
 * store_publish(): it deletes any record of the id before it links.
 *
 * Objects not yet recorded are the newest; only when nothing else is left are they flushed, so
 * that they can be evicted like the others. Open objects are evicted too: their descriptors stay
 * valid.
 */
#include <errno.h>
#include <string.h>
#include "cache/store/objects/internal.h"
#include "cache/store/objects/victims.h"

#define BATCH 1024 /* a commit is two syncs of the disk, however small */
#define TURN_BATCHES 2
#define REFUSED_MAX 4 /* batches of which nothing could be removed */

/* Uses that are only known in memory so far count as well. */
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

/* Removes files and records of a batch, but not those that are being linked or removed by others.
 * *removed gets the files there were, *records the number of records; FALSE: the disk failed. */
static gboolean remove_batch(Store *store, const IndexEntry *entries, size_t n, StoreEvicts why,
                             IndexTotals *removed, size_t *records)
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
                                            .record.tag = entries[i].tag,
                                            .record.used_again = entries[i].used_again,
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
    for (size_t i = 0; i < gone; i++) {
        if (why != STORE_EVICTS_ASKED)
            evicted_note(&store->evicted, &changes[i].id);
        ledger_removed(&store->ledger, &changes[i].id);
    }
    space_credit(store, removed);
    atomic_fetch_add(&store->evicted_objects[why], removed->objects);
    atomic_fetch_add(&store->evicted_bytes[why], removed->bytes);
    if (rc == 0)
        rc = indexed;
    disk_failed(&store->disk, rc, monotonic_ms());
    *records = gone;
    return rc == 0;
}

void evict_turn_init(EvictTurn *turn)
{
    *turn = (EvictTurn){.taken = FALSE};
    pthread_mutex_init(&turn->lock, NULL);
    pthread_cond_init(&turn->over, NULL);
}

void evict_turn_destroy(EvictTurn *turn)
{
    pthread_cond_destroy(&turn->over);
    pthread_mutex_destroy(&turn->lock);
}

void evict_begin(Store *store, gboolean for_fill)
{
    EvictTurn *turn = &store->evict_turn;
    pthread_mutex_lock(&turn->lock);
    turn->waiting += for_fill ? 1 : 0;
    while (turn->taken || (!for_fill && turn->waiting > 0))
        pthread_cond_wait(&turn->over, &turn->lock);
    turn->waiting -= for_fill ? 1 : 0;
    turn->taken = TRUE;
    pthread_mutex_unlock(&turn->lock);
}

void evict_end(Store *store)
{
    EvictTurn *turn = &store->evict_turn;
    pthread_mutex_lock(&turn->lock);
    turn->taken = FALSE;
    pthread_cond_broadcast(&turn->over);
    pthread_mutex_unlock(&turn->lock);
}

/* --- one eviction --- */

static TagRank last_rank(const EvictRun *run)
{
    return run->pinned_too ? TAG_RANK_PINNED : TAG_RANK_USED;
}

typedef struct Waiting {
    Store *store;
    const EvictRun *run;
} Waiting;

static gboolean may_come_to(const TagId *tag, const void *data)
{
    const Waiting *w = data;
    if (w->run->tag)
        return memcmp(tag, w->run->tag, sizeof(*tag)) == 0;
    return tags_rank(&w->store->tags, tag) <= last_rank(w->run);
}

/* After a rank the next one; after the last one once again, with objects that were not recorded, or
 * were recorded after the index was listed. */
static void next_rank(Store *store, EvictRun *run)
{
    const Waiting waiting = {store, run};
    if (!run->tag && run->rank < last_rank(run)) {
        run->rank++;
        return;
    }
    run->rank = TAG_RANK_NONE;
    if (run->flushed)
        run->done = TRUE;
    else if (ledger_awaits(&store->ledger, may_come_to, &waiting))
        run->done = store_flush(store) < 0;
    else
        run->done = run->commits == ledger_commits(&store->ledger);
    run->flushed = TRUE;
}

/* Without those that were pinned since the victims were chosen. */
static size_t drop_pinned(Store *store, const EvictRun *run, IndexEntry *entries, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (run->tag || tags_rank(&store->tags, &entries[i].tag) <= last_rank(run))
            entries[kept++] = entries[i];
    return kept;
}

/* Removes a batch of the victims. FALSE: there are none left, or the run is done. */
static gboolean evict_batch(Store *store, EvictRun *run, Victims *victims,
                            const IndexTotals *wanted, size_t max, IndexTotals *total)
{
    g_autofree IndexEntry *entries = g_new(IndexEntry, max);
    IndexTotals removed = {0, 0};
    ssize_t n = victims_list(victims, wanted->bytes - MIN(wanted->bytes, total->bytes),
                             wanted->objects - MIN(wanted->objects, total->objects), entries, max);
    if (n == 0)
        return FALSE;
    if (n == -EUCLEAN)
        atomic_store(&store->index_lost, TRUE);
    size_t records = 0;
    if (n > 0)
        n = (ssize_t)drop_pinned(store, run, entries, (size_t)n);
    if (n < 0 || !remove_batch(store, entries, (size_t)n, run->why, &removed, &records))
        run->done = TRUE;
    /* Others may be linking all of them. The next ones are other objects. */
    run->refused += records == 0;
    if (run->refused == REFUSED_MAX)
        run->done = TRUE;
    for (ssize_t i = 0; i < n; i++)
        total->bytes += record_charge(entries[i].size);
    total->objects += (uint64_t)MAX(n, 0);
    run->freed.bytes += removed.bytes;
    run->freed.objects += removed.objects;
    return !run->done;
}

IndexTotals store_evict_locked(Store *store, EvictRun *run, uint64_t bytes, uint64_t objects,
                               const EvictLimit *limit)
{
    IndexTotals total = {0, 0};
    const IndexTotals wanted = {bytes, objects};
    unsigned batches = 0;
    if (!run->begun)
        run->commits = ledger_commits(&store->ledger);
    run->begun = TRUE;
    if (!limit->for_reader)
        apply_uses(store);
    while (!run->done && batches < limit->batches) {
        Victims victims;
        victims_init(&victims, store, run);
        gboolean more = TRUE;
        while (more && batches < limit->batches) {
            if (total.bytes >= bytes && total.objects >= objects) {
                victims_clear(&victims);
                return total;
            }
            more = evict_batch(store, run, &victims, &wanted, limit->batch, &total);
            batches += more;
        }
        victims_clear(&victims);
        if (!more && !run->done)
            next_rank(store, run);
    }
    return total;
}

static const EvictLimit turn_limit = {.batch = BATCH, .batches = TURN_BATCHES};

/* Objects that were just fetched may be the ones to go: they get their records, unless the disk is
 * nearly full, where nothing can be written before something is removed. */
static void record_newest(Store *store)
{
    if (!atomic_load(&store->index_lost) && !space_is_nearly_full(store))
        store_flush(store);
}

/* In turns of a few batches, so that a fill that needs room does not wait for all of it. */
static void evict_excess(Store *store)
{
    EvictRun run = {.tag = NULL};
    const uint64_t asked = space_take_asked(store);
    const IndexTotals first = space_excess(store, FALSE, asked);
    if (first.bytes > 0 || first.objects > 0)
        record_newest(store);
    for (gboolean pressing = FALSE; !run.done && !wake_stopping(&store->evictor); pressing = TRUE) {
        evict_begin(store, FALSE);
        IndexTotals excess = space_excess(store, pressing, asked);
        gboolean enough = excess.bytes == 0 && excess.objects == 0;
        if (!enough)
            store_evict_locked(store, &run, excess.bytes, excess.objects, &turn_limit);
        evict_end(store);
        if (enough)
            return;
    }
}

static uint64_t evict_until(Store *store, EvictRun *run, uint64_t bytes)
{
    while (!run->done && run->freed.bytes < bytes) {
        evict_begin(store, FALSE);
        store_evict_locked(store, run, bytes - run->freed.bytes, 0, &turn_limit);
        evict_end(store);
    }
    return run->freed.bytes;
}

uint64_t store_evict(Store *store, const char *tag, uint64_t bytes)
{
    TagId id;
    tag_id(tag, &id);
    EvictRun run = {.tag = tag ? &id : NULL, .why = STORE_EVICTS_ASKED};
    return evict_until(store, &run, bytes);
}

uint64_t store_evict_over_quota(Store *store, const char *tag, uint64_t bytes)
{
    TagId id;
    tag_id(tag, &id);
    EvictRun run = {.tag = &id, .why = STORE_EVICTS_QUOTA};
    return evict_until(store, &run, bytes);
}

uint64_t store_evict_pinned_too(Store *store, uint64_t bytes)
{
    EvictRun run = {.pinned_too = TRUE, .why = STORE_EVICTS_ASKED};
    return evict_until(store, &run, bytes);
}

void *store_evictor(void *data)
{
    Store *store = data;
    do {
        if (disk_state(&store->disk) != STORE_DISK_BYPASS)
            evict_excess(store);
    } while (wake_wait(&store->evictor, store->hooks.check_ms));
    return NULL;
}
