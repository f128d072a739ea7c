/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was written here to a file since a version of it was cached: reads of these parts are not
 * answered from that version. Counted; thread-safe.
 *
 * There is a bound on the memory of all sets of the process. A set that would need more counts as
 * all of its file from then on: its file is not read from the cache.
 */
#ifndef HEARTH_CACHE_FUSE_WRITTEN_H
#define HEARTH_CACHE_FUSE_WRITTEN_H

#include <glib.h>
#include <stdint.h>

/* Parts are remembered in blocks of so many bytes, and so many blocks; with more, it is all. */
#define WRITTEN_BLOCK_BYTES 8192
#define WRITTEN_BLOCKS_MAX 16384

/* What a set takes, with what is kept for it (kept.h), and what each of its blocks takes. */
#define WRITTEN_SET_BYTES 512
#define WRITTEN_BLOCK_COST_BYTES 32

typedef struct Written Written;

/* Of all sets together. Before the first one. */
void written_memory_set(uint64_t bytes);
uint64_t written_memory_most(void);
uint64_t written_memory_held(void);

Written *written_new(void);
Written *written_ref(Written *written); /* NULL for NULL */
void written_unref(Written *written);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Written, written_unref)

/* How many blocks; more than WRITTEN_BLOCKS_MAX: all. */
unsigned written_blocks(Written *written);
/* Before the write begins. */
void written_add(Written *written, uint64_t off, uint64_t len);
/* The same for a write at the end, wherever that is. */
void written_add_at_end(Written *written);
/* Whether a read of a cached version, of `size` bytes, could miss something that was written.
 * NULL: nothing was. */
gboolean written_touches(Written *written, uint64_t off, uint64_t len, uint64_t size);

#endif
