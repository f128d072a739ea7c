/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rates of a node between two samples of its hearthd: of each volume and dataset, and of the cache.
 * A sample is the answers to the ops "status", "volumes" and "datasets" (proto/wire.h), whose
 * counters start with hearthd or with the volume. A counter that went back was restarted; its rate
 * is not known for that interval.
 *
 * hearthd does not count the native reads of datasets by the kernel. The counters of the cache's
 * disk bound them for the whole node.
 */
#ifndef HEARTH_CMD_HEARTHCTL_REPORT_RATES_H
#define HEARTH_CMD_HEARTHCTL_REPORT_RATES_H

#include <glib.h>
#include <jansson.h>
#include <stdint.h>

/* Owned by the caller; NULLs are fine. */
typedef struct RatesLook {
    json_t *status, *volumes, *datasets; /* the latter two are arrays */
    gint64 at_us;                        /* of the monotonic clock */
} RatesLook;

void rates_look_clear(RatesLook *look);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(RatesLook, rates_look_clear)

#define RATE_UNKNOWN (-1.0)

/* All rates are per second; RATE_UNKNOWN without an earlier sample. */
typedef struct RatesRow {
    char *name;  /* what people call it */
    char *id;    /* of the volume; a dataset that is not served has the one it would have */
    char *place; /* FS:PATH; "" when not known */
    gboolean served;
    gboolean native; /* the kernel reads what is warm, and hearthd counts only the rest */
    double warm;     /* percent of its bytes; RATE_UNKNOWN: not known */
    uint64_t hits, misses;
    double opens;
    double cache, fill, ceph; /* bytes read, by where they came from */
    double written;           /* bytes */
    double open_ms, read_ms;  /* of one, on average; RATE_UNKNOWN: there was none */
} RatesRow;

typedef struct Rates {
    double ceph_ms; /* a read of Ceph into the cache, on average; RATE_UNKNOWN: there was none */
    double fetched; /* bytes from Ceph: by fills, by warm jobs, and read past the cache */
    double evicted, evicted_bytes; /* objects; bytes */
    double filled;                 /* objects that were completed */
    double native; /* bytes read from the cache's disk by others than hearthd: an upper bound */
    double cpu;    /* of hearthd, in percent of one CPU */
    gboolean restarted; /* hearthd was restarted between the samples */
    GPtrArray *rows;    /* RatesRow *, by name */
} Rates;

/* `before` may be NULL, or empty. */
Rates *rates_between(const RatesLook *before, const RatesLook *now);
void rates_free(Rates *rates);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Rates, rates_free)

/* As one JSON object, with null for what is not known; the caller's. */
json_t *rates_json(const Rates *rates);

/* The columns rows are sorted by. */
typedef enum RatesSort {
    RATES_BY_NAME,
    RATES_BY_WARM,
    RATES_BY_HITS,
    RATES_BY_MISSES,
    RATES_BY_OPENS,
    RATES_BY_CACHE,
    RATES_BY_FILL,
    RATES_BY_CEPH,
    RATES_BY_WRITTEN,
    RATES_SORTS,
} RatesSort;

/* "volume", "warm", "hits", ...; NULL past the last. */
const char *rates_sort_name(RatesSort by);
/* FALSE: there is no such column. */
gboolean rates_sort_parse(const char *text, RatesSort *by);
/* The largest first, and among equals by name; by name from a to z. */
void rates_sort(Rates *rates, RatesSort by);

#endif
