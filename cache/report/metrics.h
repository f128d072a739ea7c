/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hearthd's metrics; hearthd(8) lists names and labels. Reads of a natively mounted dataset do not
 * pass through hearthd. For them there are the cached bytes of the dataset and the counters of the
 * disk (disk_reads.h).
 */
#ifndef HEARTH_CACHE_REPORT_METRICS_H
#define HEARTH_CACHE_REPORT_METRICS_H

#include <jansson.h>
#include "common/metrics/openmetrics.h"
#include "cache/report/status.h"

/* This many volumes and datasets, the first by ID, have series of their own; the others are omitted
 * and counted. */
#define METRICS_EACH_MAX 256

typedef struct MetricsSource {
    gint64 uptime_sec;
    const char *cache_dir;    /* NULL: none */
    const StoreStats *store;  /* NULL: off */
    const StoreTimes *times;  /* NULL: off */
    const GPtrArray *volumes; /* VolumeReport, by ID */
    ReportUses uses;
    const json_t *datasets; /* as op "datasets" of docs/design/protocol.md lists them */
} MetricsSource;

/* The text, the caller's. */
GBytes *metrics_text(const MetricsSource *source);

#endif
