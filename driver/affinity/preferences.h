/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What deploy/policies/dataset-affinity.yaml adds to a pod, for clusters that have no such policies
 * (before Kubernetes 1.36): the same conditions, weights and annotation, so that a cluster with
 * both adds nothing twice, whoever comes first. The file says why it is so; change both. No I/O.
 */
#ifndef HEARTH_DRIVER_AFFINITY_PREFERENCES_H
#define HEARTH_DRIVER_AFFINITY_PREFERENCES_H

#include <jansson.h>
#include "driver/affinity/hint.h"

/* Of what was added, the labels, with commas between. */
#define PREFERENCES_ANNOTATION "csi.hearth.dev/prefers"

typedef struct PreferencesHints {
    /* Writes which dataset that claim shows; FALSE: no hint tells. */
    gboolean (*find)(const char *namespace, const char *claim, char dataset[DATASET_KEY_DIGITS + 1],
                     void *data);
    void *data;
} PreferencesHints;

/* A JSON patch (RFC 6902), a new reference; NULL: nothing is to be added. */
json_t *preferences_patch(const json_t *pod, const char *namespace, const PreferencesHints *hints);

#endif
