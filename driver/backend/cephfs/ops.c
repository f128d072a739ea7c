/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CephFS: a volume is a subvolume. This is the table of the backend; its functions turn a volume's
 * ID into a subvolume and call the files over the mgr's commands (mgr.c, snap.c, group.c) and over
 * objects (records.c, manifests.c). The Controller and the node plugin call it through backend.h.
 */
#include <errno.h>
#include <string.h>
#include "driver/backend/ceph/backend.h"
#include "driver/backend/ceph/csi_journal.h"
#include "driver/backend/ceph/mon.h"
#include "driver/backend/cephfs/group.h"
#include "driver/backend/cephfs/manifests.h"
#include "driver/backend/cephfs/metadata.h"
#include "driver/backend/cephfs/mgr.h"
#include "driver/backend/cephfs/records.h"
#include "driver/backend/cephfs/snap.h"

static VolumeId *locate(void *backend, const VolumeParams *params, GError **error)
{
    g_autoptr(ClusterConfig) cluster = ceph_backend_config(backend, params->cluster_id, error);
    if (!cluster)
        return NULL;
    VolumeId *id = g_new0(VolumeId, 1);
    id->type = VOLUME_CEPHFS;
    id->cluster_id = g_strdup(params->cluster_id);
    id->fs_name = g_strdup(params->fs_name);
    id->group = g_strdup(cluster->subvolume_group);
    return id;
}

static void session_close(void *session)
{
    CephfsSession *s = session;
    ceph_conn_unref(s->conn);
    g_free(s->fs_name);
    g_free(s->pool);
    g_free(s->journal_namespace);
    g_free(s);
}

static void *session_open(void *backend, const VolumeId *where, const Secrets *secrets,
                          gint64 deadline_us, GError **error)
{
    g_autoptr(ClusterConfig) cluster = ceph_backend_config(backend, where->cluster_id, error);
    if (!cluster)
        return NULL;
    g_autoptr(CephConn) conn = ceph_backend_connect(backend, cluster, secrets, deadline_us, error);
    if (!conn)
        return NULL;
    char *pool = cephfs_mgr_metadata_pool(conn, where->fs_name, deadline_us, error);
    if (!pool)
        return NULL;
    CephfsSession *s = g_new0(CephfsSession, 1);
    s->conn = g_steal_pointer(&conn);
    s->fs_name = g_strdup(where->fs_name);
    s->pool = pool;
    s->journal_namespace = g_strdup(cluster->journal_namespace);
    return s;
}

static Subvolume subvolume_of(const VolumeId *id)
{
    return (Subvolume){.fs_name = id->fs_name, .group = id->group, .name = id->name};
}

static BackendVolume *volume_create(void *session, const VolumeId *id, const VolumeParams *params,
                                    gint64 bytes, gint64 deadline_us, GError **error)
{
    CephfsSession *s = session;
    Subvolume subvolume = subvolume_of(id);
    subvolume.pool = params->pool;
    if (!cephfs_mgr_create(s->conn, &subvolume, bytes, deadline_us, error))
        return NULL;
    /* The path is the mgr's choice; the size is ours, also of one that was there. */
    char *path = cephfs_mgr_path(s->conn, &subvolume, deadline_us, error);
    if (!path)
        return NULL;
    BackendVolume *made = g_new0(BackendVolume, 1);
    made->path = path;
    made->bytes = bytes;
    return made;
}

static gboolean volume_remove(void *session, const VolumeId *id, gboolean keep_snapshots,
                              gint64 deadline_us, GError **error)
{
    CephfsSession *s = session;
    Subvolume subvolume = subvolume_of(id);
    return cephfs_mgr_remove(s->conn, &subvolume, keep_snapshots, deadline_us, error);
}

static BackendVolume *volume_look(void *session, const VolumeId *id, gint64 deadline_us,
                                  GError **error)
{
    CephfsSession *s = session;
    Subvolume subvolume = subvolume_of(id);
    return cephfs_mgr_look(s->conn, &subvolume, deadline_us, error);
}

