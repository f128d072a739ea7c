/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps up with the objects of a kind: a list, then a watch from where the list ended, for ever, on
 * a thread of its own (an informer of client-go, but without a store: its user keeps the parts of
 * objects that it needs).
 *
 *              on_synced                     the server ends it, bookmark or event in hand
 *   list ────────────────> watch ──────────> watch, from the last resourceVersion
 *    ^                       │ 410, ERROR event, an event that is malformed
 *    └───────────────────────┘ pause, if the last time was not long ago
 *
 * The callbacks are called on that thread, with no lock held, in the order of the API server. They
 * must not call kube_watch_free(). Each change is reported once (seen.h); changes that the watch
 * did not see one by one are reported as one.
 */
#ifndef HEARTH_DRIVER_KUBE_WATCH_WATCH_H
#define HEARTH_DRIVER_KUBE_WATCH_WATCH_H

#include "driver/kube/watch/seen.h"
#include "driver/kube/list.h"

typedef struct KubeWatchOps {
    void (*on_change)(KubeChange change, const json_t *object, void *data);
    /* All objects of a list have been reported; also each time after another list. May be NULL.
     */
    void (*on_synced)(void *data);
    /* Called once when it stops working, with the reason, and once with NULL when it works again;
     * meanwhile it tries again for ever. May be NULL. */
    void (*on_trouble)(const GError *error, void *data);
} KubeWatchOps;

/* Times; 0 is the default. Tests use shorter ones. */
typedef struct KubeWatchTimes {
    gint64 first_pause_ms,
        most_pause_ms; /* 500, 10 s: the longest delay until it notices that the server is back */
    gint64 list_ms;    /* a page's time; 30 s */
    gint64 stream_s;   /* after which the server is to end a watch; 300 */
    gint64 steady_ms;  /* a watch that lasted so long was no failure; 10 s */
    gsize line_max;    /* bytes of an event; 4 MiB */
    guint page;        /* objects; 250 */
} KubeWatchTimes;

typedef struct KubeWatch KubeWatch;

/* client is borrowed until kube_watch_free(); what the selection points to is copied. times may be
 * NULL. */
KubeWatch *kube_watch_new(KubeClient *client, const KubeSelection *selection,
                          const KubeWatchOps *ops, void *data, const KubeWatchTimes *times);
/* Stops and joins the thread, which takes as long as a callback that is running. */
void kube_watch_free(KubeWatch *watch);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KubeWatch, kube_watch_free)

#endif
