/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store's state, for the files of this folder, for fill/, for store.c and for tests.
 *
 * Locks, in order; none is held across an Origin call or I/O of object data:
 *
 *   pins_lock      one change of the pins at a time; held across their writing
 *   EvictTurn      one eviction at a time; held across unlinks and index commits
 *   flush_lock     one flush at a time; held across syncfs and index commits
 *   Fills.lock     fills and their chunks (cache/store/fill/fills.h)
 *   Space.lock     the sample of the file system's use
 *   Ledger.lock, Tags.lock, Disk.lock, Wake.lock, EvictTurn.lock     leaves
 *
 * Threads: `fill_threads` workers and more for those that are stuck (cache/store/fill/threads.c),
 * one flusher (flusher.c), one evictor (evict.c), one scrubber (scrub.c), all owned by store.c and
 * joined in store_close().
 *
 * Files, from the bottom up: space.c (how much may be held), verity.c, tags.c; flush.c; objects.c
 * (find, publish, drop) and scan.c; evicted.c, victims.c and evict.c; reserve.c; verify.c; scrub.c
 * and flusher.c (threads).
 */
#ifndef HEARTH_CACHE_STORE_OBJECTS_INTERNAL_H
#define HEARTH_CACHE_STORE_OBJECTS_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/statvfs.h>
#include "cache/store/disk/disk.h"
#include "cache/store/disk/layout.h"
#include "cache/store/index/index.h"
#include "cache/store/index/ledger.h"
#include "cache/store/objects/config.h"
#include "cache/store/objects/evicted.h"
#include "cache/store/objects/objects.h"
#include "cache/store/objects/tags.h"
#include "common/monotonic.h"
#include "common/wake.h"

/* What tests replace. NULL or 0: the real thing. */
typedef struct StoreHooks {
    const char *boot_id;
    gboolean named_partials;
    gboolean any_filesystem;
    uint64_t flush_ms;              /* 0: 5000 */
    uint64_t check_ms;              /* between checks of the file system's use; 0: 5000 */
    uint64_t retry_ms;              /* of the disk in bypass; 0: 30000 */
    uint64_t slack_ms;              /* uses closer together are one; 0: 60000; UINT64_MAX: none */
    uint64_t stuck_ms;              /* a fetch that takes longer does not count; 0: 1000 */
    uint64_t grace_ms;              /* a one-chunk fill waits so long for its reader; 0: 10 */
    uint64_t (*now_ms)(void *data); /* since 1970, for last uses */
    int (*statvfs)(void *data, int fd, struct statvfs *st);
    int (*syncfs)(void *data, int fd);
    int (*enable_verity)(void *data, int fd); /* 0 or -errno */
    ssize_t (*pwrite)(void *data, int fd, const void *buf, size_t len, off_t off);
    void *data;
} StoreHooks;

/* The file system as last seen, and what was removed but not yet seen to be free. */
typedef struct Space {
    pthread_mutex_t lock;
    gboolean sampled;            /* lock, and all below */
    uint64_t sampled_at_ms;      /* monotonic */
    uint64_t used, total;        /* bytes, as df(1) reckons */
    uint64_t files, files_total; /* 0: this file system does not count inodes */
    IndexTotals linked;          /* ledger_ever_linked() at that time */
    uint64_t asked;              /* charge of the largest fill that a reader got no space for */
    uint64_t credit_bytes, credit_files;
    uint64_t credit_at_ms;
} Space;

/* One eviction at a time. A fill that needs space now goes before background work. */
typedef struct EvictTurn {
    pthread_mutex_t lock;
    pthread_cond_t over;
    gboolean taken;   /* lock */
    unsigned waiting; /* lock: fills */
} EvictTurn;

struct Store {
    StoreConfig config; /* defaults filled in; dir is layout.path */
    StoreHooks hooks;
    Layout layout;
    Index *index;
    Ledger ledger;
    Tags tags;
    pthread_mutex_t pins_lock; /* one change of the pins at a time; held across their writing */
    Disk disk;
    Space space;
    struct Fills *fills; /* cache/store/fill/fills.h */

    pthread_mutex_t flush_lock;
    Wake flusher;
    pthread_t flusher_thread;
    atomic_int trust;       /* LayoutTrust: UNTRUSTED while objects without a record may be bad */
    atomic_bool scanned;    /* objects without a record have been dealt with */
    atomic_bool index_lost; /* replace it and scan */
    gboolean verity;        /* objects are sealed (verity.h) */
    atomic_ulong sealed;

    EvictTurn evict_turn;
    Evicted evicted;
    atomic_ulong refetched; /* objects */
    Wake evictor;
    pthread_t evictor_thread;
    atomic_ulong evicted_objects[STORE_EVICTS_REASONS], evicted_bytes[STORE_EVICTS_REASONS];
    StoreTimes times;
    atomic_ulong others[STORE_OTHERS]; /* bytes */

    Wake scrubber;
    pthread_t scrubber_thread;               /* unless scrub_bytes_per_sec is 0 */
    atomic_ulong bad_objects;                /* found by verifying, since start */
    atomic_ulong scrub_objects, scrub_bytes; /* of this pass, or the last one */
    atomic_ulong scrub_ended_ms;             /* since 1970; 0: not yet */
};

