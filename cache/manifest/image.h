/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes an EROFS image of names and attributes without data: each regular file that has bytes is a
 * hole with overlayfs's "metacopy" and "redirect" attributes, which lead to its object, /xx/<id>,
 * in a data-only layer (kernel, Documentation/filesystems/overlayfs.rst, "Data-only lower layers").
 *
 * Parents come before their children, in any order otherwise, and several directories may be open
 * at once. An entry's inode is written at once, of it only the name is kept until its directory
 * ends: memory is bounded by the largest directory, by the directories still to come, and by hard
 * links whose other names are still to come.
 *
 * One thread. Functions give FALSE with G_IO_ERROR; after that the image is of no use.
 */
#ifndef HEARTH_CACHE_MANIFEST_IMAGE_H
#define HEARTH_CACHE_MANIFEST_IMAGE_H

#include <gio/gio.h>
#include <stdint.h>
#include <sys/stat.h>
#include "cache/store/store.h"

typedef struct ErofsImageXattr {
    const char *name; /* with its prefix; shown are user., security. and system.posix_acl_*, but for
                         overlayfs's own */
    const void *value;
    size_t size;
} ErofsImageXattr;

/* One inode by one of its names. */
typedef struct ErofsImageEntry {
    const char *name; /* of 1 to 255 bytes; not "." and ".."; NULL for the root */
    struct stat st; /* st_ino tells which names are of one inode; st_size, st_mtim, ... are shown */
    const char *target;     /* of a symbolic link */
    const ObjectId *object; /* of a regular file with st_size > 0 */
    const ErofsImageXattr *xattrs;
    size_t n_xattrs;
} ErofsImageEntry;

/* A directory that has not ended yet. */
typedef struct ErofsImageDir ErofsImageDir;
typedef struct ErofsImage ErofsImage;

/* Writes to fd, borrowed, from offset 0; a file that can be written at any offset. */
ErofsImage *erofs_image_new(int fd, const ErofsImageEntry *root, ErofsImageDir **dir,
                            GError **error);
void erofs_image_free(ErofsImage *image);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ErofsImage, erofs_image_free)

/*
 * Adds an entry to a directory. *child is set for a directory, which must be ended too.
 * INVALID_DATA: an impossible name; a character device 0:0, which is overlayfs's mark for a
 * deleted file; too large attributes.
 */
gboolean erofs_image_add(ErofsImage *image, ErofsImageDir *dir, const ErofsImageEntry *entry,
                         ErofsImageDir **child, GError **error);
/* Writes the directory, which has all its entries, and frees it. INVALID_DATA: a name twice. */
gboolean erofs_image_end(ErofsImage *image, ErofsImageDir *dir, GError **error);
/* Frees a directory that will not be ended. NULL is fine. */
void erofs_image_dir_free(ErofsImageDir *dir);
/* Writes what is buffered and the superblock. `uuid` names the content. *bytes: length so far, a
 * multiple of the block. */
gboolean erofs_image_finish(ErofsImage *image, const uint8_t uuid[16], uint64_t *bytes,
                            GError **error);

/* Written so far. */
uint64_t erofs_image_inodes(const ErofsImage *image);
uint64_t erofs_image_bytes(const ErofsImage *image);

#endif
