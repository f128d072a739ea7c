/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An Event of Kubernetes (core/v1), as `kubectl describe` shows it beside an object. Its name is
 * made of what it is about: a second one of that name is refused, so an Event that another process
 * has written is not written twice. It lives for an hour.
 */
#ifndef HEARTH_DRIVER_KUBE_EVENT_H
#define HEARTH_DRIVER_KUBE_EVENT_H

#include "driver/kube/client.h"

/* Borrowed. */
typedef struct KubeEvent {
    const char *name;      /* of the Event, in the namespace of its object */
    const char *namespace; /* of the object; NULL: it has none, and the Event is in "default" */
    const char *api_version, *kind, *object, *uid;
    gboolean warning; /* else Normal */
    const char *reason, *message;
} KubeEvent;

/* TRUE also when there is one of that name. KUBE_ERROR. */
gboolean kube_event_post(KubeClient *client, const KubeEvent *event, GCancellable *cancel,
                         GError **error);
/* A name for an Event: `prefix`, and digits made of `about`; the caller's. */
char *kube_event_name(const char *prefix, const char *about);

#endif
