/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store's parts together, for the files of this folder and their tests.
 *
 * Locks, in order; none is held across an Origin call or I/O of object data:
 *
 *   pins_lock      one change of the pins at a time; held across their writing
 *   EvictTurn      one eviction at a time; held across unlinks and index commits
 *   flush_lock     one flush at a time; held across syncfs and index commits
 *   Fills.lock     fills and their chunks (cache/store/fill/fill.h)
 *   Room.lock      the sample of the file system's use
 *   Ledger.lock, Claims.lock, Disk.lock, Wake.lock, EvictTurn.lock     leaves
 *
 * Threads: `fill_threads` workers (cache/store/fill/fill.c), one flusher (flush.c), one evictor
 * (evict.c), one scrubber (scrub.c), all owned by store.c and joined in store_close().
 */
#ifndef HEARTH_CACHE_STORE_INTERNAL_H
#define HEARTH_CACHE_STORE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/statvfs.h>
#include "cache/store/claims.h"
#include "cache/store/disk.h"
#include "cache/store/fill/fill.h"
#include "cache/store/index/index.h"
#include "cache/store/layout.h"
#include "cache/store/ledger.h"
#include "cache/store/store.h"
#include "cache/store/wake.h"

/* What tests replace. NULL or 0: the real thing. */
typedef struct StoreHooks {
    const char *boot_id;
    gboolean named_partials;
    gboolean any_filesystem;
    uint64_t flush_ms;              /* 0: 5000 */
    uint64_t check_ms;              /* between looks at the file system's use; 0: 5000 */
    uint64_t retry_ms;              /* of the disk in bypass; 0: 30000 */
    uint64_t slack_ms;              /* uses closer together are one; 0: 60000; UINT64_MAX: none */
    uint64_t grace_ms;              /* a one-chunk fill waits so long for its reader; 0: 10 */
    uint64_t (*now_ms)(void *data); /* since 1970, for last uses */
    int (*statvfs)(void *data, int fd, struct statvfs *st);
    int (*syncfs)(void *data, int fd);
    int (*enable_verity)(void *data, int fd); /* 0 or -errno */
    ssize_t (*pwrite)(void *data, int fd, const void *buf, size_t len, off_t off);
    void *data;
} StoreHooks;

/* As store_open(); hooks are copied, hooks->data and boot_id borrowed until store_close(). */
Store *store_open_hooked(const StoreConfig *config, const StoreHooks *hooks, GError **error);

/* The file system as last seen, and what was removed but not yet seen to be free. */
typedef struct Room {
    pthread_mutex_t lock;
    gboolean sampled;            /* lock, and all below */
    uint64_t sampled_at_ms;      /* monotonic */
    uint64_t used, total;        /* bytes, as df(1) reckons */
    uint64_t files, files_total; /* 0: this file system does not count inodes */
    IndexTotals linked;          /* ledger_ever_linked() at that time */
    uint64_t credit_bytes, credit_files;
    uint64_t credit_at_ms;
} Room;

/* Whose turn it is to evict. A fill that needs room now goes before work in the background. */
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
    Claims claims;
    pthread_mutex_t pins_lock; /* one change of the pins at a time; held across their writing */
    Disk disk;
    Room room;
    Fills fills;

    pthread_mutex_t flush_lock;
    Wake flusher;
    pthread_t flusher_thread;
    atomic_int trust;       /* LayoutTrust: UNTRUSTED while objects without a record may be bad */
    atomic_bool scanned;    /* objects without a record have been dealt with */
    atomic_bool index_lost; /* begin it anew and scan */
    gboolean verity;        /* objects are sealed (verity.h) */
    atomic_ulong sealed;

    EvictTurn evict_turn;
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

/* --- store.c --- */
uint64_t store_wall_ms(Store *store);

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
/* --- flush.c --- */
/* Syncs the objects waiting, then records them; deletes records of dropped ones; applies uses. */
int store_flush(Store *store);
void *store_flusher(void *store);

/* --- scan.c --- */
/*
 * Deals with objects that have no record: adopts them, or, when untrusted, removes them. Stops
 * early when the flusher is told to stop. Run by one thread at a time.
 */
int store_scan(Store *store);

/* --- space.c --- */
/* Reserves room for an object, evicting if it must. FALSE: there is none. */
gboolean room_reserve(Store *store, uint64_t size);
/*
 * What to evict now: from above a high watermark to the low one; when `pressing`, to go on until
 * below the low one.
 */
IndexTotals room_excess(Store *store, gboolean pressing);
/* Tells that objects were removed, whose space the file system may not show as free yet. */
void room_credit(Store *store, const IndexTotals *removed);
/* Forgets the sample: what was believed about the file system proved wrong. */
void room_forget(Store *store);
void room_bounds(Store *store, uint64_t *max_bytes, uint64_t *max_inodes);
/* What others have of the bound. */
uint64_t room_others(Store *store);

/* --- evict.c --- */
/* One eviction, over several turns: of one tag, or of all in the order of ClaimRank. */
typedef struct EvictRun {
    const TagId *tag;    /* NULL: all */
    gboolean pinned_too; /* of all: also what is pinned */
    StoreEvicts why;
    ClaimRank rank; /* of all: whose turn it is */
    IndexCursor cursor;
    gboolean flushed;  /* also what was not recorded when it began is listed */
    gboolean done;     /* nothing is left that it may remove, or the disk failed */
    IndexTotals freed; /* what really was there and is gone */
} EvictRun;

/*
 * Removes objects, least recently used first, until both amounts are reached or max_batches done.
 * Returns what the index no longer counts, files that had gone already included. Within a turn:
 * decide how much in the same turn, or two will each remove what one was enough for.
 */
IndexTotals store_evict_locked(Store *store, EvictRun *run, uint64_t bytes, uint64_t objects,
                               unsigned max_batches);
void evict_begin(Store *store, gboolean for_fill);
void evict_end(Store *store);
void evict_turn_init(EvictTurn *turn);
void evict_turn_destroy(EvictTurn *turn);
void *store_evictor(void *store);

/* --- scrub.c --- */
void *store_scrubber(void *store);

#endif
