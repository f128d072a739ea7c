/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NodeCache (csi.hearth.dev/v1alpha1, deploy/crds): what a node reports of its cache. The
 * node's plugin writes the status of the NodeCache with the node's name; the controller reads all.
 */
#ifndef HEARTH_DRIVER_WARMTH_NODE_CACHE_H
#define HEARTH_DRIVER_WARMTH_NODE_CACHE_H

#include <glib.h>
#include <jansson.h>
#include "common/dataset_key.h"
#include "driver/warmth/resources.h"

/* The most datasets in a report; those with most bytes are in it. */
#define NODE_CACHE_DATASETS_MAX 256
/* The most volumes in a report that should be cached and are not. */
#define NODE_CACHE_UNCACHED_MAX 64

/*
 * The status, a new reference. `status` and `datasets` are hearthd's answers to the requests of
 * those names (proto/wire.h), the latter as one array; now_us: wall clock.
 */
json_t *node_cache_status(const json_t *status, const json_t *datasets, gint64 now_us);
/* Adds the node's tier and zone to a status; zone NULL or "": in none. */
void node_cache_place(json_t *status, const char *tier, const char *zone);
/* Adds the pods whose mounts nobody serves; `publications`: as lost_publications() gives them. */
void node_cache_lost(json_t *status, const GPtrArray *publications);
/* Whether it must be written before the next heartbeat: a change of the disk's state, of the set of
 * datasets, uncached volumes or lost mounts, of the quarter that a dataset is in, or of a run of a
 * CacheWarmup (driver/warmup/order.h): a new one, one that is gone, another state, or 5% more.
 */
gboolean node_cache_is_news(const json_t *before, const json_t *after);

typedef struct NodeCacheDataset {
    char id[DATASET_KEY_DIGITS + 1];
    guint64 bytes, total;
} NodeCacheDataset;

/* The content of a NodeCache, which is trusted little. Malformed datasets are skipped. */
typedef struct NodeCacheReport {
    char *node;
    gint64 heartbeat_us;     /* of the node's clock; 0: it has never reported */
    char disk[16];           /* of its cache */
    char tier[64], zone[64]; /* label values; "": not reported; none */
    guint64 bytes, max_bytes, free_bytes;
    GArray *datasets;    /* NodeCacheDataset */
    GPtrArray *uncached; /* handles of volumes */
    GPtrArray *lost;     /* UIDs of pods (mount_lost.h) */
} NodeCacheReport;

gboolean node_cache_read(const json_t *object, NodeCacheReport *report);
void node_cache_report_clear(NodeCacheReport *report);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(NodeCacheReport, node_cache_report_clear)

#endif
