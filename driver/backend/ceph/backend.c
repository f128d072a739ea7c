/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a backend that CephFS and RBD share. Two IDs of config.json may be one cluster, which
 * only its fsid shows. The probe has no user: it reaches the monitors, and where there is a
 * connection already, asks them on it.
 */
#include "driver/backend/ceph/backend.h"
#include <string.h>
#include "driver/backend/ceph/mon.h"
#include "driver/backend/ceph/monitor_probe.h"
#include "common/bounded.h"

struct CephBackend {
    char *config_path;
    CephConns *conns;
    Bounded *probes; /* at most one hangs, in the resolver */
    gboolean on_node;
};

CephBackend *ceph_backend_new(const char *config_path)
{
    CephBackend *b = g_new0(CephBackend, 1);
    b->config_path = g_strdup(config_path);
    b->conns = ceph_conns_new();
    b->probes = bounded_new(1);
    return b;
}

void ceph_backend_free(CephBackend *b)
{
    if (!b)
        return;
    ceph_conns_free(b->conns);
    bounded_free(b->probes);
    g_free(b->config_path);
    g_free(b);
}

void ceph_backend_set_on_node(CephBackend *b)
{
    b->on_node = TRUE;
}

ClusterConfig *ceph_backend_config(const CephBackend *b, const char *cluster_id, GError **error)
{
    ClusterConfig *cluster = config_find(b->config_path, cluster_id, error);
    if (cluster && b->on_node)
        cluster->net_namespace = g_strdup(cluster->cephfs_net_namespace);
    return cluster;
}

CephConn *ceph_backend_connect(CephBackend *b, const ClusterConfig *cluster, const Secrets *secrets,
                               gint64 deadline_us, GError **error)
{
    return ceph_conns_get(b->conns, cluster, secrets, deadline_us, error);
}

/* The cluster's own ID, the caller's. */
static char *fsid_of(CephBackend *b, const char *cluster_id, const Secrets *secrets,
                     gint64 deadline_us, GError **error)
{
    g_autoptr(ClusterConfig) cluster = ceph_backend_config(b, cluster_id, error);
    g_autoptr(CephConn) conn =
        cluster ? ceph_backend_connect(b, cluster, secrets, deadline_us, error) : NULL;
    return conn ? ceph_mon_fsid(conn, deadline_us, error) : NULL;
}

gboolean ceph_backend_same_cluster(CephBackend *b, const char *one, const char *other,
                                   const Secrets *secrets, gint64 deadline_us, GError **error)
{
    g_autoptr(GError) cause = NULL;
    if (strcmp(one, other) == 0)
        return TRUE;
    g_autofree char *first = fsid_of(b, one, secrets, deadline_us, &cause);
    g_autofree char *second = first ? fsid_of(b, other, secrets, deadline_us, &cause) : NULL;
    if (second)
        return strcmp(first, second) == 0;
    if (!g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_UNAUTHENTICATED))
        g_propagate_error(error, g_steal_pointer(&cause));
    return FALSE;
}

void ceph_backend_free_location(gpointer location)
{
    volume_id_free(location);
}

GPtrArray *ceph_backend_clusters(const CephBackend *b, VolumeType type, GError **error)
{
    g_autoptr(GPtrArray) configured = config_load(b->config_path, error);
    if (!configured)
        return NULL;
    GPtrArray *list = g_ptr_array_new_with_free_func(ceph_backend_free_location);
    for (guint i = 0; i < configured->len; i++) {
        const ClusterConfig *cluster = configured->pdata[i];
        VolumeId *location = g_new0(VolumeId, 1);
        location->type = type;
        location->cluster_id = g_strdup(cluster->cluster_id);
        g_ptr_array_add(list, location);
    }
    return list;
}

typedef struct ReachJob {
    GPtrArray *clusters;
    gboolean *reached;
    gint64 deadline_us;
} ReachJob;

static void reach_run(void *data)
{
    ReachJob *job = data;
    reach_monitors(job->clusters, job->reached, job->deadline_us);
}

static void reach_free(void *data)
{
    ReachJob *job = data;
    g_ptr_array_unref(job->clusters);
    g_free(job->reached);
    g_free(job);
}

/* reach_monitors() where the resolver may hang; the caller's, or NULL. */
static gboolean *reach_bounded(CephBackend *b, GPtrArray *clusters, gint64 deadline_us,
                               GError **error)
{
    gint64 left_ms = (deadline_us - g_get_monotonic_time()) / 1000;
    ReachJob *job = g_new0(ReachJob, 1);
    job->clusters = g_ptr_array_ref(clusters);
    job->reached = g_new0(gboolean, clusters->len + 1);
    job->deadline_us = deadline_us;
    /* A little longer than the sockets get, so that they decide. */
    if (!bounded_run(b->probes, "probe", "reaching the monitors",
                     &(BoundedJob){reach_run, job, reach_free}, left_ms + 250, error))
        return NULL;
    gboolean *reached = g_steal_pointer(&job->reached);
    reach_free(job);
    return reached;
}

gboolean ceph_backend_probe(CephBackend *b, gint64 deadline_us, GError **error)
{
    g_autoptr(GPtrArray) clusters = config_load(b->config_path, error);
    if (!clusters)
        return FALSE;
    g_autofree gboolean *reached = reach_bounded(b, clusters, deadline_us, error);
    if (!reached)
        return FALSE;
    g_autoptr(GString) lost = g_string_new(NULL);
    for (guint i = 0; i < clusters->len; i++) {
        const ClusterConfig *cluster = clusters->pdata[i];
        if (reached[i] && ceph_conns_check(b->conns, cluster->cluster_id, deadline_us, NULL))
            return TRUE;
        g_autofree char *monitors = g_strjoinv(",", cluster->monitors);
        g_string_append_printf(lost, "%s%s (%s)", i ? ", " : "", cluster->cluster_id, monitors);
    }
    if (clusters->len == 0)
        return TRUE; /* nothing to reach: no StorageClass can name a cluster yet */
    return hearth_fail(
        error, HEARTH_ERROR_UNAVAILABLE,
        "no monitor answers of cluster %s; check the addresses in %s, the network, and with "
        "`ceph status` that the monitors have a quorum",
        lost->str, b->config_path);
}
