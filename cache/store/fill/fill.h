/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills: an object is fetched from its origin once, while any number of readers read it. Part of
 * the store's interface; users include cache/store/store.h.
 *
 *   ACTIVE --all chunks fetched, file unchanged--> COMPLETE   readable from its descriptor for ever
 *   ACTIVE --error, change, cancellation--> FAILED            readers go to the origin
 */
#ifndef HEARTH_CACHE_STORE_FILL_FILL_H
#define HEARTH_CACHE_STORE_FILL_FILL_H

#include <sys/queue.h>
#include "cache/store/objects/objects.h"
#include "common/tasks.h"

typedef struct StoreFill StoreFill;
typedef struct StorePace StorePace;

/*
 * Joins the fill of an object or begins it: any number of callers share one fetch. `tag` names the
 * volume or dataset that it is for, for accounting. The fill takes references of its own on node,
 * and runs on the store's threads until complete, also after every caller has left. Before the
 * object is linked in, the node's attributes are read again: if they no longer make `key`, it is
 * discarded. Returns NULL when the store cannot take it (disk in bypass, no room even after
 * eviction, larger than the bound, 1024 fills under way, or half of these from one origin): read
 * from the origin then. An object that is already held is not fetched again: the fill is complete
 * from the start.
 */
StoreFill *store_fill(Store *store, Origin *origin, OriginNode *node, const ObjectKey *key,
                      const char *tag);
/*
 * As store_fill() for a file that is known by its path beneath the origin's root. The thread that
 * fetches looks it up, so this call does not wait for Ceph. An object that is larger than
 * StoreConfig.whole_bytes is fetched as far as it is read, and when every caller has left, what is
 * there stays for the next one (parts.c). NULL also while it is read through another origin.
 */
StoreFill *store_fill_path(Store *store, Origin *origin, const char *path, const ObjectKey *key,
                           const char *tag);
/* What is to be fetched. Borrowed for the call. */
typedef struct FillRequest {
    Origin *origin;
    OriginNode *node; /* NULL: it is known by its path */
    const char *path;
    const ObjectKey *key;
    const char *tag;
    StorePace *pace; /* of a fill ahead; NULL: no bound */
} FillRequest;

/*
 * As store_fill(), or with node NULL as store_fill_path(), for an object that no reader needs yet.
 * It is fetched when no reader waits, as fast as its pace allows, and leaves a thread to readers.
 * Once a reader joins by the functions above it is a fill like any other.
 */
StoreFill *store_fill_ahead(Store *store, const FillRequest *request);
/* Waits until the byte at `off` is there, for timeout_ms at most, without raising its priority. 0,
 * -ETIMEDOUT, or the error that readers of a failed fill get. */
int store_fill_await(StoreFill *fill, uint64_t off, unsigned timeout_ms);
/* As store_fill_unref(), and ends a fill from store_fill_ahead() without other users. */
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
/*
 * A reader that waits without a thread. Its own memory, zero but for task.run, which is called once
 * by tasks_common() after the bytes are there (`result` 0), the fill has failed (-errno as
 * store_fill_read()) or the wait was withdrawn. The reader has a reference of the fill until then.
 */
typedef struct FillWait {
    Task task; /* run NULL: a thread waits */
    int result;
    StoreFill *fill;
    uint64_t chunk, last; /* Fills.lock, as the next */
    gboolean waits;
    TAILQ_ENTRY(FillWait) link;
} FillWait;

/* 0: the bytes are there; -EINPROGRESS: task.run will be called, or was already; or -errno. Never
 * waits for Ceph, and never fetches. */
int store_fill_begin_read(StoreFill *fill, FillWait *wait, size_t len, uint64_t off);
/* Bytes that are there. As store_fill_read(), but never waits. */
ssize_t store_fill_read_now(StoreFill *fill, void *buf, size_t len, uint64_t off);
/* After -EINPROGRESS, until task.run was called: calls it soon, with this result unless it has one.
 * The fill continues. */
void store_fill_withdraw(FillWait *wait, int result);
/* Fetches all of it and waits until then. 0, or -errno; -ESTALE: the file changed while it was
 * filled; -ECANCELED. */
int store_fill_wait(StoreFill *fill);
StoreFill *store_fill_ref(StoreFill *fill);
void store_fill_unref(StoreFill *fill);
/* Stops every fill from this origin and waits until none uses it (before origin_close). */
void store_cancel_fills(Store *store, Origin *origin);

/* Drops what no reader uses of objects that were fetched in part, of a tag or (NULL) of all, until
 * `bytes` are freed. Returns how many were. */
uint64_t store_evict_parts(Store *store, const char *tag, uint64_t bytes);

/*
 * The inode is about to be written through the origin: running fills of it still serve their
 * readers, but are not kept.
 */
void store_spoil_fills(Store *store, const Origin *origin, uint64_t ino);

#endif
