/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the EROFS format that a manifest uses (kernel, fs/erofs/erofs_fs.h; documented at
 * erofs.docs.kernel.org). All numbers are little-endian; structs are packed.
 */
#ifndef HEARTH_CACHE_MANIFEST_EROFS_H
#define HEARTH_CACHE_MANIFEST_EROFS_H

#include <stdint.h>

#define EROFS_MAGIC 0xE0F5E1E2u
#define EROFS_SUPER_OFFSET 1024
#define EROFS_BLOCK_BITS 12
#define EROFS_BLOCK (1u << EROFS_BLOCK_BITS)
/* An inode is found at nid * this, as the metadata area begins at block 0. */
#define EROFS_SLOT 32
#define EROFS_NAME_MAX 255
/* Of the whole inline region: i_xattr_icount has 16 bits. */
#define EROFS_XATTRS_MAX (12 + 4 * 65534u)
#define EROFS_XATTR_VALUE_MAX 65535u

#define EROFS_COMPAT_MTIME 0x2u
#define EROFS_INCOMPAT_CHUNKED_FILE 0x4u

typedef struct __attribute__((packed)) ErofsSuper {
    uint32_t magic, checksum, feature_compat;
    uint8_t block_bits, ext_slots;
    uint16_t root_nid;
    uint64_t inodes, build_sec;
    uint32_t build_nsec, blocks, meta_block, xattr_block;
    uint8_t uuid[16], volume_name[16];
    uint32_t feature_incompat;
    uint8_t unused[44];
} ErofsSuper;

enum { EROFS_FLAT_PLAIN = 0, EROFS_FLAT_INLINE = 2, EROFS_CHUNK_BASED = 4 };
/* i_format of an extended inode. */
#define EROFS_FORMAT(layout) (1u | (unsigned)(layout) << 1)
/* Chunks of 2^(block bits + this): one entry does for 8 TiB. */
#define EROFS_CHUNK_BITS_MAX 31u
#define EROFS_HOLE 0xFFFFFFFFu

typedef struct __attribute__((packed)) ErofsInode {
    uint16_t format, xattr_count, mode, reserved;
    uint64_t size;
    uint32_t u; /* by layout: block, device number, or chunk bits */
    uint32_t ino, uid, gid;
    uint64_t mtime_sec;
    uint32_t mtime_nsec, nlink;
    uint8_t reserved2[16];
} ErofsInode;

typedef struct __attribute__((packed)) ErofsDirent {
    uint64_t nid;
    uint16_t name_offset;
    uint8_t file_type, reserved;
} ErofsDirent;

typedef struct __attribute__((packed)) ErofsXattrHeader {
    uint32_t name_filter;
    uint8_t shared_count, reserved[7];
} ErofsXattrHeader;

typedef struct __attribute__((packed)) ErofsXattr {
    uint8_t name_length, name_index;
    uint16_t value_size;
} ErofsXattr;

_Static_assert(sizeof(ErofsSuper) == 128, "superblock layout");
_Static_assert(sizeof(ErofsInode) == 64, "inode layout");
_Static_assert(sizeof(ErofsDirent) == 12, "dirent layout");
_Static_assert(sizeof(ErofsXattrHeader) == 12, "xattr header layout");
_Static_assert(sizeof(ErofsXattr) == 4, "xattr layout");

#endif