static gboolean volume_is_free(void *session, const VolumeId *id, gboolean *is_free,
                               gint64 deadline_us, GError **error)
{
    CephfsSession *s = session;
    Subvolume subvolume = subvolume_of(id);
    return cephfs_mgr_is_free(s->conn, &subvolume, is_free, deadline_us, error);
}

static GPtrArray *volume_list(void *session, const VolumeId *where, gint64 deadline_us,
                              GError **error)
{
    CephfsSession *s = session;
    Subvolume group = {.fs_name = where->fs_name, .group = where->group};
    return cephfs_mgr_list(s->conn, &group, deadline_us, error);
}

static gboolean volume_resize(void *session, const VolumeId *id, gint64 bytes, gint64 deadline_us,
                              GError **error)
{
    CephfsSession *s = session;
    Subvolume subvolume = subvolume_of(id);
    return cephfs_mgr_resize(s->conn, &subvolume, bytes, deadline_us, error);
}

static gboolean volume_pin(void *session, const VolumeId *id, const char *pin, gint64 deadline_us,
                           GError **error)
{
    CephfsSession *s = session;
    Subvolume subvolume = subvolume_of(id);
    return cephfs_mgr_pin(s->conn, &subvolume, pin, deadline_us, error);
}

static gboolean volume_describe(void *session, const VolumeId *id, const char *snapshot,
                                const json_t *texts, gint64 deadline_us, GError **error)
{
    CephfsSession *s = session;
    Subvolume subvolume = subvolume_of(id);
    return cephfs_metadata_set(s->conn, &subvolume, snapshot, texts, deadline_us, error);
}

static gboolean snapshot_create(void *session, const VolumeId *volume, const char *snapshot,
                                gint64 deadline_us, GError **error)
{
    CephfsSession *s = session;
    Subvolume subvolume = subvolume_of(volume);
    return cephfs_snap_create(s->conn, &subvolume, snapshot, deadline_us, error);
}

static gboolean snapshot_create_group(void *session, const VolumeId *const *volumes,
                                      const char *const *snapshots, gsize n, gint64 deadline_us,
                                      GError **error)
{
    CephfsSession *s = session;
    g_autofree Subvolume *subvolumes = g_new0(Subvolume, n);
    for (gsize i = 0; i < n; i++)
        subvolumes[i] = subvolume_of(volumes[i]);
    return cephfs_group_snapshot(s->conn, subvolumes, snapshots, n, deadline_us, error);
}

static gboolean snapshot_remove(void *session, const VolumeId *volume, const char *snapshot,
                                gint64 deadline_us, GError **error)
{
    CephfsSession *s = session;
    Subvolume subvolume = subvolume_of(volume);
    return cephfs_snap_remove(s->conn, &subvolume, snapshot, deadline_us, error);
}

static GPtrArray *leftovers(void *session, gint64 deadline_us, GError **error)
{
    CephfsSession *s = session;
    return cephfs_manifests_find(s->conn, s->fs_name, deadline_us, error);
}

static gboolean leftover_remove(void *session, const char *name, gint64 deadline_us, GError **error)
{
    (void)name; /* there is one alone */
    CephfsSession *s = session;
    return cephfs_manifests_remove(s->conn, s->fs_name, deadline_us, error);
}

static gboolean snapshot_look(void *session, const VolumeId *volume, const char *snapshot,
                              gint64 deadline_us, GError **error)
{
    CephfsSession *s = session;
    Subvolume subvolume = subvolume_of(volume);
    return cephfs_snap_look(s->conn, &subvolume, snapshot, deadline_us, error);
}

static GPtrArray *snapshot_list(void *session, const VolumeId *volume, gint64 deadline_us,
                                GError **error)
{
    CephfsSession *s = session;
    Subvolume subvolume = subvolume_of(volume);
    return cephfs_snap_list(s->conn, &subvolume, deadline_us, error);
}

