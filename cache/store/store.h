/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store: whole-file objects on the node's NVMe. An object is named by where its bytes come
 * from (ObjectKey), so it never needs invalidation: a changed file has another name. One hearthd
 * owns one store directory (lock file).
 *
 *   <dir>/hearth-store      magic, format version, boot id of the last owner
 *   <dir>/lock              flock(2) by the owner
 *   <dir>/objects/xx/<id>   complete objects, linked in only when complete; xx = first byte of id
 *   <dir>/partial/          fills under way; emptied at start
 *   <dir>/pins              tags that are not to be evicted
 *   <dir>/manifests/        of datasets; not the store's, which only leaves them room
 *   <dir>/index.mdb         LMDB: id -> size, checksum, last use, tag; rebuilt by a scan if lost
 *
 * Every public function is safe from any thread. No lock of the store is held across an Origin
 * call or disk I/O of object data. Data-path functions return 0/count or -errno.
 */
#ifndef HEARTH_CACHE_STORE_STORE_H
#define HEARTH_CACHE_STORE_STORE_H

#include <glib.h>
#include <stdint.h>
#include "cache/origin/origin.h"
#include "common/metrics/histogram.h"

typedef struct Store Store;
typedef struct StoreFill StoreFill;
typedef struct StorePace StorePace;

/* The first 128 bits of SHA-256 over the packed little-endian ObjectKey. */
typedef struct ObjectId {
    uint8_t bytes[16];
} ObjectId;

/*
 * Identity of content. Snapshots and live inodes of one version share an object. mtime and size
 * stand beside the version, because a client that dies with unflushed changes lets the next
 * writer reuse a version number.
 */
typedef struct ObjectKey {
    uint8_t space[24]; /* Origin.space */
    uint64_t ino;
    uint64_t version;
    uint64_t size;
    int64_t mtime_sec;
    uint32_t mtime_nsec;
} ObjectKey;

void object_key_init(ObjectKey *key, const Origin *origin, const OriginAttr *attr);
void object_key_id(const ObjectKey *key, ObjectId *id);

typedef enum StoreDisk {
    STORE_DISK_OK,
    STORE_DISK_SUSPECT, /* an I/O error was seen; the next few decide */
    STORE_DISK_BYPASS,  /* not used: reads go to Ceph; tried again after a while */
} StoreDisk;

typedef struct StoreConfig {
    const char *dir;
    uint64_t max_bytes;  /* objects together; 0: bounded by the file system's free space alone */
    uint64_t max_inodes; /* 0: likewise */
    unsigned high_percent, low_percent; /* watermarks; 0: 90 and 80 */
    unsigned fill_threads;              /* 0: 4 */
    size_t chunk_bytes;                 /* unit of a fill; 0: 4 MiB */
    gboolean verity;                    /* fs-verity, where it is to be had */
    uint64_t scrub_bytes_per_sec;       /* read to verify objects in the background; 0: none */
} StoreConfig;

/* Why objects are evicted. */
typedef enum StoreEvicts {
    STORE_EVICTS_ROOM,  /* the bounds, or the disk's room */
    STORE_EVICTS_QUOTA, /* of the volume */
    STORE_EVICTS_ASKED, /* somebody wanted it */
    STORE_EVICTS_REASONS
} StoreEvicts;

/* How long things take, since the store was opened. */
typedef struct StoreTimes {
    Histogram fills; /* of an object, from its being asked for until it is kept */
    Histogram reads; /* of an origin, by fills */
    atomic_ulong failed_reads;
} StoreTimes;

