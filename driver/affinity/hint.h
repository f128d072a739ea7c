/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DatasetHint (csi.hearth.dev/v1alpha1, deploy/crds): the dataset that the claim of the same name
 * shows. Reads the hint that a PersistentVolume needs, and the hint that a DatasetHint has. No I/O.
 */
#ifndef HEARTH_DRIVER_AFFINITY_HINT_H
#define HEARTH_DRIVER_AFFINITY_HINT_H

#include <glib.h>
#include <jansson.h>
#include "common/dataset_key.h"
#include "driver/warmth/resources.h"

typedef struct Hint {
    char *namespace, *claim; /* the hint's own name too */
    char *claim_uid;         /* of the owner; "" when it has none */
    char dataset[DATASET_KEY_DIGITS + 1];
    char *title; /* the dataset's, for people; NULL: it was read from a DatasetHint */
} Hint;

void hint_clear(Hint *hint);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Hint, hint_clear)

/*
 * FALSE: it needs none, because it is another driver's, not bound, or no snapshot. cluster_config
 * is the file with the group of a dataset whose name has none; NULL, or without a group there: the
 * default group.
 */
gboolean hint_of_volume(const json_t *volume, const char *driver_name, const char *cluster_config,
                        Hint *hint);
/* Reads a DatasetHint. FALSE: it has no name. One that contradicts itself has dataset "". */
gboolean hint_read(const json_t *object, Hint *hint);
/* A new reference, for server-side apply. */
json_t *hint_object(const Hint *hint);

#endif
