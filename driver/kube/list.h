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
    gboolean metadata;     /* of each object no more than that */
} KubeSelection;

/*
 * Calls on_object for each, which takes over no reference; objects lack kind and apiVersion.
 * page: how many a request asks for, 0: 250. timeout_ms is of each page. *resource_version (may be
 * NULL) is the caller's: what a watch goes on from. GONE: the list has become too old between two
 * pages, and what was seen of it is of no use; begin anew.
 */
gboolean kube_list(KubeClient *client, const KubeSelection *selection, guint page,
                   gint64 timeout_ms, GCancellable *cancel,
                   void (*on_object)(const json_t *object, void *data), void *data,
                   char **resource_version, GError **error);

#endif
