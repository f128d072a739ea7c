/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volume IDs of ceph-csi, so that a PersistentVolume it made works with this driver's name in it
 * (its docs/design, "CSI identifier"):
 *
 *     0001-<length of the cluster's ID, 4 hex digits>-<cluster's ID>-<location, 16 hex
 * digits>-<UUID>
 *
 * The location is the number of a file system for CephFS and of a pool for RBD; the ID does not say
 * which, and the volume's name, csi-vol-<UUID> by default, is in ceph-csi's journal.
 */
#ifndef HEARTH_DRIVER_VOLUME_ADOPTED_ID_H
#define HEARTH_DRIVER_VOLUME_ADOPTED_ID_H

#include <glib.h>

/* The characters of the UUID with which handles and names end. */
#define ADOPTED_UUID_LENGTH 36
/* The suffix of the image through which ceph-csi clones another. */
#define ADOPTED_TEMPORARY "-temp"

typedef struct AdoptedId {
    char *cluster_id;
    guint64 location;
    char *uuid;
} AdoptedId;

void adopted_id_free(AdoptedId *id);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(AdoptedId, adopted_id_free)

/* NULL for what is no such ID. What it takes, encoding gives back. */
AdoptedId *adopted_id_decode(const char *text);
char *adopted_id_encode(const AdoptedId *id);
/* csi-vol-<UUID>; the caller's. */
char *adopted_id_volume(const AdoptedId *id);

#endif
