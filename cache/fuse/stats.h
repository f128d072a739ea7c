/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of one served mount, whichever of session, fill layer and device serves it. A server
 * leaves at zero what it does not count. */
#ifndef HEARTH_CACHE_FUSE_STATS_H
#define HEARTH_CACHE_FUSE_STATS_H

#include <stdint.h>

typedef struct FuseStats {
    uint64_t opens;
    uint64_t hits, misses; /* opens for reading, of regular files that may be cached */
    uint64_t bytes_store;  /* read from complete objects */
    uint64_t bytes_fill;   /* read from objects being filled */
    uint64_t bytes_origin; /* read past the store */
    uint64_t bytes_written;
    uint64_t open_us;                 /* time that opens took, together */
    uint64_t reads, read_us;          /* requests for bytes, and the time until their answers */
    uint64_t origin_reads, origin_us; /* of those: reads of the origin past the store */
    uint64_t bytes_kept;              /* of an image, on the disk */
    uint64_t nodes;                   /* inodes the kernel holds */
} FuseStats;

#endif
