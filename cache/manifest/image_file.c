/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where inodes and blocks go in the image's file. Block 0 has the superblock; then extents of
 * inodes and runs of directory blocks follow one another in the order in which they are written.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "cache/manifest/erofs.h"
#include "cache/manifest/image_internal.h"
#include "common/io_error.h"

gboolean erofs_image_bad(GError **error, const ErofsImageEntry *entry, const char *why)
{
    g_autofree char *name = entry->name ? g_strescape(entry->name, NULL) : g_strdup("/");
    return io_fail(error, G_IO_ERROR_INVALID_DATA, "\"%s\" %s", name, why);
}

gboolean erofs_image_write_at(ErofsImage *image, const void *data, size_t size, uint64_t at,
                              GError **error)
{
    const uint8_t *p = data;
    while (size > 0) {
        ssize_t n = pwrite(image->fd, p, size, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            int code = n < 0 ? errno : EIO;
            return io_fail(error, g_io_error_from_errno(code), "writing the manifest: %s",
                           g_strerror(code));
        }
        p += n;
        at += (uint64_t)n;
        size -= (size_t)n;
    }
    return TRUE;
}

gboolean erofs_image_flush_extent(ErofsImage *image, GError **error)
{
    if (!image->extent_at)
        return TRUE;
    size_t size = (image->extent_used + EROFS_BLOCK - 1) / EROFS_BLOCK * EROFS_BLOCK;
    memset(image->extent + image->extent_used, 0, size - image->extent_used);
    uint64_t at = image->extent_at;
    image->extent_at = 0;
    return erofs_image_write_at(image, image->extent, size, at, error);
}

size_t erofs_image_align(size_t n, size_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* Where in the extent an inode of `size` goes, whose last `tail` bytes lie within one block. */
static size_t slot_for(const ErofsImage *image, size_t size, size_t tail)
{
    size_t start = erofs_image_align(image->extent_used, EROFS_SLOT);
    while (tail > 0 && (start + size - tail) / EROFS_BLOCK != (start + size - 1) / EROFS_BLOCK)
        start += EROFS_SLOT;
    return start;
}

gboolean erofs_image_place(ErofsImage *image, const void *data, size_t size, size_t tail,
                           uint64_t *nid, GError **error)
{
    if (!image->extent_at || slot_for(image, size, tail) + size > EXTENT) {
        if (!erofs_image_flush_extent(image, error))
            return FALSE;
        image->extent_at = image->end;
        image->end += EXTENT;
        image->extent_used = 0;
    }
    size_t start = slot_for(image, size, tail);
    memset(image->extent + image->extent_used, 0, start - image->extent_used);
    memcpy(image->extent + start, data, size);
    image->extent_used = start + size;
    *nid = (image->extent_at + start) / EROFS_SLOT;
    return TRUE;
}

gboolean erofs_image_patch(ErofsImage *image, uint64_t nid, size_t offset, const void *data,
                           size_t size, GError **error)
{
    uint64_t at = nid * EROFS_SLOT + offset;
    if (image->extent_at && at >= image->extent_at && at < image->extent_at + EXTENT) {
        memcpy(image->extent + (at - image->extent_at), data, size);
        return TRUE;
    }
    return erofs_image_write_at(image, data, size, at, error);
}

gboolean erofs_image_write_blocks(ErofsImage *image, const void *data, size_t size, uint32_t *block,
                                  GError **error)
{
    uint64_t at = image->end;
    if ((at + size) / EROFS_BLOCK >= EROFS_HOLE) {
        return io_fail(error, G_IO_ERROR_NO_SPACE, "the manifest would exceed 16 TiB");
    }
    *block = (uint32_t)(at / EROFS_BLOCK);
    image->end += size;
    return erofs_image_write_at(image, data, size, at, error);
}
