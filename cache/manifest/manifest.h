/*
 * A manifest file: all names and attributes of an immutable tree, and what its files' bytes are
 * called.
 *
 *     EROFS image    (image.h)   what the kernel mounts; it does not look behind its end
 *     names          (names.h)   directories and files, with the identity of what those hold
 *     table          (table.h)   objects, and the files they are of
 *     footer         below       what it is of, lengths, checksums
 *
 * It is written once, then never changed; a copy is as good as the original, so it is kept in Ceph
 * beside the data and fetched by other nodes.
 */
#ifndef HEARTH_MANIFEST_MANIFEST_H
#define HEARTH_MANIFEST_MANIFEST_H

#include <gio/gio.h>
#include <stdint.h>
#include "cache/manifest/names.h"
#include "cache/manifest/table.h"
#include "cache/origin/origin.h"

#define MANIFEST_MAGIC "HRTHMNFT"
#define MANIFEST_VERSION 1

/* On disk, little-endian and without padding, the last bytes of the file. */
typedef struct ManifestFooter {
    char magic[8];
    uint32_t version, reserved;
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
    void *map;
    size_t map_bytes;
} Manifest;

/*
 * Opens one: checks the footer and the lengths; `deep` reads and checks all of it, as after it came
 * over a network. INVALID_DATA: truncated, corrupt or no manifest; NOT_SUPPORTED: a later version.
 */
Manifest *manifest_open(int fd, gboolean deep, GError **error);
void manifest_close(Manifest *manifest);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Manifest, manifest_close)

/* Whether it is of this tree. */
gboolean manifest_is_of(const Manifest *manifest, const Origin *origin, const OriginAttr *root);

/*
 * An object's place in the table: a number below footer.records, always the same one for a file of
 * several names. FALSE: it is not one of this tree.
 */
gboolean manifest_find(const Manifest *manifest, const ObjectId *id, uint64_t *index);
/* FALSE, and zeros, when the record leads nowhere. */
gboolean manifest_key(const Manifest *manifest, uint64_t index, ObjectKey *key);
/* The path of the file beneath the root of the tree; NULL likewise. */
char *manifest_path(const Manifest *manifest, uint64_t index);

/* Completes what image, names and table have been written of: the footer, checksums, fsync. */
gboolean manifest_finish(int fd, ManifestFooter *footer, GError **error);

#endif
