/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RBD: a volume is an image of the same name, in the class's pool and the namespace that
 * config.json gives for the cluster. Records are beside it (records.c). This is the table of the
 * backend; the Controller and the node plugin call it through backend.h.
 */
#include <errno.h>
#include <string.h>
#include "driver/backend/ceph/backend.h"
#include "driver/backend/ceph/csi_journal.h"
#include "driver/backend/ceph/mon.h"
#include "driver/backend/rbd/internal.h"

typedef struct Rbd {
    CephBackend *ceph;
    guint max_clone_depth;
} Rbd;

static VolumeId *new_location(const char *cluster_id, const char *pool, const char *nspace)
{
    VolumeId *location = g_new0(VolumeId, 1);
    location->type = VOLUME_RBD;
    location->cluster_id = g_strdup(cluster_id);
    location->pool = g_strdup(pool);
    location->rados_namespace = g_strdup(nspace);
    return location;
}

static VolumeId *locate(void *backend, const VolumeParams *params, GError **error)
{
    Rbd *b = backend;
    if (!params->pool) {
        hearth_fail(
            error, HEARTH_ERROR_INVALID_ARGUMENT,
            "the class has no pool beside topologyConstrainedPools, and the request says no "
            "location");
        return NULL;
    }
    g_autoptr(ClusterConfig) cluster = ceph_backend_config(b->ceph, params->cluster_id, error);
    return cluster ? new_location(params->cluster_id, params->pool, cluster->rados_namespace)
                   : NULL;
}

static void session_close(void *session)
{
    RbdLocation *location = session;
    ceph_conn_unref(location->conn);
    g_free(location->pool);
    g_free(location->nspace);
    g_free(location);
}

static void *session_open(void *backend, const VolumeId *where, const Secrets *secrets,
                          gint64 deadline_us, GError **error)
{
    Rbd *b = backend;
    g_autoptr(ClusterConfig) cluster = ceph_backend_config(b->ceph, where->cluster_id, error);
    CephConn *conn =
        cluster ? ceph_backend_connect(b->ceph, cluster, secrets, deadline_us, error) : NULL;
    if (!conn)
        return NULL;
    RbdLocation *location = g_new0(RbdLocation, 1);
    location->conn = conn;
    location->pool = g_strdup(where->pool);
    location->nspace = g_strdup(where->rados_namespace);
    location->max_clone_depth = b->max_clone_depth;
    return location;
}

static gboolean check_reach(void *backend, const VolumeId *from, const VolumeId *to,
                            const Secrets *secrets, gint64 deadline_us, GError **error)
{
    Rbd *b = backend;
    g_autoptr(GError) cause = NULL;
    const gboolean same = ceph_backend_same_cluster(b->ceph, from->cluster_id, to->cluster_id,
                                                    secrets, deadline_us, &cause);
    if (cause) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    return same || hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                               "clusters %s and %s of config.json are not one, for this class's "
                               "user at least, and Ceph clones images within a cluster; use a "
                               "class of cluster %s, or copy the data in a pod that has both",
                               from->cluster_id, to->cluster_id, from->cluster_id);
}

/* The answer is whether the call's pool could be opened. */
static void nothing_run(RbdCall *call)
{
    (void)call;
}

static void *open_beside(void *session, const VolumeId *where, gint64 deadline_us, GError **error)
{
    const RbdLocation *location = session;
    g_autoptr(GError) cause = NULL;
    RbdLocation *beside = g_new0(RbdLocation, 1);
    beside->conn = ceph_conn_ref(location->conn);
    beside->pool = g_strdup(where->pool);
    beside->nspace = g_strdup(where->rados_namespace);
    beside->max_clone_depth = location->max_clone_depth;
    if (rbd_call_do(rbd_call_new(beside, NULL, NULL), "opening the pool of", nothing_run,
                    RBD_LOOK_MS, deadline_us, &cause))
        return beside;
    session_close(beside);
    if (g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT))
        cause->code = HEARTH_ERROR_NOT_FOUND;
    g_propagate_error(error, g_steal_pointer(&cause));
    return NULL;
}

static gboolean capacity(void *session, const char *pool, gint64 *available, gint64 deadline_us,
                         GError **error)
{
    RbdLocation *location = session;
    return ceph_mon_available(location->conn, pool ? pool : location->pool, available, deadline_us,
                              error);
}

static GPtrArray *clusters(void *backend, GError **error)
{
    return ceph_backend_clusters(((Rbd *)backend)->ceph, VOLUME_RBD, error);
}

static void there_run(RbdCall *call)
{
    int rc = rbd_records_there(call->io);
    call->flag = rc == 0;
    /* A pool that this user may not read has no volumes of ours. */
    if (rc != 0 && rc != -ENOENT && rc != -EPERM && rc != -EACCES)
        rbd_call_fail(call, rc, "looking for the records of");
}

