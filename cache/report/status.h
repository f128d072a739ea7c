/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON of "status" and "volumes", for hearthctl and the node plugin. */
#ifndef HEARTH_CACHE_REPORT_STATUS_H
#define HEARTH_CACHE_REPORT_STATUS_H

#include <glib.h>
#include <jansson.h>
#include <stdint.h>
#include "cache/report/uses.h"
#include "cache/store/store.h"
#include "cache/volume/report.h"

/* A VOLUME of docs/design/protocol.md. */
json_t *report_volume(const VolumeReport *volume);

/* A volume that is pinned, open or not. */
typedef struct ReportPin {
    char *volume, *name;
    uint64_t bytes, objects;
} ReportPin;

typedef struct ReportStatus {
    int64_t uptime_sec;
    const char *cache_dir;   /* NULL: none */
    const StoreStats *store; /* NULL: the store is off */
    const GArray *pins;      /* ReportPin; NULL: none */
    uint64_t volumes;
    gboolean io_flusher;                    /* see cache/origin/rbd/io_flusher.h */
    uint64_t live_inodes, live_inodes_most; /* see cache/fuse/inode_budget.h */
    unsigned cephfs_connections;
    ReportUses uses;
} ReportStatus;

/* The members of a "status" reply. Free bytes are asked of the cache directory's file system. */
json_t *report_status(const ReportStatus *status);

#endif
