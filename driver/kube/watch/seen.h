/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a watch knows to exist: of each object its uid and resourceVersion, never the object
 * itself. It turns what a list or a stream shows into changes, each told once: what a list shows
 * again, or a stream that was taken up again repeats, is no change; what a list no longer shows was
 * deleted; another uid under the same name is a deletion and an addition.
 *
 * For one thread.
 */
#ifndef HEARTH_DRIVER_KUBE_WATCH_SEEN_H
#define HEARTH_DRIVER_KUBE_WATCH_SEEN_H

#include <glib.h>
#include <jansson.h>

typedef enum KubeChange { KUBE_ADDED, KUBE_MODIFIED, KUBE_DELETED } KubeChange;

typedef struct KubeKnown KubeKnown;

/* on_change: `object` is borrowed. For a deletion that nobody saw it has no more than
 * metadata.{name,namespace,uid,resourceVersion}. */
KubeKnown *kube_known_new(void (*on_change)(KubeChange change, const json_t *object, void *data),
                          void *data);
void kube_known_free(KubeKnown *known);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KubeKnown, kube_known_free)

/* It exists, so. Objects without a name are passed over. */
void kube_known_put(KubeKnown *known, const json_t *object);
void kube_known_remove(KubeKnown *known, const json_t *object);
/* A list begins; begun again, it starts anew. */
void kube_known_list_begin(KubeKnown *known);
/* It was complete: what kube_known_put() has not had since its beginning is gone. */
void kube_known_list_end(KubeKnown *known);
guint kube_known_count(const KubeKnown *known);

#endif
