/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On a node: the few places in which orders of CacheWarmups run. A free place goes to the namespace
 * that has the fewest, among equals to the one that got one longest ago, and in a namespace to the
 * order that waits longest. So that nobody waits for a day behind others' large datasets, an order
 * gives up its place after a while when a namespace with fewer places waits. All functions may be
 * called from any thread.
 */
#ifndef HEARTH_DRIVER_WARMUP_PLACES_H
#define HEARTH_DRIVER_WARMUP_PLACES_H

#include <gio/gio.h>

typedef struct WarmupPlaces WarmupPlaces;

/* `ms`: for how long an order has its place at least. */
WarmupPlaces *warmup_places_new(guint places, gint64 ms);
/* Nobody may wait or have a place. */
void warmup_places_free(WarmupPlaces *places);

/* Waits for a place; FALSE: cancelled, see warmup_places_wake(). */
gboolean warmup_places_take(WarmupPlaces *places, const char *namespace, GCancellable *cancel);
void warmup_places_leave(WarmupPlaces *places, const char *namespace);
/* Whether the place that was taken at this time (g_get_monotonic_time()) is somebody else's now. */
gboolean warmup_places_over(WarmupPlaces *places, const char *namespace, gint64 taken_us);
/* How many wait. */
guint warmup_places_waiting(WarmupPlaces *places);
/* To be called when a GCancellable was cancelled with which a thread may wait. */
void warmup_places_wake(WarmupPlaces *places);

#endif
