/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The images whose blocks this node keeps, below the store's directory. An image that is opened
 * through here is read from the disk where its blocks are valid, and otherwise from Ceph, a chunk
 * at a time, which is then kept. Writes go to Ceph and, when Ceph has them, into the blocks.
 * Several openings of one snapshot share its blocks.
 *
 *     device (fuse/device.h) -> image_cache_open()'s image -> origin/rbd/
 *                                        |
 *                                images/<id>/ (block/format.h)
 *
 * Errors of the disk are never returned: without the disk, or without space, Ceph is read.
 */
#ifndef HEARTH_CACHE_BLOCK_IMAGES_H
#define HEARTH_CACHE_BLOCK_IMAGES_H

#include "cache/origin/image.h"
#include "cache/store/store.h"

typedef struct ImageCache ImageCache;

typedef struct ImageCacheStats {
    uint64_t bytes_kept;               /* on the disk; of a snapshot, by all its users */
    uint64_t bytes_hit, bytes_fetched; /* answered from the disk; read from Ceph */
} ImageCacheStats;

/* `store` is borrowed. chunk_bytes: how much a miss reads from Ceph, a power of two; 0: 64 KiB. */
ImageCache *image_cache_new(Store *store, const char *dir, uint32_t chunk_bytes);
/* Every image is closed. */
void image_cache_free(ImageCache *cache);

/*
 * Takes the image and returns one to use in its place; the image itself when nothing can be kept of
 * it. quota_bytes: the most to keep of it; 0: no bound of its own. Blocks on Ceph.
 */
Image *image_cache_open(ImageCache *cache, Image *beneath, uint64_t quota_bytes);
/* For an image that is opened for writing without the cache: its blocks from before are not used
 * again. Blocks on Ceph. */
void image_cache_forget(Image *image);
/* FALSE: image_cache_open() did not make it. */
gboolean image_cache_stats(Image *image, ImageCacheStats *stats);
/* Its name: borrowed, and NULL for an image that image_cache_open() did not make. */
const char *image_cache_name(Image *image);
/* Bytes of the buffers of all images. */
void image_cache_buffers(const ImageCache *cache, uint64_t *used, uint64_t *most);
/* Forgets blocks of the image of that name if it is open, or of all images (NULL), until `bytes`
 * are freed. Blocks that are read later are kept again. Returns the bytes freed. */
uint64_t image_cache_evict(ImageCache *cache, const char *name, uint64_t bytes);

#endif