typedef struct StoreStats {
    uint64_t objects, bytes;            /* held */
    uint64_t max_bytes, max_inodes;     /* effective bounds */
    unsigned high_percent, low_percent; /* watermarks */
    uint64_t evicted_objects, evicted_bytes;
    uint64_t evicted_objects_by[STORE_EVICTS_REASONS], evicted_bytes_by[STORE_EVICTS_REASONS];
    uint64_t fills_started, fills_completed, fills_failed, fills_active;
    uint64_t origin_bytes; /* read from origins by fills */
    uint64_t disk_errors;
    uint64_t bad_objects;                /* found by verifying */
    uint64_t scrub_rate;                 /* bytes a second; 0: there is none */
    uint64_t scrub_objects, scrub_bytes; /* of this pass of the scrub, or the last one */
    uint64_t scrub_ended_ms;             /* when the last pass ended, since 1970; 0: none has */
    gboolean verity_wanted, verity;      /* whether objects are sealed by fs-verity */
    uint64_t sealed;                     /* objects, since start */
    StoreDisk disk;
} StoreStats;

/* Creates or opens the directory. Errors: G_IO_ERROR; the message names the path and the mend. */
Store *store_open(const StoreConfig *config, GError **error);
/* Cancels fills, flushes the index, frees. Every StoreFill must have been given back. */
void store_close(Store *store);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Store, store_close)

/*
 * Opens a complete object for reading and counts a use. Returns the descriptor (caller closes),
 * -ENOENT when it is not held, another -errno when the disk fails. An object whose length is not
 * `size` is dropped and reported as not held.
 */
int store_open_object(Store *store, const ObjectId *id, uint64_t size);
/* Whether a complete object is held: no disk access beyond the index. */
gboolean store_has(Store *store, const ObjectId *id);

/*
 * Joins the fill of an object or begins it: however many callers, one fetch. `tag` names who wants
 * it (a volume, a dataset) for accounting. The fill takes references of its own on node, and runs
 * on the store's threads until complete, also after every caller has left. Before the object is
 * linked in, the node's attributes are read again: if they no longer make `key`, it is discarded.
 * Returns NULL when the store cannot take it (disk in bypass, no room even after eviction, larger
 * than the bound, 1024 fills under way): read from the origin then. What is held already is not
 * fetched again: the fill is complete from the start.
 */
StoreFill *store_fill(Store *store, Origin *origin, OriginNode *node, const ObjectKey *key,
                      const char *tag);
/*
 * As store_fill() of a file that is known by its path beneath the origin's root: whoever fetches
 * looks it up, so nothing here waits for Ceph.
 */
StoreFill *store_fill_path(Store *store, Origin *origin, const char *path, const ObjectKey *key,
                           const char *tag);
/*
 * As store_fill(), or with node NULL as store_fill_path(), of what nobody waits for yet. It is
 * fetched when no reader needs anything, as fast as `pace` allows (NULL: no bound), and leaves
 * readers a thread; once one joins by the functions above it is a fill like any other.
 */
StoreFill *store_fill_ahead(Store *store, Origin *origin, OriginNode *node, const char *path,
                            const ObjectKey *key, const char *tag, StorePace *pace);
/* Waits until the byte at `off` is there, for timeout_ms at most, and hurries nothing. 0,
 * -ETIMEDOUT, or what a failed fill gives its readers. */
int store_fill_await(StoreFill *fill, uint64_t off, unsigned timeout_ms);
/* As store_fill_unref(), and ends a fill from store_fill_ahead() that nobody else has. */
void store_fill_abandon(StoreFill *fill);
/* A bound on bytes per second, over all fills that have it. The caller's reference. */
StorePace *store_pace_new(uint64_t bytes_per_sec);
void store_pace_unref(StorePace *pace);
/*
 * Reads bytes of an object being filled, waiting for the chunks that hold them; asked-for chunks
 * are fetched before others. Short only at the end of the object. -EIO and others: the fill failed
 * (a store fault or the origin's error); the caller reads from the origin instead.
 */
ssize_t store_fill_read(StoreFill *fill, void *buf, size_t len, uint64_t off);
/* As store_fill_read(), for timeout_ms at most: -ETIMEDOUT, and the fill goes on. The caller's
 * thread never fetches, so it waits for nothing else. */
ssize_t store_fill_read_within(StoreFill *fill, void *buf, size_t len, uint64_t off,
                               unsigned timeout_ms);
