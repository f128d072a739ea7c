/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The topology of nodes. Kubelet rejects changes of a node's topology, so that is the node's name
 * alone; tier and zone are labels that the controller maintains (driver/warmth/labels.h). Their
 * names are those of the topology of earlier releases, so nodes need no migration.
 */
#ifndef HEARTH_DRIVER_VOLUME_TOPOLOGY_H
#define HEARTH_DRIVER_VOLUME_TOPOLOGY_H

#include <glib.h>

#define TOPOLOGY_PREFIX "topology.csi.hearth.dev/"
#define TOPOLOGY_TIER TOPOLOGY_PREFIX "tier"
#define TOPOLOGY_ZONE TOPOLOGY_PREFIX "zone"
/* For reporting capacity of each node; no volume is ever bound to it. */
#define TOPOLOGY_NODE TOPOLOGY_PREFIX "node"

/* A node's name as a label's value, which has 63 characters at most; the caller's. */
char *topology_node_value(const char *node);

#endif
