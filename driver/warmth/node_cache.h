/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NodeCache (csi.hearth.dev/v1alpha1, deploy/crds): what a node says of its cache. The node's
 * plugin writes the status of the one that has the node's name; the controller reads all of them.
 */
#ifndef HEARTH_DRIVER_WARMTH_NODE_CACHE_H
#define HEARTH_DRIVER_WARMTH_NODE_CACHE_H

#include <glib.h>
#include <jansson.h>
#include "driver/volume/dataset_key.h"
#include "driver/warmth/resources.h"

/* As many datasets as a report has at most, those with most bytes. */
#define NODE_CACHE_DATASETS_MAX 256
/* And volumes of which nothing is cached though it should be. */
#define NODE_CACHE_UNCACHED_MAX 64

/*
 * The status, a new reference. `status` and `datasets` are what hearthd answers to the ops of those
 * names (proto/wire.h), the latter as one array; now_us: by the wall clock.
 */
json_t *node_cache_status(const json_t *status, const json_t *datasets, gint64 now_us);
/* Adds where the node is to a status; zone NULL or "": in none. */
void node_cache_place(json_t *status, const char *tier, const char *zone);
/* Whether somebody should hear of it before the next heartbeat: the disk's state, which datasets
 * and uncached volumes there are, a dataset that has entered another quarter, or a run of a
 * CacheWarmup (driver/warmup/order.h) that has come, gone, changed its state, or done another 5%.
 */
gboolean node_cache_is_news(const json_t *before, const json_t *after);

typedef struct NodeCacheDataset {
    char id[DATASET_KEY_DIGITS + 1];
    guint64 bytes, total;
} NodeCacheDataset;

/* What a NodeCache says, of which little is believed. Datasets that are none are passed over. */
typedef struct NodeCacheReport {
    char *node;
    gint64 heartbeat_us;     /* of the node's clock; 0: it has never reported */
    char disk[16];           /* of its cache */
    char tier[64], zone[64]; /* label values; "": not told; none */
    guint64 bytes, max_bytes, free_bytes;
    GArray *datasets;    /* NodeCacheDataset */
    GPtrArray *uncached; /* handles of volumes */
} NodeCacheReport;

gboolean node_cache_read(const json_t *object, NodeCacheReport *report);
void node_cache_report_clear(NodeCacheReport *report);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(NodeCacheReport, node_cache_report_clear)

#endif
