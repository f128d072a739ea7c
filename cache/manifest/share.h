/*
 * A manifest kept beside the data, so that the next node fetches it instead of walking:
 *
 *     manifest.<id>                     header (below), written last; existing means complete
 *     manifest.<id>.<nonce>.<8 hex>     the file in parts of 4 MiB
 *
 *     manifest-of.<path>                of the snapshot "/volumes/csi/x/.snap/v1": a line for each
 *                                       writer of a manifest of it or a directory in it,
 *                                       "<id> <nonce> <parts, 8 hex>\n", appended before all else
 *
 * Each writer has a nonce of its own, so that two at once do not mix their parts. What is fetched
 * is still to be checked by manifest_open(deep). By the lines, who deletes a snapshot finds what to
 * delete with it (driver/backend/cephfs_manifests.h).
 */
#ifndef HEARTH_MANIFEST_SHARE_H
#define HEARTH_MANIFEST_SHARE_H

#include <gio/gio.h>
#include <stdatomic.h>
#include <stdint.h>
#include "cache/origin/origin.h"

#define SHARE_MAGIC "HRTHMNSH"
#define SHARE_VERSION 1
#define SHARE_PART (4u << 20)

/* Little-endian. */
typedef struct __attribute__((packed)) ShareHeader {
    char magic[8];
    uint32_t version, part_bytes;
    uint64_t bytes, nonce;
    uint64_t checksum; /* XXH3-64 of what is before */
} ShareHeader;

_Static_assert(sizeof(ShareHeader) == 40, "share header layout");

/*
 * Fetches to fd, a new file. NOT_FOUND: there is none; NOT_SUPPORTED: this origin has no place for
 * any; INVALID_DATA: what is there is of no use. `cancel` ends it, CANCELLED.
 */
gboolean share_fetch(Origin *origin, const char *id, int fd, atomic_bool *cancel, GError **error);
/* Puts the file there, in place of one that is there if `replace`; else that is left, and fine. */
gboolean share_put(Origin *origin, const char *id, int fd, gboolean replace, atomic_bool *cancel,
                   GError **error);

#endif