/*
 * A subvolume is /volumes/GROUP/NAME/UUID; its snapshots are taken of NAME, which stays for them
 * when the subvolume goes (mgr/volumes, subvolume_v2.py).
 */
static char *snapshot_path(const char *path, const char *snapshot)
{
    g_autofree char *base = g_path_get_dirname(path), *content = g_path_get_basename(path);
    return g_strdup_printf("%s/.snap/%s/%s", base, snapshot, content);
}

static gboolean volume_copy(void *session, const VolumeId *id, const VolumeParams *params,
                            const BackendSnapshot *source, gint64 deadline_us, GError **error)
{
    CephfsSession *s = session;
    Subvolume from = subvolume_of(source->volume), to = subvolume_of(id);
    to.pool = params->pool;
    return cephfs_snap_clone(s->conn, &from, source->name, &to, deadline_us, error);
}

/* All of a file system is one location, under whatever name its cluster goes: no open_beside(). */
static gboolean check_reach(void *backend, const VolumeId *from, const VolumeId *to,
                            const Secrets *secrets, gint64 deadline_us, GError **error)
{
    g_autoptr(GError) cause = NULL;
    const gboolean same = ceph_backend_same_cluster(backend, from->cluster_id, to->cluster_id,
                                                    secrets, deadline_us, &cause);
    if (cause) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    if (same && strcmp(from->fs_name, to->fs_name) == 0)
        return TRUE;
    return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                       "Ceph clones subvolumes within a file system; use a class with fsName %s "
                       "and clusterID %s, or copy the data in a pod that has both",
                       from->fs_name, from->cluster_id);
}

static gboolean capacity(void *session, const char *pool, gint64 *available, gint64 deadline_us,
                         GError **error)
{
    CephfsSession *s = session;
    g_autofree char *own = NULL;
    if (!pool && !cephfs_mgr_pools(s->conn, s->fs_name, NULL, &own, deadline_us, error))
        return FALSE;
    return ceph_mon_available(s->conn, pool ? pool : own, available, deadline_us, error);
}

static VolumeId *new_location(const char *cluster_id, const char *fs_name, const char *group)
{
    VolumeId *location = g_new0(VolumeId, 1);
    location->type = VOLUME_CEPHFS;
    location->cluster_id = g_strdup(cluster_id);
    location->fs_name = g_strdup(fs_name);
    location->group = g_strdup(group);
    return location;
}

static GPtrArray *clusters(void *backend, GError **error)
{
    return ceph_backend_clusters(backend, VOLUME_CEPHFS, error);
}

static GPtrArray *locations(void *backend, const VolumeId *cluster, const Secrets *secrets,
                            gint64 deadline_us, GError **error)
{
    g_autoptr(ClusterConfig) config = ceph_backend_config(backend, cluster->cluster_id, error);
    g_autoptr(CephConn) conn =
        config ? ceph_backend_connect(backend, config, secrets, deadline_us, error) : NULL;
    g_auto(GStrv) names = conn ? cephfs_mgr_file_systems(conn, deadline_us, error) : NULL;
    if (!names)
        return NULL;
    GPtrArray *list = g_ptr_array_new_with_free_func(ceph_backend_free_location);
    for (char **name = names; *name; name++)
        g_ptr_array_add(list, new_location(cluster->cluster_id, *name, config->subvolume_group));
    return list;
}

