/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes whose cache disk fails, so that reads go to Ceph: which of them are still to get an Event.
 * One for each time that a node begins to bypass its disk. No I/O, no lock of its own.
 */
#ifndef HEARTH_DRIVER_WARMTH_BYPASSED_H
#define HEARTH_DRIVER_WARMTH_BYPASSED_H

#include "driver/kube/client.h"

#define BYPASSED_REASON "CacheBypassed"

typedef struct Bypassed Bypassed;

Bypassed *bypassed_new(void);
void bypassed_free(Bypassed *bypassed);
/* disk: of its NodeCache. NULL: it has none any more. */
void bypassed_report(Bypassed *bypassed, const char *node, const char *disk);
/* Takes the nodes that are due: names, the caller's. */
GPtrArray *bypassed_take(Bypassed *bypassed);
/* Its Event could not be written: it is due again. */
void bypassed_again(Bypassed *bypassed, const char *node);

/* Writes the Event of a node. KUBE_ERROR. */
gboolean bypassed_post(KubeClient *client, const char *node, GCancellable *cancel, GError **error);

#endif
