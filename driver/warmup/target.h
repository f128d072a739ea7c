/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dataset of a CacheWarmup, found with the API: that of a claim, by its volume or, while it has
 * none, by its class; or the dataset with the given name. A name is 16 digits or
 * SUBVOLUME@SNAPSHOT, which anyone may write down. So it is accepted only from a namespace with a
 * claim that shows the dataset, or from a namespace that a StorageClass of the dataset names in its
 * annotation WARMUP_NAMESPACES: classes belong to the administrator. Other names get the same
 * answer, whether the dataset exists or not. Only StorageClasses are listed; the claims are known
 * from the watch that maintains hints.
 */
#ifndef HEARTH_DRIVER_WARMUP_TARGET_H
#define HEARTH_DRIVER_WARMUP_TARGET_H

#include "driver/kube/client.h"
#include "driver/warmth/dataset_origin.h"
#include "driver/warmup/warmup.h"

/* Namespaces, separated by commas, or "*". */
#define WARMUP_NAMESPACES "csi.hearth.dev/warmup-namespaces"

/* A claim of the namespace that shows the dataset; the caller's. NULL: none does. */
typedef char *(*WarmupClaims)(void *data, const char *namespace, const char *dataset);

typedef struct WarmupTargets {
    KubeClient *client;
    const char *driver_name;
    const char *cluster_config; /* volume/config.h */
    GCancellable *cancel;
    WarmupClaims claim_of;
    void *claims; /* its data */
} WarmupTargets;

/* HEARTH_ERROR_FAILED_PRECONDITION: there is none, or none yet; the message is for the status, and
 * says what is missing. KUBE_ERROR: the API cannot be reached. */
gboolean warmup_target_find(const WarmupTargets *targets, const Warmup *warmup,
                            DatasetOrigin *origin, GError **error);

#endif
