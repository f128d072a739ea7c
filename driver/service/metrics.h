/* SPDX-License-Identifier: Apache-2.0 */
/* hearth-csi's metrics, by name and label in hearth-csi(8). */
#ifndef HEARTH_DRIVER_SERVICE_METRICS_H
#define HEARTH_DRIVER_SERVICE_METRICS_H

#include "driver/kube/client.h"
#include "driver/service/call_log.h"

typedef struct ServiceMetrics {
    const char *role;
    gint64 started_us; /* monotonic */
    const CallLog *calls;
    KubeClient *kube;    /* NULL: without --warmth */
    gboolean controller; /* then: */
    gboolean leads;      /* has the lease */
    int lost;            /* publications that nobody serves; -1: not known, or no node plugin */
} ServiceMetrics;

/* The text, the caller's. */
GBytes *service_metrics_text(const ServiceMetrics *metrics);

#endif
