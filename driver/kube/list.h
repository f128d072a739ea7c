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

/* How they are asked for, and who gets them. */
typedef struct KubeListing {
    guint page;           /* objects in one request; 0: 250 */
    gint64 timeout_ms;    /* for each page */
    GCancellable *cancel; /* may be NULL */
    /* Called for each object, which is borrowed; it lacks kind and apiVersion. */
    void (*on_object)(const json_t *object, void *data);
    void *data;
} KubeListing;

/*
 * *resource_version (may be NULL) is the caller's: a watch continues from it. GONE: the list has
 * become too old between two pages, and its objects must be dropped; begin again.
 */
gboolean kube_list(KubeClient *client, const KubeSelection *selection, const KubeListing *listing,
                   char **resource_version, GError **error);

#endif
