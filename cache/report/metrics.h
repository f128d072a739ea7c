/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hearthd's metrics, by name and label in hearthd(8). What the kernel reads by itself of a dataset
 * that is mounted natively is not seen here; of that there is how much of it is on the disk, and
 * what the disk says (disk_reads.h).
 */
#ifndef HEARTH_CACHE_REPORT_METRICS_H
#define HEARTH_CACHE_REPORT_METRICS_H

#include <jansson.h>
#include "common/metrics/openmetrics.h"
#include "cache/report/status.h"

/* Volumes and datasets that are told of each by itself, the first by ID; the others are left out,
 * and counted. */
#define METRICS_EACH_MAX 256

typedef struct MetricsSource {
    gint64 uptime_sec;
    const char *cache_dir;    /* NULL: none */
    const StoreStats *store;  /* NULL: off */
    const StoreTimes *times;  /* NULL: off */
    const GPtrArray *volumes; /* VolumeReport, by ID */
    const json_t *datasets;   /* as op "datasets" of proto/wire.h lists them */
} MetricsSource;

/* The text, the caller's. */
GBytes *metrics_text(const MetricsSource *source);

#endif
