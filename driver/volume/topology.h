/* The topology of a node: constants, for kubelet refuses values that change. */
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