static VolumeId *adopt(void *backend, const AdoptedId *adopted, const Secrets *secrets,
                       gint64 deadline_us, GError **error)
{
    g_autoptr(ClusterConfig) config = ceph_backend_config(backend, adopted->cluster_id, error);
    g_autoptr(CephConn) conn =
        config ? ceph_backend_connect(backend, config, secrets, deadline_us, error) : NULL;
    g_autofree char *fs_name =
        conn ? cephfs_mgr_file_system(conn, adopted->location, deadline_us, error) : NULL;
    if (!fs_name)
        return NULL;
    VolumeId *id = new_location(adopted->cluster_id, fs_name, config->subvolume_group);
    id->name = adopted_id_volume(adopted);
    id->adopted = TRUE;
    id->handle = adopted_id_encode(adopted);
    /* A class of ceph-csi's may have set volumeNamePrefix, which only its journal knows. */
    GError *cause = NULL;
    Subvolume subvolume = subvolume_of(id);
    g_autoptr(BackendVolume) usual = cephfs_mgr_look(conn, &subvolume, deadline_us, &cause);
    if (!usual && g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND)) {
        g_clear_error(&cause);
        char *name = cephfs_mgr_find(conn, &subvolume, adopted->uuid, deadline_us, &cause);
        if (name) {
            g_free(id->name);
            id->name = name;
        }
    }
    if (!cause)
        return id;
    g_propagate_error(error, cause);
    volume_id_free(id);
    return NULL;
}

static gboolean journal_find(void *session, JournalKind kind, const char *handle,
                             JournalEntry **entry, gint64 deadline_us, GError **error)
{
    CephfsSession *s = session;
    const CephPool at = {.conn = s->conn, .pool = s->pool, .nspace = s->journal_namespace};
    return ceph_csi_journal_find(&at, kind, handle, entry, deadline_us, error);
}

static gboolean journal_forget(void *session, JournalKind kind, const char *handle,
                               const JournalEntry *entry, gint64 deadline_us, GError **error)
{
    CephfsSession *s = session;
    const CephPool at = {.conn = s->conn, .pool = s->pool, .nspace = s->journal_namespace};
    return ceph_csi_journal_forget(&at, kind, handle, entry, deadline_us, error);
}

static gboolean probe(void *backend, gint64 deadline_us, GError **error)
{
    return ceph_backend_probe(backend, deadline_us, error);
}

static void cephfs_free(void *backend)
{
    ceph_backend_free(backend);
}

static const BackendOps ops = {
    .type = VOLUME_CEPHFS,
    .removal_may_be_late = TRUE,
    .needs_secrets = TRUE,
    .locate = locate,
    .open = session_open,
    .close = session_close,
    .check_reach = check_reach,
    .record_create = cephfs_record_create,
    .record_read = cephfs_record_read,
    .record_remove = cephfs_record_remove,
    .record_list = cephfs_record_list,
    .record_replace = cephfs_record_replace,
    .record_hold = cephfs_record_hold,
    .record_release = cephfs_record_release,
    .record_seal = cephfs_record_seal,
    .record_unseal = cephfs_record_unseal,
    .volume_create = volume_create,
    .volume_remove = volume_remove,
    .volume_look = volume_look,
    .volume_is_free = volume_is_free,
    .volume_list = volume_list,
    .leftovers = leftovers,
    .leftover_remove = leftover_remove,
    .volume_resize = volume_resize,
    .volume_pin = volume_pin,
    .volume_describe = volume_describe,
    .snapshot_create = snapshot_create,
    .snapshot_create_group = snapshot_create_group,
    .snapshot_remove = snapshot_remove,
    .snapshot_look = snapshot_look,
    .snapshot_list = snapshot_list,
    .snapshot_path = snapshot_path,
    .volume_copy = volume_copy,
    .capacity = capacity,
    .clusters = clusters,
    .locations = locations,
    .adopt = adopt,
    .journal_find = journal_find,
    .journal_forget = journal_forget,
    .probe = probe,
    .free = cephfs_free,
};

Backend *backend_cephfs_new(const char *config_path)
{
    Backend *backend = g_new0(Backend, 1);
    backend->ops = &ops;
    backend->impl = ceph_backend_new(config_path);
    return backend;
}

Backend *backend_cephfs_new_on_node(const char *config_path)
{
    Backend *backend = backend_cephfs_new(config_path);
    ceph_backend_set_on_node(backend->impl);
    return backend;
}
