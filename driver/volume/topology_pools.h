/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ceph-csi's parameter topologyConstrainedPools: JSON, an array of
 *
 *     {"poolName": s, "dataPool": s, "domainSegments": [{"domainLabel": s, "value": s}, ...]}
 *
 * A pool is for nodes that are in all of its segments; dataPool may be left out.
 */
#ifndef HEARTH_DRIVER_VOLUME_TOPOLOGY_POOLS_H
#define HEARTH_DRIVER_VOLUME_TOPOLOGY_POOLS_H

#include <glib.h>

#define TOPOLOGY_POOLS_MAX 65536 /* bytes of the parameter */

typedef struct TopologyPool {
    char *pool, *data_pool; /* data_pool NULL: the same */
    GHashTable *segments;   /* label -> value */
} TopologyPool;

/* TopologyPool*, in their order, owned by the array; one at least. INVALID_ARGUMENT. */
GPtrArray *topology_pools_parse(const char *text, GError **error);

/* Whether a topology with these domains (label -> value) fits the pool. */
gboolean topology_pool_fits(const TopologyPool *pool, GHashTable *domains);

#endif
