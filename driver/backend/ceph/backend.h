/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every backend on a Ceph cluster has: ceph-csi's config.json, connections to the clusters in
 * it, and what is known of them without a request's secrets.
 */
#ifndef HEARTH_DRIVER_BACKEND_CEPH_BACKEND_H
#define HEARTH_DRIVER_BACKEND_CEPH_BACKEND_H

#include "driver/backend/backend.h"
#include "driver/backend/ceph/conn.h"

typedef struct CephBackend CephBackend;

CephBackend *ceph_backend_new(const char *config_path);
void ceph_backend_free(CephBackend *backend);
/* It connects to CephFS as nodes do, in the network that config.json says. Before it is used. */
void ceph_backend_set_on_node(CephBackend *backend);

/* The cluster's entry, the caller's; see config_find(). */
ClusterConfig *ceph_backend_config(const CephBackend *backend, const char *cluster_id,
                                   GError **error);
/* A reference to a connection to it; see ceph_conns_get(). */
CephConn *ceph_backend_connect(CephBackend *backend, const ClusterConfig *cluster,
                               const Secrets *secrets, gint64 deadline_us, GError **error);

/* Whether two entries are of one cluster. One that does not know this user is another. FALSE also
 * for failures, which set the error. */
gboolean ceph_backend_same_cluster(CephBackend *backend, const char *one, const char *other,
                                   const Secrets *secrets, gint64 deadline_us, GError **error);

/* For BackendOps.clusters: locations of `type` with a cluster_id alone. */
GPtrArray *ceph_backend_clusters(const CephBackend *backend, VolumeType type, GError **error);
/* For lists of locations. */
void ceph_backend_free_location(gpointer location);

/*
 * For BackendOps.probe: an idle controller can but see whether a monitor answers; where there is an
 * authenticated connection, the monitors are asked on it. One cluster that works is enough: a
 * restart, which a failed probe leads to, would help none and interrupt that one.
 */
gboolean ceph_backend_probe(CephBackend *backend, gint64 deadline_us, GError **error);

#endif