/* FALSE only for failures; a pool without records has no volumes of ours. */
static gboolean has_records(const RbdLocation *location, gboolean *there, gint64 deadline_us,
                            GError **error)
{
    RbdCall *call = rbd_call_new(location, NULL, NULL);
    if (!rbd_call_run(call, "looking for the records of", there_run, RBD_LOOK_MS, deadline_us,
                      error))
        return FALSE;
    *there = call->flag;
    rbd_call_free(call);
    return TRUE;
}

static GPtrArray *locations(void *backend, const VolumeId *cluster, const Secrets *secrets,
                            gint64 deadline_us, GError **error)
{
    Rbd *b = backend;
    g_autoptr(ClusterConfig) config = ceph_backend_config(b->ceph, cluster->cluster_id, error);
    g_autoptr(CephConn) conn =
        config ? ceph_backend_connect(b->ceph, config, secrets, deadline_us, error) : NULL;
    g_autoptr(GPtrArray) pools = conn ? ceph_mon_pools(conn, "rbd", deadline_us, error) : NULL;
    if (!pools)
        return NULL;
    g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func(ceph_backend_free_location);
    for (guint i = 0; i < pools->len; i++) {
        RbdLocation location = {conn, pools->pdata[i], config->rados_namespace, 0};
        gboolean there;
        if (!has_records(&location, &there, deadline_us, error))
            return NULL;
        if (there)
            g_ptr_array_add(list,
                            new_location(cluster->cluster_id, location.pool, location.nspace));
    }
    return g_steal_pointer(&list);
}

static VolumeId *adopt(void *backend, const AdoptedId *adopted, const Secrets *secrets,
                       gint64 deadline_us, GError **error)
{
    Rbd *b = backend;
    g_autoptr(ClusterConfig) config = ceph_backend_config(b->ceph, adopted->cluster_id, error);
    g_autoptr(CephConn) conn =
        config ? ceph_backend_connect(b->ceph, config, secrets, deadline_us, error) : NULL;
    return conn ? rbd_adopt(conn, config->rados_namespace, adopted, deadline_us, error) : NULL;
}

static CephPool pool_of(const RbdLocation *location)
{
    return (CephPool){.conn = location->conn, .pool = location->pool, .nspace = location->nspace};
}

static gboolean journal_find(void *session, JournalKind kind, const char *handle,
                             JournalEntry **entry, gint64 deadline_us, GError **error)
{
    const CephPool at = pool_of(session);
    return ceph_csi_journal_find(&at, kind, handle, entry, deadline_us, error);
}

static gboolean journal_forget(void *session, JournalKind kind, const char *handle,
                               const JournalEntry *entry, gint64 deadline_us, GError **error)
{
    const CephPool at = pool_of(session);
    return ceph_csi_journal_forget(&at, kind, handle, entry, deadline_us, error);
}

static gboolean probe(void *backend, gint64 deadline_us, GError **error)
{
    return ceph_backend_probe(((Rbd *)backend)->ceph, deadline_us, error);
}

static void rbd_free(void *backend)
{
    Rbd *b = backend;
    ceph_backend_free(b->ceph);
    g_free(b);
}

static const BackendOps ops = {
    .type = VOLUME_RBD,
    .needs_secrets = TRUE,
    .locate = locate,
    .open = session_open,
    .close = session_close,
    .check_reach = check_reach,
    .open_beside = open_beside,
    .record_create = rbd_record_create,
    .record_read = rbd_record_read,
    .record_remove = rbd_record_remove,
    .record_list = rbd_record_list,
    .record_replace = rbd_record_replace,
    .volume_create = rbd_volume_create,
    .volume_remove = rbd_volume_remove,
    .volume_clear = rbd_volume_clear,
    .volume_look = rbd_volume_look,
    .volume_list = rbd_volume_list,
    .leftovers = rbd_leftovers,
    .leftover_remove = rbd_leftover_remove,
    .volume_resize = rbd_volume_resize,
    .volume_limit = rbd_volume_limit,
    .volume_describe = rbd_volume_describe,
    .snapshot_create = rbd_snapshot_create,
    .snapshot_create_group = rbd_snapshot_create_group,
    .snapshot_remove = rbd_snapshot_remove,
    .snapshot_look = rbd_snapshot_look,
    .snapshot_list = rbd_snapshot_list,
    .volume_copy = rbd_volume_copy,
    .capacity = capacity,
    .clusters = clusters,
    .locations = locations,
    .adopt = adopt,
    .journal_find = journal_find,
    .journal_forget = journal_forget,
    .probe = probe,
    .free = rbd_free,
};

Backend *backend_rbd_new(const char *config_path, guint max_clone_depth)
{
    Rbd *b = g_new0(Rbd, 1);
    b->ceph = ceph_backend_new(config_path);
    b->max_clone_depth = max_clone_depth;
    Backend *backend = g_new0(Backend, 1);
    backend->ops = &ops;
    backend->impl = b;
    return backend;
}
