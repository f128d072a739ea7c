/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which dataset a CacheWarmup means, asked of the API: a claim's, by its volume or, while it has
 * none, by its class; or the one of that name. A name is 16 digits that anyone may write down, so
 * it is taken only from a namespace of which a claim shows that dataset, or which a StorageClass of
 * the dataset names in its annotation WARMUP_NAMESPACES: classes are the administrator's. Another
 * name is answered the same, whether there is such a dataset or not. Nothing is listed for it but
 * StorageClasses: which claims show what is known from the watch that keeps hints.
 */
#ifndef HEARTH_DRIVER_WARMUP_TARGET_H
#define HEARTH_DRIVER_WARMUP_TARGET_H

#include "driver/kube/client.h"
#include "driver/warmth/dataset_origin.h"
#include "driver/warmup/warmup.h"

/* Names of namespaces with commas between, or "*". */
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
 * names what is missing. KUBE_ERROR: the API cannot be asked. */
gboolean warmup_target_find(const WarmupTargets *targets, const Warmup *warmup,
                            DatasetOrigin *origin, GError **error);

#endif
