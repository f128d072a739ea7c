/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics as text that Prometheus reads.
 *
 * Source: OpenMetrics 1.0, "Text format".
 */
#ifndef HEARTH_COMMON_METRICS_OPENMETRICS_H
#define HEARTH_COMMON_METRICS_OPENMETRICS_H

#include <glib.h>
#include "common/metrics/histogram.h"

#define OPENMETRICS_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

typedef struct OpenMetrics OpenMetrics;

OpenMetrics *openmetrics_new(void);
/* Ends it; the text, the caller's. */
GBytes *openmetrics_end(OpenMetrics *metrics);

typedef enum OpenMetricsKind {
    OPENMETRICS_COUNTER,
    OPENMETRICS_GAUGE,
    OPENMETRICS_INFO,
    OPENMETRICS_HISTOGRAM,
} OpenMetricsKind;

/* A family begins; what is added is of it. name: without "_total" and the like. help: one line. */
void openmetrics_family(OpenMetrics *metrics, OpenMetricsKind kind, const char *name,
                        const char *help);

/* labels: name, value, ..., NULL; values in any UTF-8. */
void openmetrics_add(OpenMetrics *metrics, guint64 value, ...) G_GNUC_NULL_TERMINATED;
void openmetrics_add_seconds(OpenMetrics *metrics, double value, ...) G_GNUC_NULL_TERMINATED;
/* Of a family of histograms, whose name ends with "_seconds". */
void openmetrics_add_histogram(OpenMetrics *metrics, const Histogram *histogram,
                               ...) G_GNUC_NULL_TERMINATED;

#endif
