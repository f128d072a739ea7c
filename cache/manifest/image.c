/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The image as a whole, from its root to its superblock. The root is the first inode, because its
 * number has only 16 bits. An inode is written once, but a directory's is patched when its entries
 * are known: it is written before them, because its children name it as "..".
 */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "cache/manifest/erofs.h"
#include "cache/manifest/image_internal.h"
#include "common/io_error.h"

ErofsImage *erofs_image_new(int fd, const ErofsImageEntry *root, ErofsImageDir **dir,
                            GError **error)
{
    g_autoptr(ErofsImage) image = g_new0(ErofsImage, 1);
    image->fd = fd;
    image->end = EROFS_BLOCK;
    image->extent = g_malloc(EXTENT);
    image->links = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    image->body = g_byte_array_new();
    image->block = g_byte_array_new();
    uint64_t nid;
    if (!S_ISDIR(root->st.st_mode)) {
        erofs_image_bad(error, root, "is no directory");
        return NULL;
    }
    if (!erofs_image_write_inode(image, root, &nid, error))
        return NULL;
    *dir = erofs_image_dir_new(nid, nid);
    return g_steal_pointer(&image);
}

void erofs_image_free(ErofsImage *image)
{
    if (!image)
        return;
    g_free(image->extent);
    g_hash_table_unref(image->links);
    g_byte_array_unref(image->body);
    g_byte_array_unref(image->block);
    g_free(image);
}

uint64_t erofs_image_bytes(const ErofsImage *image)
{
    return image->end;
}

uint64_t erofs_image_inodes(const ErofsImage *image)
{
    return image->inodes;
}

gboolean erofs_image_finish(ErofsImage *image, const uint8_t uuid[16], uint64_t *bytes,
                            GError **error)
{
    /* The last extent, when nothing came after it, ends where its last inode does. */
    if (image->extent_at && image->extent_at + EXTENT == image->end)
        image->end = image->extent_at + erofs_image_align(image->extent_used, EROFS_BLOCK);
    if (!erofs_image_flush_extent(image, error))
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
    if (!erofs_image_write_at(image, block, sizeof(block), 0, error))
        return FALSE;
    if (ftruncate(image->fd, (off_t)image->end) != 0) {
        return io_fail(error, g_io_error_from_errno(errno), "writing the manifest: %s",
                       g_strerror(errno));
    }
    *bytes = image->end;
    return TRUE;
}
