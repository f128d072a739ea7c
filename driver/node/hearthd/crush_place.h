/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The location of this node in a cluster's CRUSH map, for reads of the nearest copy: "readAffinity"
 * of config.json, as in ceph-csi. It comes from labels of the Kubernetes Node: for the label
 * "topology.kubernetes.io/zone: a.b" the bucket's type is "zone" and its name "a-b"; "hostname" is
 * the type "host".
 */
#ifndef HEARTH_DRIVER_NODE_HEARTHD_CRUSH_PLACE_H
#define HEARTH_DRIVER_NODE_HEARTHD_CRUSH_PLACE_H

#include <glib.h>
#include <jansson.h>

/* As Ceph's option crush_location has it, "zone=a-b host=c"; the caller's. NULL: the node has none
 * of these labels. `labels` is name -> value. */
char *crush_location(const json_t *labels, char *const *names);

/* Thread-safe. */
typedef struct CrushPlace CrushPlace;

/* kubeconfig: NULL: as kube_config_load() finds one. Connects at the first question. */
CrushPlace *crush_place_new(const char *kubeconfig, const char *node);
/* No question may be running. */
void crush_place_free(CrushPlace *place);

/*
 * crush_location() of this node, whose labels are read again after 10 minutes; the caller's. NULL
 * too if they cannot be read, which is logged: reads then go where Ceph sends them without
 * affinity, and no volume waits for the API server.
 */
char *crush_place_location(CrushPlace *place, char *const *names);

#endif
