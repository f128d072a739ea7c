/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controller maintains one DatasetHint for each claim that shows a snapshot. It has the claim's
 * namespace and name, and is owned by the claim, so Kubernetes removes it with the claim; the
 * controller removes it when the volume is gone or released. Admission reads hints, so that pods
 * prefer nodes where the dataset is warm (deploy/policies/dataset-affinity.yaml).
 *
 *   PersistentVolumes ──watch──> wanted ─┐
 *                                        ├─ what differs ──thread──> apply, delete
 *   DatasetHints, ours ─watch──> there ──┘
 *
 * A correct hint is not written again, and nothing is written before both watches have seen
 * everything. Hints without our label are left alone, unless they have the name that one of ours
 * must have: then it is taken over. About 200 bytes are kept for each volume and each hint.
 *
 * Rejected: to write from the watch's callback. With a slow API server the watch would then not
 * learn that there is nothing left to write.
 */
#ifndef HEARTH_DRIVER_AFFINITY_HINTS_H
#define HEARTH_DRIVER_AFFINITY_HINTS_H

#include "driver/kube/client.h"
#include "driver/kube/watch/seen.h"

#define HINT_FIELD_MANAGER "hearth-controller"

/* Each from a thread of its own, with no lock held; none may call dataset_hints_free(). */
typedef struct DatasetHintsOps {
    /* Whether this process may write now: called before each write, and once a second while there
     * is something to write. */
    gboolean (*may_act)(void *data);
    /* Once when something stops working - the watches, or a write, whose error names the claim -
     * and with NULL when all of it works again. May be NULL. */
    void (*on_trouble)(const GError *error, void *data);
    /* ceph-csi's config.json, for datasets that are named without their group; NULL: "csi". Copied.
     */
    const char *cluster_config;
    /* Called for each PersistentVolume when it is seen and when it changes. May be NULL. */
    void (*on_volume)(KubeChange change, const json_t *object, void *volume_data);
    void *volume_data;
} DatasetHintsOps;

typedef struct DatasetHints DatasetHints;

/* client is borrowed until dataset_hints_free(); the driver's name is copied. */
DatasetHints *dataset_hints_new(KubeClient *client, const char *driver_name,
                                const DatasetHintsOps *ops, void *data);
/* Stops and joins its threads; a write under way is cancelled. */
void dataset_hints_free(DatasetHints *hints);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DatasetHints, dataset_hints_free)

/* As hint_diff_claim(), of the volumes that have been seen. For WarmupClaims. */
char *dataset_hints_claim(void *hints, const char *namespace, const char *dataset);
/* How many hints differ from what their volumes need, as far as is known. */
guint dataset_hints_pending(DatasetHints *hints);

#endif