/* Waits until complete. 0, or -errno; -ESTALE: the file changed while it was filled; -ECANCELED. */
int store_fill_wait(StoreFill *fill);
StoreFill *store_fill_ref(StoreFill *fill);
void store_fill_unref(StoreFill *fill);
/* Stops every fill from this origin and waits until none uses it (before origin_close). */
void store_cancel_fills(Store *store, Origin *origin);

/*
 * Somebody is about to write that inode through the origin: what fills of it that are under way
 * read is given to their readers and not kept.
 */
void store_spoil_fills(Store *store, const Origin *origin, uint64_t ino);

/* Tells of an error in reading an object's descriptor: drops the object, feeds disk health. */
void store_report_bad(Store *store, const ObjectId *id, int error);

#define STORE_VERIFY_BAD_MAX 32
/* A verification, in the order of object ids, over as many calls as it takes. */
typedef struct StoreVerify {
    /* Whether to verify one of another tag too; NULL: no. */
    gboolean (*wanted)(void *data, const ObjectId *id);
    void *data;
    gboolean started;
    ObjectId after; /* where the next call goes on; all zero: the beginning */
    gboolean end;   /* nothing is left */
    /* Of this call: */
    uint64_t objects, bytes;
    uint64_t unchecked; /* of objects: nothing to compare with, since the index was lost */
    unsigned bad;       /* of objects; they are dropped, and fetched again when read */
    ObjectId bad_ids[STORE_VERIFY_BAD_MAX];
} StoreVerify;
/* Verifies what is tagged `tag` (NULL: all), some max_bytes of it. 0 or -errno of the index. */
int store_verify_some(Store *store, const char *tag, StoreVerify *run, uint64_t max_bytes);

/* What else is kept in the directory. It counts as if objects had it, up to half of the bound. */
typedef enum StoreOther { STORE_OTHER_MANIFESTS, STORE_OTHER_IMAGES, STORE_OTHERS } StoreOther;
void store_set_other_bytes(Store *store, StoreOther other, uint64_t bytes);
/* How many bytes images may have: what objects leave, and half of all at least. */
uint64_t store_image_room(Store *store);

/* For who keeps files of its own in the directory: the disk's health, and what it is told of. */
StoreDisk store_disk(Store *store);
void store_report_disk(Store *store, int error);
const char *store_boot_id(const Store *store);

/*
 * Drops objects tagged `tag`, least recently used first, until `bytes` are freed (UINT64_MAX: all).
 * NULL: of all tags but pinned ones, those in use last; as eviction does that nobody asked for.
 * Returns the bytes freed.
 */
uint64_t store_evict(Store *store, const char *tag, uint64_t bytes);
/* As with NULL, and pinned ones after all others. */
uint64_t store_evict_pinned_too(Store *store, uint64_t bytes);
/* For the quota of the tag. */
uint64_t store_evict_over_quota(Store *store, const char *tag, uint64_t bytes);

/* Tells that a mount of what is tagged so is served, or no longer (each as often as the other). */
void store_use(Store *store, const char *tag, gboolean on);
/* A pinned tag's objects go only when it is named; it stays so over restarts. 0, or -errno: it
 * could not be noted down, and nothing has changed. */
int store_pin(Store *store, const char *tag, gboolean on);
gboolean store_is_pinned(Store *store, const char *tag);
/* The tags that are pinned: strings, freed with the array. */
GPtrArray *store_pins(Store *store);
/*
 * Of these objects, those held that were filled for a tag with less of a claim (pinned, in use,
 * none) become this tag's: what several datasets have in common is as safe as the safest of them.
 * Returns how many did.
 */
size_t store_adopt(Store *store, const char *tag, const ObjectId *ids, size_t n);

/* Bytes and objects held that were filled for this tag. */
void store_tag_usage(Store *store, const char *tag, uint64_t *bytes, uint64_t *objects);
void store_stats(Store *store, StoreStats *stats);
/* Borrowed; it goes on. */
const StoreTimes *store_times(const Store *store);

#endif
