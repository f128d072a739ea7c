/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files that write an image, from the bottom up: image_file.c (where things go in the
 * file), inode.c, dir.c, image.c (the whole).
 */
#ifndef HEARTH_CACHE_MANIFEST_IMAGE_INTERNAL_H
#define HEARTH_CACHE_MANIFEST_IMAGE_INTERNAL_H

#include "cache/manifest/image.h"

/* Inodes are gathered into runs of this, so that directory blocks do not break them up. */
#define EXTENT (1u << 20)

struct ErofsImage {
    int fd;
    uint64_t end;       /* of the file, in bytes: a multiple of the block */
    uint8_t *extent;    /* being filled */
    uint64_t extent_at; /* its offset in the file; 0: none */
    size_t extent_used;
    uint64_t inodes;
    GHashTable *links; /* inode number -> Link: names of it are still to come */
    GByteArray *body;  /* scratch: an inode with what follows it */
    GByteArray *block; /* scratch: directory blocks */
};

/* --- image_file.c --- */
/* Sets INVALID_DATA, naming the entry; FALSE. */
gboolean erofs_image_bad(GError **error, const ErofsImageEntry *entry, const char *why);
size_t erofs_image_align(size_t n, size_t unit);
gboolean erofs_image_write_at(ErofsImage *image, const void *data, size_t size, uint64_t at,
                              GError **error);
/* Writes the extent that is being filled, if there is one. */
gboolean erofs_image_flush_extent(ErofsImage *image, GError **error);
/* Copies an inode with what follows it to its place, the last `tail` bytes within one block; *nid
 * is its number. */
gboolean erofs_image_place(ErofsImage *image, const void *data, size_t size, size_t tail,
                           uint64_t *nid, GError **error);
/* Changes an inode that has its place. */
gboolean erofs_image_patch(ErofsImage *image, uint64_t nid, size_t offset, const void *data,
                           size_t size, GError **error);
/* Writes whole blocks at the end; *block is the first one's number. */
gboolean erofs_image_write_blocks(ErofsImage *image, const void *data, size_t size, uint32_t *block,
                                  GError **error);

/* inode.c: the inode of an entry, written unless another of its names was here before. */
gboolean erofs_image_write_inode(ErofsImage *image, const ErofsImageEntry *entry, uint64_t *nid,
                                 GError **error);

/* dir.c */
ErofsImageDir *erofs_image_dir_new(uint64_t nid, uint64_t parent);

#endif
