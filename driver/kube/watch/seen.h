/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects that a watch knows to exist: the uid and resourceVersion of each, never the object.
 * It turns lists and streams into changes, each reported once. An object that a list shows again,
 * or a resumed stream repeats, is no change. An object that a list no longer shows was deleted.
 * Another uid under the same name is a deletion and an addition.
 *
 * For one thread.
 */
#ifndef HEARTH_DRIVER_KUBE_WATCH_SEEN_H
#define HEARTH_DRIVER_KUBE_WATCH_SEEN_H

#include <glib.h>
#include <jansson.h>

typedef enum KubeChange { KUBE_ADDED, KUBE_MODIFIED, KUBE_DELETED } KubeChange;

typedef struct KubeKnown KubeKnown;

/* on_change: `object` is borrowed. After a deletion that the stream did not show it
 * only has metadata.{name,namespace,uid,resourceVersion}. */
KubeKnown *kube_known_new(void (*on_change)(KubeChange change, const json_t *object, void *data),
                          void *data);
void kube_known_free(KubeKnown *known);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KubeKnown, kube_known_free)

/* The object exists, with this content. Objects without a name are skipped. */
void kube_known_put(KubeKnown *known, const json_t *object);
void kube_known_remove(KubeKnown *known, const json_t *object);
/* A list begins; a list that had begun is forgotten. */
void kube_known_list_begin(KubeKnown *known);
/* The list was complete: objects that kube_known_put() did not get since its beginning are gone. */
void kube_known_list_end(KubeKnown *known);
guint kube_known_count(const KubeKnown *known);

#endif
