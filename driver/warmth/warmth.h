/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the controller knows of all nodes' caches, and the labels it keeps on them: it watches
 * NodeCaches and Nodes, answers what is warm where, and while `may_act` says so patches the labels
 * (labels.h has the rules) and deletes the NodeCaches of nodes that are gone.
 *
 * Memory: 100 bytes or so for each dataset of each node.
 */
#ifndef HEARTH_DRIVER_WARMTH_WARMTH_H
#define HEARTH_DRIVER_WARMTH_WARMTH_H

#include "driver/kube/client.h"

typedef struct Warmth Warmth;

/* client is borrowed until warmth_free(). may_act is asked before each write, from a thread of
 * warmth's. Starts its threads. */
Warmth *warmth_new(KubeClient *client, gboolean (*may_act)(void *data), void *data);
void warmth_free(Warmth *warmth);
/* tell: of each volume that a report of a node names as one of which nothing is cached, at each
 * report; from a thread of warmth's, with no lock held. Reports that came before are not told. */
void warmth_tell_uncached(Warmth *warmth, void (*tell)(const char *handle, void *data), void *data);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Warmth, warmth_free)

/* Of one dataset (volume/dataset_key.h) on one node. */
typedef struct WarmthOf {
    guint64 total; /* bytes of the dataset, as the nodes that know it say */
    guint64 bytes; /* of it that the node has; 0 also when it has not reported for WARM_STALE_MS */
} WarmthOf;

/* All that follows: from any thread. */

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

/* What stands in a NodeCache of CacheWarmups (driver/warmup/order.h). */
typedef struct WarmthRuns {
    json_t *orders, *reports; /* new references; NULL: none */
    gint64 age_ms;            /* since its last heartbeat; < 0: it has no NodeCache that reports */
} WarmthRuns;

/* FALSE: it has no NodeCache. */
gboolean warmth_runs(Warmth *warmth, const char *node, WarmthRuns *runs);
/* Names of the nodes that have orders, the caller's. NULL: NodeCaches have not all been seen yet.
 */
GPtrArray *warmth_ordered(Warmth *warmth);

#endif
