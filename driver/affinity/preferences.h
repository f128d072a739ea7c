/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds to a pod what deploy/policies/dataset-affinity.yaml adds, for clusters without such policies
 * (before Kubernetes 1.36). Conditions, weights and annotation are the same, so that a cluster with
 * both adds nothing twice, in either order. That file explains them; change both. No I/O.
 */
#ifndef HEARTH_DRIVER_AFFINITY_PREFERENCES_H
#define HEARTH_DRIVER_AFFINITY_PREFERENCES_H

#include <jansson.h>
#include "driver/affinity/hint.h"

/* The labels that were added, separated by commas. */
#define PREFERENCES_ANNOTATION "csi.hearth.dev/prefers"

typedef struct PreferencesHints {
    /* Writes the dataset that the claim shows; FALSE: it has no hint. */
    gboolean (*find)(const char *namespace, const char *claim, char dataset[DATASET_KEY_DIGITS + 1],
                     void *data);
    void *data;
} PreferencesHints;

/* A JSON patch (RFC 6902), a new reference; NULL: there is nothing to add. */
json_t *preferences_patch(const json_t *pod, const char *namespace, const PreferencesHints *hints);

#endif
