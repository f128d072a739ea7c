/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clusters the driver may use, from ceph-csi's config.json: an array of
 *
 *     {"clusterID": s, "monitors": [s, ...],
 *      "cephFS": {"subvolumeGroup": s, "radosNamespace": s, "netNamespaceFilePath": s},
 *      "rbd": {"radosNamespace": s, "netNamespaceFilePath": s},
 *      "readAffinity": {"enabled": bool, "crushLocationLabels": [s, ...]},
 *      "cephConf": {OPTION: VALUE, ...}, ...}
 *
 * cephConf is Hearth's own (ceph_conf.h). Other members are ignored. The file is read for every
 * look-up: it is small, and a changed ConfigMap then counts at once, with no state to go stale.
 */
#ifndef HEARTH_DRIVER_CLUSTER_CONFIG_H
#define HEARTH_DRIVER_CLUSTER_CONFIG_H

#include <glib.h>
#include "common/dataset_key.h"
#include "common/error.h"

#define CONFIG_DEFAULT_PATH "/etc/ceph-csi-config/config.json"
#define CONFIG_DEFAULT_GROUP DATASET_DEFAULT_GROUP
#define CONFIG_DEFAULT_JOURNAL "csi"

typedef struct ClusterConfig {
    char *cluster_id;
    char **monitors; /* at least one; in Ceph's syntax, each may be "[v2:...,v1:...]" */
    char *subvolume_group;
    char *journal_namespace; /* of ceph-csi's journal for CephFS */
    char *rados_namespace;   /* of images; "": the pool's default one */
    char **ceph_conf;        /* name, value, name, value, ..., NULL: of every client, checked */
    char **crush_labels; /* labels of nodes with their location in the CRUSH map; NULL: Ceph chooses
                            where reads go */
    /* Files of the network namespaces from which nodes reach the cluster; NULL: their own. */
    char *cephfs_net_namespace, *rbd_net_namespace;
    char *net_namespace; /* in which clients are made: one of those two on a node, else NULL */
} ClusterConfig;

void cluster_config_free(ClusterConfig *cluster);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ClusterConfig, cluster_config_free)

/*
 * The clusters of the file, ClusterConfig*; owned by the array. FAILED_PRECONDITION names the file,
 * the entry and how to fix it.
 */
GPtrArray *config_load(const char *path, GError **error);

/* One of them. As above, and INVALID_ARGUMENT with the known ones when there is none of that ID. */
ClusterConfig *config_find(const char *path, const char *cluster_id, GError **error);

#endif
