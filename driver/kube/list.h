/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of a kind, page by page, so that neither side holds all of them at once.
 *
 * Source: Kubernetes API concepts, "Retrieving large results sets in chunks".
 */
#ifndef HEARTH_DRIVER_KUBE_LIST_H
#define HEARTH_DRIVER_KUBE_LIST_H

#include "driver/kube/client.h"
#include "driver/kube/resource.h"

/* Which objects. */
typedef struct KubeSelection {
    KubeResource resource;
    const char *namespace; /* NULL: all, or a kind without */
    const char *labels;    /* NULL: any; as kubectl's -l */
    const char *fields;    /* NULL: any */
    gboolean metadata;     /* only the metadata of each object */
} KubeSelection;

/*
 * Calls on_object for each object, which is borrowed; objects lack kind and apiVersion. page:
 * objects in one request, 0: 250. timeout_ms is for each page. *resource_version (may be NULL) is
 * the caller's: a watch continues from it. GONE: the list has become too old between two pages, and
 * its objects must be dropped; begin again.
 */
gboolean kube_list(KubeClient *client, const KubeSelection *selection, guint page,
                   gint64 timeout_ms, GCancellable *cancel,
                   void (*on_object)(const json_t *object, void *data), void *data,
                   char **resource_version, GError **error);

#endif
