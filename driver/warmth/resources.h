/* SPDX-License-Identifier: Apache-2.0 */
/* Hearth's kinds in the Kubernetes API (deploy/crds) that several folders read or write. */
#ifndef HEARTH_DRIVER_WARMTH_RESOURCES_H
#define HEARTH_DRIVER_WARMTH_RESOURCES_H

#include "driver/kube/resource.h"

#define WARM_API_VERSION "csi.hearth.dev/v1alpha1"

extern const KubeResource node_cache_resource;
extern const KubeResource hint_resource;

/* Selects the DatasetHints that Hearth wrote, as kubectl's -l takes it. */
#define HINT_SELECTOR "app.kubernetes.io/managed-by=hearth-controller"

#endif
