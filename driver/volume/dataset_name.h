/* SPDX-License-Identifier: Apache-2.0 */
/* Names of datasets as people write them: "[GROUP/]SUBVOLUME@SNAPSHOT". Without a group it is the
 * one of the cluster's entry in config.json. */
#ifndef HEARTH_DRIVER_VOLUME_DATASET_NAME_H
#define HEARTH_DRIVER_VOLUME_DATASET_NAME_H

#include <glib.h>
#include "common/error.h"

typedef struct DatasetName {
    char *group; /* NULL: the cluster's */
    char *subvolume, *snapshot;
} DatasetName;

/* The caller's. INVALID_ARGUMENT, naming the text and its form. */
DatasetName *dataset_name_parse(const char *text, GError **error);
void dataset_name_free(DatasetName *name);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DatasetName, dataset_name_free)

/* The one spelling; the caller's. */
char *dataset_name_text(const DatasetName *name);
/*
 * The directory in the file system that holds the snapshot of the subvolume's content, under a name
 * that the mgr chose (mgr/volumes, subvolume_v2.py); the caller's.
 */
char *dataset_name_parent(const DatasetName *name, const char *default_group);

#endif
