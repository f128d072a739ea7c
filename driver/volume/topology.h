/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a node is. Of a node's topology, which kubelet refuses to change, there is the node alone;
 * its tier and its zone are labels that the controller keeps (warm/labels.h). They have the names
 * they had while they were topology, so that a node of an earlier release is taken over as it is.
 */
#ifndef HEARTH_DRIVER_VOLUME_TOPOLOGY_H
#define HEARTH_DRIVER_VOLUME_TOPOLOGY_H

#include <glib.h>

#define TOPOLOGY_PREFIX "topology.csi.hearth.dev/"
#define TOPOLOGY_TIER TOPOLOGY_PREFIX "tier"
#define TOPOLOGY_ZONE TOPOLOGY_PREFIX "zone"
/* So that capacity can be told of each node; no volume is ever bound to it. */
#define TOPOLOGY_NODE TOPOLOGY_PREFIX "node"

/* A node's name as a label's value, which has 63 characters at most; the caller's. */
char *topology_node_value(const char *node);

#endif
