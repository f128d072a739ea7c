/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger: facts about the store that are not yet in the index, in memory of bounded size.
 *
 *   pending   objects linked in that may not be on stable storage yet; they get their records in
 *             batches, after a sync (objects/flush.c)
 *   dropped   objects removed whose records are still to be deleted
 *   uses      a sample of the objects opened since the last flush
 *
 * and the sums from which free space is computed. One lock guards all of it; it is a leaf.
 */
#ifndef HEARTH_CACHE_STORE_INDEX_LEDGER_H
#define HEARTH_CACHE_STORE_INDEX_LEDGER_H

#include <pthread.h>
#include "cache/store/index/index.h"

#define LEDGER_PENDING_MAX 16384
#define LEDGER_PENDING_EARLY 4096 /* flush without waiting for the interval */
#define LEDGER_DROPPED_MAX 65536
#define LEDGER_USES_MAX 8192

typedef enum PendingState {
    PENDING_LINKING,  /* being linked: the flusher must not record it */
    PENDING_LINKED,   /* to be flushed */
    PENDING_FLUSHING, /* in the flusher's batch */
} PendingState;

typedef struct Pending {
    ObjectId id;
    Record record;
    PendingState state;
    gboolean dropped; /* removed while it was being flushed: its record must go again */
} Pending;

typedef struct Ledger {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* an object left `pending` or `removing`, or was linked */
    GHashTable *pending;    /* ObjectId * in the value -> Pending */
    GHashTable *dropped;    /* set of ObjectId * */
    GHashTable *removing;   /* set of ObjectId *: files being removed; few */
    IndexTotals indexed, waiting, reserved;
    uint64_t commits;   /* flushes that have written records */
    uint64_t written;   /* how many bytes of `reserved` the file system counts already */
    IndexTotals linked; /* ever: the difference shows how much was added between two samples */
    ObjectId *uses;
    size_t n_uses;
    uint64_t opens; /* since the last flush */
    uint64_t random;
} Ledger;

typedef enum LedgerFinding { LEDGER_UNKNOWN, LEDGER_HELD, LEDGER_DROPPED } LedgerFinding;

void ledger_init(Ledger *ledger);
void ledger_destroy(Ledger *ledger);

/*
 * Announces an object about to be linked in. -EEXIST: it is held already. -EBUSY:
 * LEDGER_PENDING_MAX wait to be flushed. Waits for others only while they link or flush this very
 * id.
 */
int ledger_announce(Ledger *ledger, const ObjectId *id, const Record *record);
/*
 * Ends what ledger_announce() began; when linked, the reservation of `reserved` bytes becomes it.
 * Returns how many objects wait to be flushed.
 */
uint64_t ledger_linked(Ledger *ledger, const ObjectId *id, gboolean linked, uint64_t reserved);
/*
 * Begins to remove an object's file: until ledger_removed(), no object of this id is linked. FALSE:
 * another thread is linking or removing it, or (for eviction, `recorded`) it has just been added.
 */
gboolean ledger_removing(Ledger *ledger, const ObjectId *id, gboolean recorded);
void ledger_removed(Ledger *ledger, const ObjectId *id);
/* Notes that an object was removed. FALSE: too many such notes, delete the record now. */
gboolean ledger_drop(Ledger *ledger, const ObjectId *id);
LedgerFinding ledger_find(Ledger *ledger, const ObjectId *id);
void ledger_used(Ledger *ledger, const ObjectId *id);
/* Takes the sample of uses; *n ids, freed by the caller. */
ObjectId *ledger_take_uses(Ledger *ledger, size_t *n);

/* Adds the result of index_apply() to the totals of the index. */
void ledger_indexed(Ledger *ledger, const IndexTotals *delta);
/* Indexed, waiting and reserved together. */
IndexTotals ledger_sum(Ledger *ledger);
/* What is held: indexed and waiting. */
IndexTotals ledger_held(Ledger *ledger);
IndexTotals ledger_ever_linked(Ledger *ledger);
void ledger_unreserve(Ledger *ledger, const IndexTotals *charge);
/* Of what is reserved, this was written, or (negative) is counted so no more. */
void ledger_written(Ledger *ledger, int64_t bytes);
uint64_t ledger_written_bytes(Ledger *ledger);
uint64_t ledger_commits(Ledger *ledger);
/* Whether an object whose tag passes `wanted` waits to be flushed. */
gboolean ledger_awaits(Ledger *ledger, gboolean (*wanted)(const TagId *tag, const void *data),
                       const void *data);
IndexTotals ledger_waiting_of(Ledger *ledger, const TagId *tag);
/* Forgets all: the directory is gone. */
void ledger_reset(Ledger *ledger, const IndexTotals *indexed);

/* --- for flush.c, with the lock held --- */
void ledger_remove_locked(Ledger *ledger, Pending *pending);
void ledger_note_dropped_locked(Ledger *ledger, const ObjectId *id);

#endif
