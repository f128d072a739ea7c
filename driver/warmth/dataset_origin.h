/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dataset that a volume shows, and its location in Ceph: from a PersistentVolume or a
 * StorageClass. No I/O but the cluster file.
 */
#ifndef HEARTH_DRIVER_WARMTH_DATASET_ORIGIN_H
#define HEARTH_DRIVER_WARMTH_DATASET_ORIGIN_H

#include <glib.h>
#include <jansson.h>
#include "common/dataset_key.h"

typedef struct DatasetOrigin {
    char id[DATASET_KEY_DIGITS + 1];
    char *cluster_id, *fs_name; /* fs_name: "": the cluster's only one */
    char *root_path;            /* as "rootPath" of a volume context (volume/attributes.h) */
} DatasetOrigin;

/*
 * context: volumeAttributes of a PersistentVolume, or parameters of a StorageClass. FALSE: it shows
 * no dataset. cluster_config is the file with the group of a dataset whose name has none; NULL, or
 * without a group there: the default group.
 */
gboolean dataset_origin_of(const json_t *context, const char *cluster_config,
                           DatasetOrigin *origin);
/* {"clusterID", "fsName", "rootPath"}; a new reference. */
json_t *dataset_origin_json(const DatasetOrigin *origin);
/* The reverse. FALSE: it is no dataset. */
gboolean dataset_origin_read(const json_t *object, DatasetOrigin *origin);
/* Whether `text` means it: its key, or its title in each form (dataset_key.h). */
gboolean dataset_origin_is(const DatasetOrigin *origin, const char *text);
void dataset_origin_clear(DatasetOrigin *origin);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(DatasetOrigin, dataset_origin_clear)

#endif
