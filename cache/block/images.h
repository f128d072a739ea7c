/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The images of which this node keeps blocks, below the store's directory. An image that is opened
 * through here is read from the disk where its blocks are there and right, and from Ceph where not,
 * a chunk at a time, which is then kept; what is written goes to Ceph and, when Ceph has it, into
 * the blocks. Several openings of one snapshot share what is kept of it.
 *
 *     device (fuse/device.h) -> image_cache_open()'s image -> origin/rbd.c
 *                                        |
 *                                images/<id>/ (block/format.h)
 *
 * The disk's errors are nobody's: without it, or without room, it is Ceph that is read.
 */
#ifndef HEARTH_CACHE_BLOCK_IMAGES_H
#define HEARTH_CACHE_BLOCK_IMAGES_H

#include "cache/origin/image.h"
#include "cache/store/store.h"

typedef struct ImageCache ImageCache;

typedef struct ImageCacheStats {
    uint64_t bytes_kept;               /* on the disk; of a snapshot, whoever uses it */
    uint64_t bytes_hit, bytes_fetched; /* answered from the disk; read from Ceph */
} ImageCacheStats;

/* `store` is borrowed. chunk_bytes: what a miss reads of Ceph, a power of two; 0: 64 KiB. */
ImageCache *image_cache_new(Store *store, const char *dir, uint32_t chunk_bytes);
/* Every image is closed. */
void image_cache_free(ImageCache *cache);

/*
 * Takes the image and returns one to be used in its place; the image itself when nothing is to be
 * kept of it. quota_bytes: most to keep of it; 0: no bound of its own. Blocks on Ceph.
 */
Image *image_cache_open(ImageCache *cache, Image *beneath, uint64_t quota_bytes);
/* For an image that was opened to be written past the cache: what is kept of it from before is
 * never believed again. Blocks on Ceph. */
void image_cache_forget(Image *image);
/* FALSE: it is none that image_cache_open() made. */
gboolean image_cache_stats(Image *image, ImageCacheStats *stats);
/* What it is called: borrowed, and NULL for one that image_cache_open() did not make. */
const char *image_cache_name(Image *image);
/* Forgets what is kept of the image of that name if somebody has it open, or of all (NULL), until
 * `bytes` are freed; what is read anew is kept again. Returns how many were. */
uint64_t image_cache_evict(ImageCache *cache, const char *name, uint64_t bytes);

#endif
