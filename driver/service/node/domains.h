/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Domains: where nodes are, by labels that somebody else gives them (--domainlabels, ceph-csi's): a
 * label [PREFIX/]NAME becomes the topology topology.DRIVER/NAME of the node.
 */
#ifndef HEARTH_DRIVER_SERVICE_NODE_DOMAINS_H
#define HEARTH_DRIVER_SERVICE_NODE_DOMAINS_H

#include <glib.h>

/* "LABEL,LABEL,...": the labels, the caller's. INVALID_ARGUMENT. */
char **domains_parse(const char *text, GError **error);
/* The NAME of a label, borrowed. */
const char *domains_name(const char *label);
/* "topology.DRIVER/", the caller's. */
char *domains_prefix(const char *driver_name);

/*
 * The labels' values on a node, NAME -> value, asked of Kubernetes (`kubeconfig` as
 * kube_config_load() has it). FAILED_PRECONDITION names the label that the node lacks.
 */
GHashTable *domains_of_node(const char *kubeconfig, const char *node, char *const *labels,
                            GError **error);

#endif
