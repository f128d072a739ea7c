/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which dataset a volume shows, and where it is: from what PersistentVolumes and StorageClasses say
 * of it. No I/O but the cluster file.
 */
#ifndef HEARTH_DRIVER_WARMTH_DATASET_ORIGIN_H
#define HEARTH_DRIVER_WARMTH_DATASET_ORIGIN_H

#include <glib.h>
#include <jansson.h>
#include "driver/volume/dataset_key.h"

typedef struct DatasetOrigin {
    char id[DATASET_KEY_DIGITS + 1];
    char *cluster_id, *fs_name; /* fs_name: "": the cluster's only one */
    char *root_path;            /* as "rootPath" of a volume context (volume/attributes.h) */
} DatasetOrigin;

/*
 * context: volumeAttributes of a PersistentVolume, or parameters of a StorageClass. FALSE: it is of
 * no dataset. cluster_config is the file that tells the group of a dataset whose name tells none;
 * NULL, or it does not tell: the default.
 */
gboolean dataset_origin_of(const json_t *context, const char *cluster_config,
                           DatasetOrigin *origin);
/* {"clusterID", "fsName", "rootPath"}; a new reference. */
json_t *dataset_origin_json(const DatasetOrigin *origin);
/* From that. FALSE: it is of no dataset. */
gboolean dataset_origin_read(const json_t *object, DatasetOrigin *origin);
void dataset_origin_clear(DatasetOrigin *origin);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(DatasetOrigin, dataset_origin_clear)

#endif
