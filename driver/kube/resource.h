/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kinds of objects and their paths in the API.
 *
 * Source: Kubernetes API concepts, "Resource URIs".
 */
#ifndef HEARTH_DRIVER_KUBE_RESOURCE_H
#define HEARTH_DRIVER_KUBE_RESOURCE_H

#include <glib.h>

typedef struct KubeResource {
    const char *group; /* "" is the core group */
    const char *version;
    const char *plural; /* "nodes" */
} KubeResource;

/*
 * The path of one object, of its subresource ("status"), or, without a name, of the list. Without a
 * namespace: a kind that has none, or a list over all namespaces. Names are escaped.
 */
char *kube_path(const KubeResource *resource, const char *namespace, const char *name,
                const char *subresource);

#endif
