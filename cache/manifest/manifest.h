/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A manifest file: all names and attributes of an immutable tree, and the objects that its files'
 * bytes are in.
 *
 *     EROFS image    (image.h)   what the kernel mounts; it ignores the rest of the file
 *     names          (names.h)   directories and files, with the identity of their content
 *     table          (table.h)   objects, and the files that they belong to
 *     footer         below       which tree, lengths, checksums
 *
 * Each node builds its own by a walk and keeps it in its cache directory, where only hearthd
 * writes. The checksums show damage; they do not prove the author.
 */
#ifndef HEARTH_CACHE_MANIFEST_MANIFEST_H
#define HEARTH_CACHE_MANIFEST_MANIFEST_H

#include <gio/gio.h>
#include <stdatomic.h>
#include <stdint.h>
#include "cache/manifest/names.h"
#include "cache/manifest/table.h"
#include "cache/origin/origin.h"

#define MANIFEST_MAGIC "HRTHMNFT"
/* Version 1 may have been fetched from a directory that tenants can write to, so it is not used. */
#define MANIFEST_VERSION 2
/* All users may read every file and search every directory. */
#define MANIFEST_READABLE 1u

/* On disk, little-endian and without padding, the last bytes of the file. */
typedef struct ManifestFooter {
    char magic[8];
    uint32_t version, flags;
    uint8_t space[24]; /* Origin.space */
    uint64_t root_ino, snapshot;
    uint64_t root_version; /* of the root's inode, so that a reused snapshot id shows */
    uint64_t image_bytes, names_bytes;
    uint64_t records; /* of the table */
    uint64_t inodes, directories;
    uint64_t files, bytes;     /* regular files and what they hold */
    uint64_t content_checksum; /* XXH3-64 of all before the footer */
    uint64_t checksum;         /* XXH3-64 of the footer before this */
} ManifestFooter;

_Static_assert(sizeof(ManifestFooter) == 136, "footer layout");

typedef struct Manifest {
    ManifestFooter footer; /* in the machine's order */
    Names names;
    const TableRecord *table;
    void *map; /* of a file on a disk that may fail: read it through the functions here */
    size_t map_bytes;
    atomic_bool unreadable; /* a page of it could not be read */
} Manifest;

/*
 * Opens one: checks the footer and the lengths; `deep` reads and checks all of it. INVALID_DATA:
 * truncated, corrupt or no manifest; NOT_SUPPORTED: another version.
 */
Manifest *manifest_open(int fd, gboolean deep, GError **error);
void manifest_close(Manifest *manifest);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Manifest, manifest_close)

/* Whether it is of this tree. */
gboolean manifest_is_of(const Manifest *manifest, const Origin *origin, const OriginAttr *root);

/*
 * An object's place in the table: a number below footer.records, always the same one for a file of
 * several names. -ENOENT: it is not one of this tree; -EIO: the manifest cannot be read.
 */
int manifest_find(const Manifest *manifest, const ObjectId *id, uint64_t *index);
/* FALSE, and zeros, when the record leads nowhere, or cannot be read. */
gboolean manifest_key(const Manifest *manifest, uint64_t index, ObjectKey *key);
/* A hash of which object is at which place: of all manifests of one tree the same, although their
 * bytes may differ. FALSE: it cannot be read. */
gboolean manifest_places(const Manifest *manifest, uint64_t *hash);
/* The path of the file beneath the root of the tree; NULL likewise. */
char *manifest_path(const Manifest *manifest, uint64_t index);

/* Completes what image, names and table have been written of: the footer, checksums, fsync. */
gboolean manifest_finish(int fd, ManifestFooter *footer, GError **error);

#endif
