/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The caches of all nodes, as the controller knows them: it watches NodeCaches and Nodes, and
 * answers what is warm where. While `may_act` returns TRUE it also patches the labels of nodes
 * (labels.h has the rules) and deletes the NodeCaches of nodes that are gone.
 *
 * Memory: about 100 bytes for each dataset of each node.
 */
#ifndef HEARTH_DRIVER_WARMTH_WARMTH_H
#define HEARTH_DRIVER_WARMTH_WARMTH_H

#include "driver/kube/client.h"

typedef struct Warmth Warmth;

/* client is borrowed until warmth_free(). may_act is asked before each write, from a thread of
 * warmth's. Starts its threads. */
Warmth *warmth_new(KubeClient *client, gboolean (*may_act)(void *data), void *data);
void warmth_free(Warmth *warmth);
/* on_uncached is called at each report for each volume in it that should be cached and is not; from
 * a thread of warmth's, with no lock held. Not called for reports that came before. */
void warmth_on_uncached(Warmth *warmth, void (*on_uncached)(const char *handle, void *data),
                        void *data);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Warmth, warmth_free)

/* One dataset (common/dataset_key.h) on one node. */
typedef struct WarmthOf {
    guint64 total; /* bytes of the dataset, as nodes report it */
    guint64 bytes; /* of it on the node; 0 too when the node has not reported for WARM_STALE_MS */
} WarmthOf;

/* The functions below may be called from any thread. */

/* node: a value of TOPOLOGY_NODE (volume/topology.h), or NULL. FALSE: no node knows the dataset. */
gboolean warmth_of(Warmth *warmth, const char *dataset, const char *node, WarmthOf *of);
/* The cache of a node, for one dataset. */
typedef struct WarmthCache {
    gint64 age_ms;    /* since its last heartbeat; < 0: it has no NodeCache that reports */
    const char *disk; /* ok, suspect, bypass, off; "" while hearthd does not answer; a literal */
    guint64 room;     /* bytes that may be fetched: free, or held by other datasets */
    guint64 bytes;    /* of the dataset that are there */
} WarmthCache;

void warmth_cache(Warmth *warmth, const char *dataset, const char *node, WarmthCache *cache);

/* The CacheWarmups in a NodeCache (driver/warmup/order.h). */
typedef struct WarmthRuns {
    json_t *orders, *reports; /* new references; NULL: none */
    gint64 age_ms;            /* since its last heartbeat; < 0: it has no NodeCache that reports */
} WarmthRuns;

void warmth_runs_clear(WarmthRuns *runs);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(WarmthRuns, warmth_runs_clear)

/* FALSE: the node has no NodeCache. */
gboolean warmth_runs(Warmth *warmth, const char *node, WarmthRuns *runs);
/* Names of the nodes that have orders, the caller's. NULL: NodeCaches have not all been seen yet.
 */
GPtrArray *warmth_ordered(Warmth *warmth);

#endif
