/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes and their caches as a controller knows them, from Nodes and NodeCaches, and the writes
 * that are due. No I/O, no clock but the caller's (now_ms, monotonic), no lock but its owner's.
 */
#ifndef HEARTH_DRIVER_WARMTH_NODE_TABLE_H
#define HEARTH_DRIVER_WARMTH_NODE_TABLE_H

#include "driver/warmth/node_cache.h"
#include "driver/warmth/warmth.h"

typedef struct NodeTable NodeTable;

NodeTable *node_table_new(void);
void node_table_free(NodeTable *table);

/* A NodeCache, and the report that was read from it, from which the datasets are taken. */
void node_table_report(NodeTable *table, const json_t *object, NodeCacheReport *report,
                       gint64 now_ms);
void node_table_no_report(NodeTable *table, const char *node, gint64 now_ms);
/* labels: of its Node. */
void node_table_node(NodeTable *table, const char *node, const json_t *labels, gint64 now_ms);
void node_table_no_node(NodeTable *table, const char *node, gint64 now_ms);

/* See warmth.h. */
gboolean node_table_of(const NodeTable *table, const char *dataset, const char *node, WarmthOf *of,
                       gint64 now_ms);
void node_table_cache(const NodeTable *table, const char *dataset, const char *node,
                      WarmthCache *cache, gint64 now_ms);
gboolean node_table_runs(const NodeTable *table, const char *node, WarmthRuns *runs, gint64 now_ms);
GPtrArray *node_table_ordered(const NodeTable *table);

typedef struct NodeWrite {
    char *node;
    json_t *patch; /* the Node's labels; NULL: delete its NodeCache */
} NodeWrite;

/* At most so many NodeWrites, the caller's. all: all Nodes have been seen, so a NodeCache without a
 * Node belongs to one that is gone. */
GPtrArray *node_table_due(NodeTable *table, guint most, gboolean all, gint64 now_ms);
/* The write was done, and the Node has these labels now. */
void node_table_written(NodeTable *table, const char *node, const json_t *labels);

#endif
