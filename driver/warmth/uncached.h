/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports volumes that should be cached and are not: RBD images without exclusive-lock, which
 * another client could write unseen. It writes one Event for the claim of each such volume, however
 * often the volume is staged.
 *
 *   NodeCaches ──reports──> handle ─┐
 *                                   ├─ bound, not reported yet ──queue──thread──> Event
 *   PersistentVolumes ──watch──> claim
 *
 * Node plugins may not write Events, because their token is trusted little: they name the handle of
 * the volume in the NodeCache of their node, and the controller writes the text. A volume for which
 * the queue has no room, or whose Event could not be written, comes again with the next report of
 * its node. About 300 bytes are kept for each bound volume.
 *
 * An Event lives for an hour. Its name is made of the claim's UID, so that the next controller
 * finds it; a controller that starts later than that writes it again.
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

/* From any thread; neither waits for a request. uncached_volume(): a PersistentVolume was seen.
 * uncached_report(): a node reports that the volume with this handle is not cached. */
void uncached_volume(KubeChange change, const json_t *object, void *uncached);
void uncached_report(const char *handle, void *uncached);

#endif
