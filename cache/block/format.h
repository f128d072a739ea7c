/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is kept of an image on the cache's disk, and by nothing else. Numbers are little-endian and
 * of fixed width.
 *
 *   images/<id>/head    FormatHead: of which image, and when the rest may be believed
 *   images/<id>/sums    a 32-bit word for each block of the image
 *   images/<id>/data    the blocks, each at its own offset; sparse
 *
 * <id> is the first 128 bits of SHA-256 over the content's name, in hex: parts of the name are
 * chosen by tenants, who must not find another name with the same one.
 */
#ifndef HEARTH_CACHE_BLOCK_FORMAT_H
#define HEARTH_CACHE_BLOCK_FORMAT_H

#include <stdint.h>

#define FORMAT_IMAGES_NAME "images"
#define FORMAT_HEAD_NAME "head"
#define FORMAT_HEAD_NEW_NAME "head.new" /* renamed over the head */
#define FORMAT_SUMS_NAME "sums"
#define FORMAT_DATA_NAME "data"

#define FORMAT_HEAD_MAGIC "HRTHIMGE"
#define FORMAT_HEAD_VERSION 1
#define FORMAT_BLOCK_BYTES 4096

/* What a block's word says. A word and its data are written in either order and without a sync
 * between them: data that does not make the word is not believed. */
enum {
    FORMAT_SUM_ABSENT = 0,
    FORMAT_SUM_ZEROS = 1, /* and its data is not looked at */
    FORMAT_SUM_FIRST = 2, /* this or more: of XXH3-64 over the block, seeded with its number */
};

/* When the words of an image that changes may be believed. A snapshot's always may. */
enum {
    FORMAT_IMAGE_CLEAN = 1, /* given back in order: while the image has `version` */
    FORMAT_IMAGE_OPEN = 2,  /* in use: in the boot named, by who takes the lock from its user */
};

typedef struct __attribute__((packed)) FormatHead {
    char magic[8];
    uint32_t version;
    uint32_t state;
    uint64_t image_version; /* with CLEAN */
    uint64_t bytes;         /* of the image */
    char boot_id[40];       /* with OPEN; NUL padded */
    char nonce[40];         /* the note that was left with the image */
    char client[40];        /* with OPEN: its user's name, made like <id> */
    char name[256];         /* of the content, NUL padded */
    uint64_t checksum;      /* XXH3-64 of all before */
} FormatHead;

#endif
