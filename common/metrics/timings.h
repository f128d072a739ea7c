/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long what is done takes, by two words of which there are few: a method and its code, an
 * operation and its result. Thread-safe.
 */
#ifndef HEARTH_COMMON_METRICS_TIMINGS_H
#define HEARTH_COMMON_METRICS_TIMINGS_H

#include <glib.h>
#include "common/metrics/openmetrics.h"

/* Of pairs; what comes beyond is counted as "other". */
#define TIMINGS_MAX 256

typedef struct Timings Timings;

Timings *timings_new(void);
void timings_free(Timings *timings);
/* Both are copied. */
void timings_add(Timings *timings, const char *what, const char *result, gint64 us);
/* As samples of a family of histograms that has begun. */
void timings_tell(Timings *timings, OpenMetrics *metrics, const char *what_label,
                  const char *result_label);

#endif
