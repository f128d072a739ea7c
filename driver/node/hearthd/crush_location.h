/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The location of this node in a cluster's CRUSH map, for reads of the nearest copy: "readAffinity"
 * of config.json, as in ceph-csi. It comes from labels of the Kubernetes Node: for the label
 * "topology.kubernetes.io/zone: a.b" the bucket's type is "zone" and its name "a-b"; "hostname" is
 * the type "host".
 */
#ifndef HEARTH_DRIVER_NODE_HEARTHD_CRUSH_LOCATION_H
#define HEARTH_DRIVER_NODE_HEARTHD_CRUSH_LOCATION_H

#include <glib.h>
#include <jansson.h>

/* As Ceph's option crush_location has it, "zone=a-b host=c"; the caller's. NULL: the node has none
 * of these labels. `labels` is name -> value. */
char *crush_location_from_labels(const json_t *labels, char *const *names);

/* Thread-safe. */
typedef struct CrushLocation CrushLocation;

/* kubeconfig: NULL: as kube_config_load() finds one. Connects at the first question. */
CrushLocation *crush_location_new(const char *kubeconfig, const char *node);
/* No question may be running. */
void crush_location_free(CrushLocation *location);

/*
 * crush_location_from_labels() of this node, whose labels are read again after 10 minutes; the
 * caller's. NULL too if they cannot be read, which is logged: reads then go where Ceph sends them
 * without affinity, and no volume waits for the API server.
 */
char *crush_location_get(CrushLocation *location, char *const *names);

#endif
