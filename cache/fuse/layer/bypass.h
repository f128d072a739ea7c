/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads past the store, for what it does not take: its disk has failed, or what it holds may not
 * go. They are made by threads of their own, because Ceph may keep a read for as long as it is
 * away, and whoever waits for one must not.
 */
#ifndef HEARTH_CACHE_FUSE_LAYER_BYPASS_H
#define HEARTH_CACHE_FUSE_LAYER_BYPASS_H

#include "cache/origin/origin.h"
#include "cache/store/store.h"

typedef struct Past Past;

Past *past_start(Origin *origin, unsigned threads);
/*
 * Reads `len` bytes of the file at `path` beneath the origin's root, if it is still the one of the
 * key. The number of bytes, `len`; -ESTALE: it is another file; -ETIMEDOUT after timeout_ms: the
 * read goes on, but nobody hears of it. -EIO: past the file's end; others: the origin's.
 */
ssize_t past_read(Past *past, const char *path, const ObjectKey *key, void *buf, size_t len,
                  uint64_t off, unsigned timeout_ms);
/* Waits for the reads under way. NULL is fine. */
void past_stop(Past *past);

#endif
