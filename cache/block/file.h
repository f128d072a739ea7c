/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks of one image on the cache's disk, and which of them are valid. A block that is read is
 * compared with its checksum, so a block that was not fully written, that is being punched out or
 * that has rotted counts as absent.
 *
 * Any thread may call, several at a time for one range: a reader then gets one or the other. The
 * writer of a range must exclude other writers (in_flight.h). Offsets and lengths are whole
 * blocks unless said otherwise. Returns are 0, or -errno of the disk.
 */
#ifndef HEARTH_CACHE_BLOCK_FILE_H
#define HEARTH_CACHE_BLOCK_FILE_H

#include <glib.h>
#include <stdint.h>
#include "cache/block/format.h"

#define BLOCK_BYTES FORMAT_BLOCK_BYTES

typedef struct BlockFile BlockFile;

/* Opens or makes <dir_fd>/<id>. Its head says whether its blocks may be used. */
int block_file_open(int dir_fd, const char *name, BlockFile **file);
void block_file_close(BlockFile *file);
/* "<32 hex>" of a content's name. */
#define BLOCK_FILE_ID_BYTES 33
void block_file_id(const char *name, char id[BLOCK_FILE_ID_BYTES]);

/* The head as last written; NULL: there is none that is whole and of this image. Borrowed. */
const FormatHead *block_file_head(const BlockFile *file);
/* Replaces it, durably: after the words, when it is CLEAN. The checksum and name are filled in. */
int block_file_mark(BlockFile *file, const FormatHead *head);
/* Forgets every block, and the head. */
int block_file_wipe(BlockFile *file);

/* Reads all of the range. -ENOENT: some block of it is absent; buf is undefined then. */
int block_file_read(BlockFile *file, void *buf, size_t len, uint64_t off);
/* Whether all of it seems present: by the words alone. */
gboolean block_file_has(BlockFile *file, uint64_t off, uint64_t len);
/* Writes the data, not the words: they are `sums`, one a block, for block_file_vouch(). */
int block_file_write(BlockFile *file, const void *buf, size_t len, uint64_t off, uint32_t *sums);
/* Makes data present; `sums` NULL: as zeros, without data. */
int block_file_vouch(BlockFile *file, const uint32_t *sums, uint64_t off, uint64_t len);
/* Makes it absent. */
int block_file_forget(BlockFile *file, uint64_t off, uint64_t len);
/* Frees the disk space of a range that was forgotten or vouched for as zeros. */
void block_file_punch(BlockFile *file, uint64_t off, uint64_t len);
/* Forgets all blocks beyond the image's end. */
int block_file_truncate(BlockFile *file, uint64_t bytes);

/* Whether all words that were written could be. */
int block_file_sync(BlockFile *file);
/* On the disk, as du(1) reckons. */
uint64_t block_file_bytes(BlockFile *file);

#endif
