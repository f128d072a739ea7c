/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What people call a volume: the claim, the dataset or the PersistentVolume, in place of its ID.
 * Names come from PersistentVolumes, so they are checked before they reach a table, a log line or a
 * metric.
 */
#ifndef HEARTH_COMMON_VOLUME_NAME_H
#define HEARTH_COMMON_VOLUME_NAME_H

#include <glib.h>

/* "NAMESPACE/CLAIM", whose parts are names of objects in Kubernetes. */
gboolean volume_name_is_claim(const char *text);
/* A DNS subdomain (RFC 1123) of at most 253 bytes, as Kubernetes names its objects. */
gboolean volume_name_is_object(const char *text);

/* What is known of a volume. Each may be "", but for the ID. */
typedef struct VolumeNames {
    const char *id;
    const char *claim; /* NAMESPACE/CLAIM */
    const char *pv;    /* its PersistentVolume */
    /* Where it is in a file system of Ceph. */
    const char *cluster_id, *fs_name, *root_path;
} VolumeNames;

/*
 * The claim; of the snapshot of a subvolume "[GROUP/]SUBVOLUME@SNAPSHOT" (dataset_key.h); else the
 * PersistentVolume, else of any other snapshot its label (dataset_key.h), else the ID. Printable,
 * without blanks. The caller's.
 */
char *volume_name(const VolumeNames *names);

#endif
