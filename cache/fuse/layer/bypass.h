/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads that bypass the store, for objects that it cannot take: its disk has failed, or it is full
 * of objects that must stay. Ceph may not answer one for a long time, so each has a thread of its
 * own while it runs, up to 64 for an origin; more wait for one of these, without a thread. Their
 * buffers have a bound for all origins (bypass_budget.h).
 */
#ifndef HEARTH_CACHE_FUSE_LAYER_BYPASS_H
#define HEARTH_CACHE_FUSE_LAYER_BYPASS_H

#include "cache/origin/origin.h"
#include "cache/store/store.h"
#include "common/tasks.h"

typedef struct Bypass Bypass;

/* The caller's memory, zero but for task.run, which is called once when the read has ended. */
typedef struct BypassRead {
    Task task;
    ssize_t result; /* as bypass_begin() says */
    char *buf;      /* the bytes, if there are; the caller's to free, in task.run */
    struct PastRead *running;
} BypassRead;

typedef struct BypassRange {
    const char *path; /* below the origin's root */
    const ObjectKey *key;
    uint64_t off;
    size_t len;
} BypassRange;

Bypass *bypass_new(Origin *origin);
/*
 * Reads `len` bytes of the file, if it is still the file of the key. The result is the number of
 * bytes, `len`; -ESTALE: it is another file; -EIO: the range ends past the file's end; others: the
 * origin's.
 */
void bypass_begin(Bypass *bypass, BypassRead *read, const BypassRange *range);
/* Ends it soon, with this result unless it has one. What Ceph answers later is dropped. */
void bypass_withdraw(Bypass *bypass, BypassRead *read, int result);
/* Waits for the reads that are running. NULL is fine. */
void bypass_free(Bypass *bypass);

#endif
