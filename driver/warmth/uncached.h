/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells whoever claimed a volume that nothing of it is cached, though it should be: an RBD image
 * without exclusive-lock, which others could write unseen. By an Event of the claim, one for each
 * volume, however often it is staged.
 *
 *   NodeCaches ──reports──> handle ─┐
 *                                   ├─ bound, not told yet ──queue──thread──> Event
 *   PersistentVolumes ──watch──> claim
 *
 * Node plugins, of whose token little is believed, write no Events: they name a volume's handle in
 * the NodeCache of their node, and the text is the controller's. What the queue has no room for, or
 * could not be written, is seen again with the next report of its node. Of a bound volume some 300
 * bytes are kept.
 *
 * An Event lives for an hour. Its name is made of the claim's UID, so that the next controller
 * finds it; one that comes later than that tells it once more.
 */
#ifndef HEARTH_DRIVER_WARMTH_UNCACHED_H
#define HEARTH_DRIVER_WARMTH_UNCACHED_H

#include "driver/kube/client.h"
#include "driver/kube/watch/seen.h"

#define UNCACHED_REASON "NotCached"
#define UNCACHED_QUEUE_MAX 256

typedef struct Uncached Uncached;

/* client is borrowed until uncached_free(), the driver's name is copied. may_act is asked before
 * each write and at each report, with no lock held. Starts its thread. */
Uncached *uncached_new(KubeClient *client, const char *driver_name, gboolean (*may_act)(void *data),
                       void *data);
/* Joins its thread; a write under way is cancelled. */
void uncached_free(Uncached *uncached);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Uncached, uncached_free)

/* From any thread; they wait for no request. A PersistentVolume was seen; and a node says that
 * nothing of the volume of this handle is cached. */
void uncached_volume(KubeChange change, const json_t *object, void *uncached);
void uncached_report(const char *handle, void *uncached);

#endif