/* Milliseconds since 1970, for last uses. */
static inline uint64_t store_wall_ms(Store *store)
{
    if (store->hooks.now_ms)
        return store->hooks.now_ms(store->hooks.data);
    return (uint64_t)g_get_real_time() / 1000;
}

/* --- space.c --- */
/*
 * What to evict now: from above a high watermark to the low one, and until an object of the charge
 * `asked` fits. `pressing`: an eviction is under way, which goes on until below the low one.
 */
IndexTotals space_excess(Store *store, gboolean pressing, uint64_t asked);
/* Has the evictor make space for an object of this charge: a reader does not wait for it. */
void space_ask(Store *store, uint64_t charge);
/* The largest charge asked for, or 0, and forgets it. */
uint64_t space_take_asked(Store *store);
/* Objects were removed, whose space the file system may not show as free yet. */
void space_credit(Store *store, const IndexTotals *removed);
/* Forgets the sample: what was believed about the file system proved wrong. */
void space_forget(Store *store);
void space_bounds(Store *store, uint64_t *max_bytes, uint64_t *max_inodes);
/* How much of the bound other files use. */
uint64_t space_of_others(Store *store);
/* The configured bound: reserves `charge` if it fits, else sets what is missing. */
gboolean space_try_reserve(Store *store, const IndexTotals *charge, IndexTotals *missing);
/* Whether the file system has room for all that is reserved. `again`: measures it again first. */
gboolean space_file_system_fits(Store *store, gboolean again, IndexTotals *missing);
/* Whether the file system has no room for all that is reserved, without a word to the evictor. */
gboolean space_is_nearly_full(Store *store);
/* Whether objects already removed free this much as soon as the file system shows it. */
gboolean space_is_awaited(Store *store, const IndexTotals *missing);
/* Whether an object of this charge can ever be kept. */
gboolean space_is_enough_for(Store *store, uint64_t charge);

/* --- flush.c --- */
/* Syncs the objects waiting, then records them; deletes records of dropped ones; applies uses. */
int store_flush(Store *store);

/* --- objects.c --- */
/* Opens a complete object; a use is counted by store_open_object() alone. */
int store_open_present(Store *store, const ObjectId *id, uint64_t size);
/*
 * Links a complete, verified file in. The reservation of record_charge(size) becomes the object's,
 * unless an error is returned; -EEXIST: it is held already. `patient`: wait for a flush rather
 * than fail with -EBUSY.
 */
int store_publish(Store *store, Partial *partial, const Record *record, gboolean patient);
/* Removes an object that cannot be used. */
void store_drop(Store *store, const ObjectId *id);

/* --- scan.c --- */
/*
 * Handles objects that have no record: adopts them, or, when untrusted, removes them. Stops early
 * when the flusher is stopped. Run by one thread at a time.
 */
int store_scan(Store *store);

/* --- evict.c --- */
/* One eviction, over several turns: of one tag, or of all in the order of TagRank. */
typedef struct EvictRun {
    const TagId *tag;    /* NULL: all */
    gboolean pinned_too; /* with all tags: also pinned ones */
    StoreEvicts why;
    TagRank rank; /* with all tags: the rank that is evicted now */
    gboolean begun;
    uint64_t commits;  /* ledger_commits() then */
    gboolean flushed;  /* objects not recorded when it began are now listed too */
    gboolean done;     /* nothing is left that it may remove, or the disk failed */
    unsigned refused;  /* batches of which nothing could be removed */
    IndexTotals freed; /* files that existed and were removed */
} EvictRun;

/* How much of it is done in one turn. */
typedef struct EvictLimit {
    unsigned batches, batch; /* transactions, and objects of each */
    gboolean for_reader;     /* who waits: the order may miss uses of the last seconds */
} EvictLimit;

/*
 * Removes objects, in the order of victims.h, until both amounts or the limit are reached.
 * Returns what the index no longer counts, files that had gone already included. The caller has
 * the turn (evict_begin()) and must decide how much within the same turn: otherwise two evictions
 * would each remove what one was enough for.
 */
IndexTotals store_evict_locked(Store *store, EvictRun *run, uint64_t bytes, uint64_t objects,
                               const EvictLimit *limit);
void evict_begin(Store *store, gboolean for_fill);
void evict_end(Store *store);
void evict_turn_init(EvictTurn *turn);
void evict_turn_destroy(EvictTurn *turn);
void *store_evictor(void *store);

/* --- reserve.c --- */
/*
 * Reserves space for an object, evicting if it must. FALSE: there is none. A caller that is not
 * patient, because a reader waits, evicts a few hundred objects at most; if that is not enough, the
 * evictor makes the room, and a later call gets it.
 */
gboolean space_reserve(Store *store, uint64_t size, gboolean patient);
/* Likewise for an object that has a reservation, of which `bytes` more are to be written. Patient.
 */
gboolean space_reserve_more(Store *store, uint64_t bytes);

/* --- flusher.c --- */
void *store_flusher(void *store);

/* --- scrub.c --- */
void *store_scrubber(void *store);
/* Bytes a second, of a store that holds so much. */
uint64_t store_scrub_rate(const StoreConfig *config, uint64_t held);

#endif
