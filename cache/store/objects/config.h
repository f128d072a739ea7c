/* SPDX-License-Identifier: Apache-2.0 */
/* What the store is configured with, and how long its work takes. */
#ifndef HEARTH_CACHE_STORE_OBJECTS_CONFIG_H
#define HEARTH_CACHE_STORE_OBJECTS_CONFIG_H

#include <glib.h>
#include <stdatomic.h>
#include <stdint.h>
#include "common/metrics/histogram.h"

#define STORE_SCRUB_DAILY UINT64_MAX

typedef struct StoreConfig {
    const char *dir;
    uint64_t max_bytes;  /* of all objects; 0: bounded by the file system's free space alone */
    uint64_t max_inodes; /* 0: likewise */
    unsigned high_percent, low_percent; /* watermarks; 0: 90 and 80 */
    unsigned fill_threads;              /* those that are stuck not counted; 0: 32 */
    size_t chunk_bytes;                 /* unit of a fill; 0: 4 MiB */
    /* Larger files of datasets are fetched as far as they are read; 0: none are. */
    uint64_t whole_bytes;
    gboolean verity;              /* use fs-verity where it is available */
    uint64_t scrub_bytes_per_sec; /* read to verify objects in the background; 0: none;
                                   * STORE_SCRUB_DAILY: so that all are verified within a day */
} StoreConfig;

/* Durations since the store was opened. */
typedef struct StoreTimes {
    Histogram fills; /* of an object, from the request until it is kept */
    Histogram reads; /* of an origin, by fills */
    atomic_ulong failed_reads;
} StoreTimes;

#endif
