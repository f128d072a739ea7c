/*
 * The clusters the driver may use, from ceph-csi's config.json: an array of
 *
 *     {"clusterID": s, "monitors": [s, ...], "cephFS": {"subvolumeGroup": s},
 *      "rbd": {"radosNamespace": s}, ...}
 *
 * Other members (readAffinity, netNamespaceFilePath, ...) are ignored. The file is read for
 * every look-up: it is small, and a changed ConfigMap then counts at once, with no state to go
 * stale.
 */
#ifndef HEARTH_DRIVER_VOLUME_CONFIG_H
#define HEARTH_DRIVER_VOLUME_CONFIG_H

#include <glib.h>
#include "driver/error.h"

#define CONFIG_DEFAULT_PATH "/etc/ceph-csi-config/config.json"
#define CONFIG_DEFAULT_GROUP "csi" /* ceph-csi's too */

typedef struct ClusterConfig {
    char *cluster_id;
    char **monitors; /* at least one; in Ceph's syntax, each may be "[v2:...,v1:...]" */
    char *subvolume_group;
    char *rados_namespace; /* of images; "": the pool's default one */
} ClusterConfig;

void cluster_config_free(ClusterConfig *cluster);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ClusterConfig, cluster_config_free)

/*
 * The clusters of the file, ClusterConfig*; owned by the array. FAILED_PRECONDITION names the file,
 * the entry and the mend.
 */
GPtrArray *config_load(const char *path, GError **error);

/* One of them. As above, and INVALID_ARGUMENT listing the known ones when there is no such. */
ClusterConfig *config_find(const char *path, const char *cluster_id, GError **error);

#endif
