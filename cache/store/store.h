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
 *   <dir>/pins              pinned tags, which are not evicted
 *   <dir>/manifests/        of datasets; other code owns them, the store leaves them room
 *   <dir>/index.mdb         LMDB: id -> size, checksum, last use, tag; rebuilt by a scan if lost
 *
 * The interface has three parts: this file, objects/objects.h and fill/fill.h.
 *
 * Every public function is safe from any thread. No lock of the store is held across an Origin
 * call or disk I/O of object data. Data-path functions return 0/count or -errno.
 */
#ifndef HEARTH_CACHE_STORE_STORE_H
#define HEARTH_CACHE_STORE_STORE_H

#include "cache/store/disk/disk.h"
#include "cache/store/fill/fill.h"
#include "cache/store/objects/config.h"
#include "cache/store/objects/objects.h"

typedef struct StoreStats {
    uint64_t objects, bytes;            /* held */
    uint64_t max_bytes, max_inodes;     /* effective bounds */
    unsigned high_percent, low_percent; /* watermarks */
    uint64_t evicted_objects, evicted_bytes;
    uint64_t evicted_objects_by[STORE_EVICTS_REASONS], evicted_bytes_by[STORE_EVICTS_REASONS];
    uint64_t fills_started, fills_completed, fills_failed, fills_active;
    uint64_t origin_bytes;            /* read from origins by fills */
    uint64_t origin_reads, origin_us; /* how many reads that took, and their time */
    uint64_t refetched;               /* objects that were fetched again after their eviction */
    uint64_t buffer_bytes, max_buffer_bytes; /* of fetches that are under way */
    uint64_t disk_errors;
    uint64_t bad_objects;                /* found by verifying */
    uint64_t scrub_rate;                 /* bytes a second; 0: there is none */
    uint64_t scrub_objects, scrub_bytes; /* of this pass of the scrub, or the last one */
    uint64_t scrub_ended_ms;             /* when the last pass ended, since 1970; 0: none has */
    gboolean verity_wanted, verity;      /* whether objects are sealed by fs-verity */
    uint64_t sealed;                     /* objects, since start */
    StoreDisk disk;
} StoreStats;

/* Creates or opens the directory. Errors: G_IO_ERROR; the message names the path and the fix. */
Store *store_open(const StoreConfig *config, GError **error);
/* Cancels fills, flushes the index, frees. Every StoreFill must have been released before. */
void store_close(Store *store);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Store, store_close)

/* For code with files of its own in the directory: the disk's health, and a report of an error. */
StoreDisk store_disk(Store *store);
void store_report_disk(Store *store, int error);
const char *store_boot_id(const Store *store);

/* A mount of the tag is now served (on), or no longer. Calls with on and off are counted. */
void store_use(Store *store, const char *tag, gboolean on);
/*
 * Objects of a pinned tag are evicted only by a request that names the tag. Pins survive restarts.
 * 0, or -errno: the pin could not be saved, and nothing has changed.
 */
int store_pin(Store *store, const char *tag, gboolean on);
gboolean store_is_pinned(Store *store, const char *tag);
/* The tags that are pinned: strings, freed with the array. */
GPtrArray *store_pins(Store *store);
/*
 * Gives this tag those of the objects that belong to a tag of lower rank (pinned, in use, neither):
 * an object that several datasets share is as safe as the safest dataset. Returns how many changed.
 */
size_t store_adopt(Store *store, const char *tag, const ObjectId *ids, size_t n);

/* Bytes and objects held that were filled for this tag. */
void store_tag_usage(Store *store, const char *tag, uint64_t *bytes, uint64_t *objects);
void store_stats(Store *store, StoreStats *stats);
/* Bytes of buffers that fetches take at most, with so many threads (0: the default). */
uint64_t store_buffers_most(unsigned fill_threads);
/* Borrowed; it is updated while it is read. */
const StoreTimes *store_times(const Store *store);

#endif
