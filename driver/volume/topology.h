/* The topology of a node: constants, for kubelet refuses values that change. */
#ifndef HEARTH_DRIVER_VOLUME_TOPOLOGY_H
#define HEARTH_DRIVER_VOLUME_TOPOLOGY_H

#include <glib.h>

#define TOPOLOGY_TIER "topology.csi.hearth.dev/tier"
#define TOPOLOGY_ZONE "topology.csi.hearth.dev/zone"
/* So that capacity can be told of each node; no volume is ever bound to it. */
#define TOPOLOGY_NODE "topology.csi.hearth.dev/node"

/* A node's name as a label's value, which has 63 characters at most; the caller's. */
char *topology_node_value(const char *node);

#endif
