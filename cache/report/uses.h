/* SPDX-License-Identifier: Apache-2.0 */
/* What hearthd takes of each budget: members of "status", and metrics. */
#ifndef HEARTH_CACHE_REPORT_USES_H
#define HEARTH_CACHE_REPORT_USES_H

#include <jansson.h>
#include <stdint.h>
#include "common/metrics/openmetrics.h"

/* Kinds of memory, in the order of their names in uses.c. */
typedef enum ReportMemory {
    REPORT_LIVE_INODES,
    REPORT_WRITTEN_BLOCKS,
    REPORT_CLIENT_DATA,
    REPORT_CLIENT_NAMES,
    REPORT_FETCH_BUFFERS,
    REPORT_IMAGE_BUFFERS,
    REPORT_BYPASS_BUFFERS,
    REPORT_MEMORY_KINDS,
} ReportMemory;

typedef struct ReportUse {
    uint64_t used, most; /* most 0: no bound */
} ReportUse;

typedef struct ReportUses {
    ReportUse memory[REPORT_MEMORY_KINDS]; /* bytes */
    ReportUse threads;
} ReportUses;

/* Milliseconds of CPU time of this process, of all threads. */
uint64_t report_cpu_ms(void);
/* "memory" of a "status" reply. */
json_t *report_memory(const ReportUses *uses);
void report_uses_metrics(OpenMetrics *m, const ReportUses *uses);

#endif
