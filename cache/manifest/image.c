/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layout: block 0 has the superblock; then extents of inodes and runs of directory blocks follow
 * one another as they come. The root is the first inode, as its number has 16 bits. An inode is
 * written once, but a directory's is patched when its entries are known: it has its place before
 * them, since its children name it as "..".
 */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "cache/manifest/erofs.h"
#include "cache/manifest/image_internal.h"

gboolean image_bad(GError **error, const ImageEntry *entry, const char *why)
{
    g_autofree char *name = entry->name ? g_strescape(entry->name, NULL) : g_strdup("/");
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "\"%s\" %s", name, why);
    return FALSE;
}

static gboolean write_at(Image *image, const void *data, size_t size, uint64_t at, GError **error)
{
    const uint8_t *p = data;
    while (size > 0) {
        ssize_t n = pwrite(image->fd, p, size, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            int code = n < 0 ? errno : EIO;
            g_set_error(error, G_IO_ERROR, g_io_error_from_errno(code), "writing the manifest: %s",
                        g_strerror(code));
            return FALSE;
        }
        p += n;
        at += (uint64_t)n;
        size -= (size_t)n;
    }
    return TRUE;
}

static gboolean flush_extent(Image *image, GError **error)
{
    if (!image->extent_at)
        return TRUE;
    size_t size = (image->extent_used + EROFS_BLOCK - 1) / EROFS_BLOCK * EROFS_BLOCK;
    memset(image->extent + image->extent_used, 0, size - image->extent_used);
    uint64_t at = image->extent_at;
    image->extent_at = 0;
    return write_at(image, image->extent, size, at, error);
}

size_t image_align(size_t n, size_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* Where in the extent an inode of `size` goes, whose last `tail` bytes lie within one block. */
static size_t slot_for(const Image *image, size_t size, size_t tail)
{
    size_t start = image_align(image->extent_used, EROFS_SLOT);
    while (tail > 0 && (start + size - tail) / EROFS_BLOCK != (start + size - 1) / EROFS_BLOCK)
        start += EROFS_SLOT;
    return start;
}

gboolean image_place(Image *image, const void *data, size_t size, size_t tail, uint64_t *nid,
                     GError **error)
{
    if (!image->extent_at || slot_for(image, size, tail) + size > EXTENT) {
        if (!flush_extent(image, error))
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

gboolean image_patch(Image *image, uint64_t nid, size_t offset, const void *data, size_t size,
                     GError **error)
{
    uint64_t at = nid * EROFS_SLOT + offset;
    if (image->extent_at && at >= image->extent_at && at < image->extent_at + EXTENT) {
        memcpy(image->extent + (at - image->extent_at), data, size);
        return TRUE;
    }
    return write_at(image, data, size, at, error);
}

gboolean image_write_blocks(Image *image, const void *data, size_t size, uint32_t *block,
                            GError **error)
{
    uint64_t at = image->end;
    if ((at + size) / EROFS_BLOCK >= EROFS_HOLE) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_NO_SPACE, "the manifest would exceed 16 TiB");
        return FALSE;
    }
    *block = (uint32_t)(at / EROFS_BLOCK);
    image->end += size;
    return write_at(image, data, size, at, error);
}

Image *image_new(int fd, const ImageEntry *root, ImageDir **dir, GError **error)
{
    g_autoptr(Image) image = g_new0(Image, 1);
    image->fd = fd;
    image->end = EROFS_BLOCK;
    image->extent = g_malloc(EXTENT);
    image->links = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    image->body = g_byte_array_new();
    image->block = g_byte_array_new();
    uint64_t nid;
    if (!S_ISDIR(root->st.st_mode)) {
        image_bad(error, root, "is no directory");
        return NULL;
    }
    if (!image_write_inode(image, root, &nid, error))
        return NULL;
    *dir = image_dir_new(nid, nid);
    return g_steal_pointer(&image);
}

void image_free(Image *image)
{
    if (!image)
        return;
    g_free(image->extent);
    g_hash_table_unref(image->links);
    g_byte_array_unref(image->body);
    g_byte_array_unref(image->block);
    g_free(image);
}

uint64_t image_bytes(const Image *image)
{
    return image->end;
}

uint64_t image_inodes(const Image *image)
{
    return image->inodes;
}

gboolean image_finish(Image *image, const uint8_t uuid[16], uint64_t *bytes, GError **error)
{
    /* The last extent, when nothing came after it, ends where its last inode does. */
    if (image->extent_at && image->extent_at + EXTENT == image->end)
        image->end = image->extent_at + image_align(image->extent_used, EROFS_BLOCK);
    if (!flush_extent(image, error))
        return FALSE;
    ErofsSuper super = {
        .magic = htole32(EROFS_MAGIC),
        .feature_compat = htole32(EROFS_COMPAT_MTIME),
        .block_bits = EROFS_BLOCK_BITS,
        .root_nid = htole16(EROFS_BLOCK / EROFS_SLOT),
        .inodes = htole64(image->inodes),
        .blocks = htole32((uint32_t)(image->end / EROFS_BLOCK)),
        .feature_incompat = htole32(EROFS_INCOMPAT_CHUNKED_FILE),
    };
    memcpy(super.uuid, uuid, sizeof(super.uuid));
    uint8_t block[EROFS_BLOCK] = {0};
    memcpy(block + EROFS_SUPER_OFFSET, &super, sizeof(super));
    if (!write_at(image, block, sizeof(block), 0, error))
        return FALSE;
    if (ftruncate(image->fd, (off_t)image->end) != 0) {
        g_set_error(error, G_IO_ERROR, g_io_error_from_errno(errno), "writing the manifest: %s",
                    g_strerror(errno));
        return FALSE;
    }
    *bytes = image->end;
    return TRUE;
}
