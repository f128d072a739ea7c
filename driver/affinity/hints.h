/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controller keeps one DatasetHint for each claim that shows a snapshot: in the claim's
 * namespace, by its name, owned by it, so that Kubernetes removes it with the claim; and removes it
 * itself when the volume is gone or released. Admission reads hints to have pods prefer nodes where
 * the dataset is warm (deploy/policies/dataset-affinity.yaml).
 *
 *   PersistentVolumes ──watch──> wanted ─┐
 *                                        ├─ what differs ──thread──> apply, delete
 *   DatasetHints, ours ─watch──> there ──┘
 *
 * Nothing is written that is right, whoever wrote it, nor before both watches have seen
 * everything. Hints without our label are nobody's business here, unless they have the name that
 * one of ours must have: that is taken over. Of a volume and of a hint some 200 bytes are kept.
 *
 * Alternative rejected: to write from the watch's callback. A slow API server would then keep the
 * watch from learning that there is nothing to write any more.
 */
#ifndef HEARTH_DRIVER_AFFINITY_HINTS_H
#define HEARTH_DRIVER_AFFINITY_HINTS_H

#include "driver/kube/client.h"
#include "driver/kube/watch/seen.h"

#define HINT_FIELD_MANAGER "hearth-controller"

/* Each from a thread of its own, with no lock held; none may call warm_hints_free(). */
typedef struct WarmHintsOps {
    /* Whether this process is the one that writes, by now: asked before each write, and once a
     * second while there is something to write. */
    gboolean (*may_act)(void *data);
    /* Once when something stops working - the watches, or a write, whose error names the claim -
     * and with NULL when all of it works again. May be NULL. */
    void (*on_trouble)(const GError *error, void *data);
    /* ceph-csi's config.json, for datasets that are named without their group; NULL: "csi". Copied.
     */
    const char *cluster_config;
    /* Each PersistentVolume, as it is seen and changes; NULL: nobody asks. */
    void (*on_volume)(KubeChange change, const json_t *object, void *volume_data);
    void *volume_data;
} WarmHintsOps;

typedef struct WarmHints WarmHints;

/* client is borrowed until warm_hints_free(); the driver's name is copied. */
WarmHints *warm_hints_new(KubeClient *client, const char *driver_name, const WarmHintsOps *ops,
                          void *data);
/* Stops and joins its threads; a write under way is cancelled. */
void warm_hints_free(WarmHints *hints);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(WarmHints, warm_hints_free)

/* As hint_diff_claim(), of the volumes that have been seen. For WarmupClaims. */
char *warm_hints_claim(void *hints, const char *namespace, const char *dataset);
/* So many hints are not as they ought to be, as far as is known. */
guint warm_hints_pending(WarmHints *hints);

#endif
