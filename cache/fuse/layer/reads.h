/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reads of a fill layer. What is cached is answered at once. A read that has to wait for Ceph
 * waits as a small struct, without a thread, as long as its origin hears from Ceph:
 *
 *   wait for the fill --it failed--> wait for a read past the store --> answered
 *     \-- Ceph is silent, readTimeout, the reader is killed, stop --> an error; the fill continues
 */
#ifndef HEARTH_CACHE_FUSE_LAYER_READS_H
#define HEARTH_CACHE_FUSE_LAYER_READS_H

#include <fuse_lowlevel.h>
#include <stdatomic.h>
#include "cache/fuse/layer/sources.h"

typedef struct Reads Reads;

/* Of a layer, which everything is borrowed from. */
typedef struct ReadsConfig {
    Origin *origin;
    Store *store;
    const Manifest *manifest;
    Sources *sources;
    unsigned silent_ms;  /* Ceph is away when it has been silent for so long */
    unsigned timeout_ms; /* of a read; 0: none */
} ReadsConfig;

typedef struct ReadCounts {
    _Atomic uint64_t reads, bytes_store, bytes_fill, bytes_origin, failed;
    _Atomic uint64_t read_us; /* until the answers */
} ReadCounts;

Reads *reads_new(const ReadsConfig *config);
/* Answers the request, now or later. Takes the reference of the source, which is of a file; the
 * range is in the file. */
void reads_begin(Reads *reads, fuse_req_t req, Source *source, size_t len, uint64_t off);
/* Answers a request for bytes that cannot be had. */
void reads_fail(Reads *reads, fuse_req_t req);
/* From now on all reads are answered EACCES. */
void reads_refuse(Reads *reads);
/* Another process is to answer: from now on a read that would be answered with an error is not
 * answered. */
void reads_leave(Reads *reads);
const ReadCounts *reads_counts(const Reads *reads);
/* Gives what waits a short time (none after reads_leave()), then answers it with EIO. No read may
 * begin meanwhile. NULL is fine. */
void reads_free(Reads *reads);

#endif
