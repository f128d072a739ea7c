/* Which dataset a CacheWarmup means, asked of the API: a claim's, by its volume or, while it has
 * none, by its class; or the one of that name, by the volumes and classes that show it. */
#ifndef HEARTH_DRIVER_WARM_WARMUP_TARGET_H
#define HEARTH_DRIVER_WARM_WARMUP_TARGET_H

#include "driver/kube/client.h"
#include "driver/warm/dataset_origin.h"
#include "driver/warm/warmup.h"

typedef struct WarmupTargets {
    KubeClient *client;
    const char *driver_name;
    const char *cluster_config; /* volume/config.h */
    GCancellable *cancel;
} WarmupTargets;

/* HEARTH_ERROR_FAILED_PRECONDITION: there is none, or none yet; the message is for the status, and
 * names what is missing. KUBE_ERROR: the API cannot be asked. */
gboolean warmup_target_find(const WarmupTargets *targets, const Warmup *warmup,
                            DatasetOrigin *origin, GError **error);

#endif
