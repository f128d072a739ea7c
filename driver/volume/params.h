/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A StorageClass's parameters, under ceph-csi's names, as a struct. A class of ceph-csi is accepted
 * unchanged: without `type` it is RBD when it names a pool and no file system, and parameters for
 * ceph-csi's own mounting and logging are ignored. Nothing else is ignored: an unknown name, a
 * value out of range, a parameter of another type of volume and a feature that this release does
 * not have are refused with INVALID_ARGUMENT, which names the parameter and the values that are
 * valid.
 */
#ifndef HEARTH_DRIVER_VOLUME_PARAMS_H
#define HEARTH_DRIVER_VOLUME_PARAMS_H

#include <glib.h>
#include <jansson.h>
#include "driver/volume/dataset_name.h"
#include "driver/volume/id.h"
#include "driver/volume/topology_pools.h"

#define PARAMS_DEFAULT_PREFIX "csi-vol-" /* ceph-csi's too */
#define PARAMS_PREFIX_MAX 64

typedef struct VolumeParams {
    VolumeType type;
    char *cluster_id, *fs_name; /* NULL for VOLUME_DIR */
    char *pool; /* of the image; or of a subvolume's data, NULL: the file system's own */
    /* VOLUME_RBD. NULL and 0 leave the choice to the cluster. */
    char *data_pool, *image_features; /* features: names, known and in one order, "," between */
    char *mkfs_options;               /* the node's */
    guint64 stripe_unit, stripe_count, object_size; /* bytes, objects, bytes */
    enum { BACKING_BY_MODE, BACKING_ALWAYS, BACKING_NEVER } backing_snapshot; /* VOLUME_CEPHFS */
    DatasetName *dataset; /* VOLUME_CEPHFS: the snapshot that each volume shows; NULL: none */
    char *mds_pin; /* VOLUME_CEPHFS: export:RANK, distributed:0|1 or random:FRACTION; NULL: none */
    GPtrArray *topology_pools; /* VOLUME_RBD: TopologyPool*, to choose `pool` from; NULL: none */
    json_t *qos;               /* VOLUME_RBD: names of qos.h and numbers; NULL: none */
    char *name_prefix;
    gboolean cache;
    gboolean warm;                            /* fetched into a node's cache when staged there */
    guint64 cache_quota;                      /* bytes; 0: none */
    guint64 read_timeout;                     /* seconds; 0: none */
    char *pv_name, *pvc_name, *pvc_namespace; /* of Kubernetes; NULL: not known */
    GPtrArray *meaningless; /* names of ceph-csi's that were given and have no meaning here; of the
                               program's texts */
} VolumeParams;

/* `map` is name -> value, borrowed; NULL means none. */
VolumeParams *params_parse(GHashTable *map, GError **error);
void params_free(VolumeParams *params);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(VolumeParams, params_free)

/*
 * The parameters by which two requests are the same volume, in one spelling: with defaults, without
 * the claim. A new reference.
 */
json_t *params_to_json(const VolumeParams *params);

/*
 * Bytes from a Kubernetes quantity: digits with an optional k, M, G, T, P, E or Ki ... Ei.
 * FALSE for anything else and beyond G_MAXINT64.
 */
gboolean params_parse_size(const char *text, guint64 *bytes);
/* Seconds from "30", "30s", "5m" or "1h": 1 s to a day. */
gboolean params_parse_seconds(const char *text, guint64 *seconds);
/* on or off; also true or false, which YAML makes of on and off without quotes. */
gboolean params_parse_switch(const char *text, gboolean *on);

#endif
