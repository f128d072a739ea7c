/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a mounted volume works, for CSI's VolumeCondition: hearthd is there and serves it, Ceph
 * answers for it, and its root exists. Each is asked again every time and for a bounded time;
 * cached bytes say nothing about health. A live volume that nobody uses has no connection to Ceph:
 * then Ceph is asked every 10 minutes (served/usages.h).
 */
#ifndef HEARTH_DRIVER_NODE_HEALTH_H
#define HEARTH_DRIVER_NODE_HEALTH_H

#include "driver/node/served/kind.h"

typedef struct HealthReport {
    char *fault;       /* what is wrong and how to fix it; NULL: nothing */
    gboolean device;   /* it is published as a device, so it has no root and no usage */
    guint64 bytes;     /* the size of the device */
    struct statvfs st; /* the usage of a file system without a fault */
} HealthReport;

static inline void health_report_clear(HealthReport *report)
{
    g_clear_pointer(&report->fault, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(HealthReport, health_report_clear)

/* NOT_FOUND: the volume is not mounted at `path`. */
gboolean health_check(Staging *s, const char *volume, const char *path, gint64 timeout_ms,
                      HealthReport *report, GError **error);

#endif
