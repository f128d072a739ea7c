/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a job waits for storage: the rules. From what was counted while it was watched they name one
 * cause, the first of the table in causes.c that holds. No I/O, no clock.
 */
#ifndef HEARTH_CMD_HEARTHCTL_WHY_CAUSES_H
#define HEARTH_CMD_HEARTHCTL_WHY_CAUSES_H

#include <glib.h>
#include <stdint.h>

typedef enum WhyCause {
    WHY_LOST,     /* nobody serves the mount */
    WHY_OTHER,    /* it waits for storage that is not Hearth's */
    WHY_CPU,      /* it computes */
    WHY_IDLE,     /* it neither computes nor waits for storage */
    WHY_UNREAD,   /* nothing was read while its processes could not be seen */
    WHY_SILENT,   /* Ceph answers nothing */
    WHY_BYPASS,   /* the cache's disk fails, or there is none */
    WHY_WRITES,   /* it waits for its writes, which are done when Ceph has them */
    WHY_SLOW,     /* Ceph answers slowly */
    WHY_UNCACHED, /* nothing of this volume is cached */
    WHY_FULL,     /* the cache is too small: what is read was evicted before */
    WHY_SHARED,   /* what it reads is being written, so that Ceph has to be asked */
    WHY_COLD,     /* what it reads is not in the cache yet */
    WHY_NAMES,    /* it waits for names and attributes */
    WHY_DISK,     /* what it reads comes from the cache's disk */
    WHY_CAUSES,
} WhyCause;

/* What its threads waited for, of all their waiting for Hearth's volumes. */
typedef enum WaitKind { WAIT_READ, WAIT_WRITE, WAIT_NAME, WAIT_KINDS } WaitKind;

#define WHY_UNKNOWN (-1.0)

/* Counts are of the time in which the job was watched; the volume is the one it waited for most. */
typedef struct WhyFacts {
    double seconds;
    /* Of the job. A share is 0 ... 1, or WHY_UNKNOWN when its processes cannot be seen. */
    double wait;    /* of the time of its threads that wait for Hearth or run: those that wait */
    double other;   /* the same of those that wait for other storage */
    double running; /* threads that run, on average */
    double waiting; /* threads that wait for Hearth, on average */
    double cpus;    /* CPU seconds a second */
    gboolean ended; /* there was no process of it any more */
    double kinds[WAIT_KINDS]; /* their shares of the waiting */
    /* Of the volume. */
    gboolean lost, uncached;
    gboolean native; /* the kernel reads what is warm by itself */
    gboolean image;  /* what comes of it past the cache goes into it, too */
    double warm;     /* share of its bytes, at first; WHY_UNKNOWN: its size is not known */
    uint64_t bytes_cached, bytes_total;
    uint64_t from_cache, from_fills, from_ceph; /* bytes read through hearthd */
    uint64_t misses;
    /* Of the node. */
    gboolean disk_off, no_cache;              /* the cache's disk is not used; there is none */
    uint64_t ceph_reads, ceph_us, ceph_bytes; /* reads of Ceph that ended */
    uint64_t fills_active, filled, refetched; /* objects; refetched: had been evicted before */
    uint64_t evicted_bytes, cache_bytes, cache_most; /* cache_most 0: no bound */
} WhyFacts;

WhyCause why_cause(const WhyFacts *facts);
/* "cold", "slow-ceph", ...: for JSON and scripts. */
const char *why_cause_name(WhyCause cause);
/* Whether the job waits for Hearth at all; TRUE when its processes cannot be seen. */
gboolean why_waits(const WhyFacts *facts);
/* Whether the node's cache is full, and whether what is read finds no room in it. */
gboolean why_cache_is_full(const WhyFacts *facts);
gboolean why_has_no_room(const WhyFacts *facts);
/* How long a read of Ceph may take on average before it is called slow, in microseconds. */
uint64_t why_slow_us(const WhyFacts *facts);

#endif
