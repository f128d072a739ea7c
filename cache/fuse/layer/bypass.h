/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads that bypass the store, for objects that it cannot take: its disk has failed, or it is full
 * of objects that must stay. Threads of their own make these reads, because Ceph may not answer one
 * for a long time, and the caller must not wait for that.
 */
#ifndef HEARTH_CACHE_FUSE_LAYER_BYPASS_H
#define HEARTH_CACHE_FUSE_LAYER_BYPASS_H

#include "cache/origin/origin.h"
#include "cache/store/store.h"

typedef struct Bypass Bypass;

Bypass *bypass_start(Origin *origin, unsigned threads);

typedef struct BypassRead {
    const char *path; /* below the origin's root */
    const ObjectKey *key;
    uint64_t off;
    size_t len;
    unsigned timeout_ms;
} BypassRead;

/*
 * Reads `len` bytes of the file, if it is still the file of the key. The number of bytes, `len`;
 * -ESTALE: it is another file; -ETIMEDOUT: the read goes on, but its result is dropped; -EIO: the
 * range ends past the file's end; others: the origin's.
 */
ssize_t bypass_read(Bypass *bypass, const BypassRead *wanted, void *buf);
/* Waits for the reads that are running. NULL is fine. */
void bypass_stop(Bypass *bypass);

#endif
