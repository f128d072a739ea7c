/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What block/ writes to the cache's disk for an image. Numbers are little-endian and of fixed
 * width.
 *
 *   images/<id>/head    FormatHead: which image it is, and when the rest may be used
 *   images/<id>/sums    a 32-bit word for each block of the image
 *   images/<id>/data    the blocks, each at its own offset; sparse
 *
 * <id> is the first 128 bits of SHA-256 over the content's name, in hex: tenants choose
 * parts of the name, and must not be able to find a second name with the same id.
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
#define FORMAT_HEAD_VERSION 2
#define FORMAT_BLOCK_BYTES 4096

/* What a block's word says. A word and its data are written in either order and without a sync
 * between them: data whose checksum is not the word counts as absent. */
#define FORMAT_SUM_ABSENT 0
/* A block of zeros has the high half of (its number + 1) times this, and its data is not looked at;
 * others have the low half of XXH3-64 over the block, seeded with its number. */
#define FORMAT_SUM_ZEROS UINT64_C(0x9E3779B97F4A7C15)

/* When the words of an image that changes may be used. A snapshot's always may. */
enum {
    FORMAT_IMAGE_CLEAN = 1, /* closed in order: while the image has `version` */
    FORMAT_IMAGE_OPEN =
        2, /* in use: in this boot, by the next user that takes the lock from the last */
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
