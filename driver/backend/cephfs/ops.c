/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CephFS: a volume is a subvolume, a record is an object in the namespace "hearth" of the file
 * system's metadata pool. That pool is where ceph-csi keeps its own and what its
 * documented capabilities (osd "allow rw tag cephfs metadata=*") reach.
 */
#include <errno.h>
#include <string.h>
#include "driver/backend/ceph/backend.h"
#include "driver/backend/ceph/csi_journal.h"
#include "driver/backend/ceph/mon.h"
#include "driver/backend/cephfs/group.h"
#include "driver/backend/cephfs/mgr.h"
#include "driver/backend/cephfs/manifests.h"
#include "driver/backend/cephfs/metadata.h"
#include "driver/backend/cephfs/snap.h"
#include "driver/volume/record.h"

#define NAMESPACE "hearth"

typedef struct Session {
    CephConn *conn;
    char *fs_name, *pool, *journal_namespace;
} Session;

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
    Session *s = session;
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
    Session *s = g_new0(Session, 1);
    s->conn = g_steal_pointer(&conn);
    s->fs_name = g_strdup(where->fs_name);
    s->pool = pool;
    s->journal_namespace = g_strdup(cluster->journal_namespace);
    return s;
}

/* One operation; answers other than 0 and `expected` are errors. */
static gboolean object(Session *s, CephObjectOp op, const char *name, const char *text,
                       int expected, int *rc, char **data, gsize *length, gint64 deadline_us,
                       GError **error)
{
    if (!ceph_conn_object(s->conn, op, s->pool, NAMESPACE, name, text, RECORD_MAX, rc, data, length,
                          deadline_us, error))
        return FALSE;
    if (*rc == 0 || *rc == expected)
        return TRUE;
    g_autofree char *what = g_strdup_printf("record %s in pool %s", name, s->pool);
    ceph_conn_fail(error, s->conn, *rc, what, NULL);
    return FALSE;
}

static gboolean record_create(void *session, const char *name, const char *text, gboolean *existed,
                              gint64 deadline_us, GError **error)
{
    int rc;
    if (!object(session, CEPH_OBJECT_CREATE, name, text, -EEXIST, &rc, NULL, NULL, deadline_us,
                error))
        return FALSE;
    *existed = rc == -EEXIST;
    return TRUE;
}

static char *record_read(void *session, const char *name, gsize *length, gint64 deadline_us,
                         GError **error)
{
    int rc;
    char *data = NULL;
    if (!object(session, CEPH_OBJECT_READ, name, NULL, -ENOENT, &rc, &data, length, deadline_us,
                error))
        return NULL;
    if (!data)
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND, "there is no record %s", name);
    return data;
}

static gboolean record_remove(void *session, const char *name, gint64 deadline_us, GError **error)
{
    int rc;
    return object(session, CEPH_OBJECT_REMOVE, name, NULL, -ENOENT, &rc, NULL, NULL, deadline_us,
                  error);
}

static GPtrArray *record_list(void *session, gint64 deadline_us, GError **error)
{
    Session *s = session;
    int rc;
    g_autoptr(GPtrArray) names = NULL;
    if (!ceph_conn_list(s->conn, s->pool, NAMESPACE, &names, &rc, deadline_us, error))
        return NULL;
    if (rc != 0) {
        g_autofree char *what = g_strdup_printf("listing the records in pool %s", s->pool);
        ceph_conn_fail(error, s->conn, rc, what, NULL);
        return NULL;
    }
    return g_steal_pointer(&names);
}

/* As object(), of a record that is there; -ECANCELED is no error. */
static gboolean change(Session *s, CephRecordOp op, const char *name, const char *text,
                       const char *expected, int *rc, GPtrArray **holders, gint64 deadline_us,
                       GError **error)
{
    if (!ceph_conn_record(s->conn, op, s->pool, NAMESPACE, name, text, expected, rc, holders,
                          deadline_us, error))
        return FALSE;
    if (*rc == 0 || *rc == -ECANCELED)
        return TRUE;
    g_autofree char *what = g_strdup_printf("record %s in pool %s", name, s->pool);
    if (*rc == -ENOENT)
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND, "there is no %s", what);
    else
        ceph_conn_fail(error, s->conn, *rc, what, NULL);
    return FALSE;
}

static gboolean record_replace(void *session, const char *name, const char *expected,
                               const char *text, gboolean *same, gint64 deadline_us, GError **error)
{
    int rc;
    gboolean done =
        change(session, CEPH_RECORD_REPLACE, name, text, expected, &rc, NULL, deadline_us, error);
    *same = done && rc == 0;
    return done;
}

static gboolean record_hold(void *session, const char *name, const char *holder, gboolean *held,
                            gint64 deadline_us, GError **error)
{
    int rc;
    gboolean done =
        change(session, CEPH_RECORD_HOLD, name, holder, NULL, &rc, NULL, deadline_us, error);
    *held = done && rc == 0;
    return done;
}

static gboolean record_release(void *session, const char *name, const char *holder,
                               gint64 deadline_us, GError **error)
{
    int rc;
    g_autoptr(GError) cause = NULL;
    if (change(session, CEPH_RECORD_RELEASE, name, holder, NULL, &rc, NULL, deadline_us, &cause) ||
        g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND))
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&cause));
    return FALSE;
}

static GPtrArray *record_seal(void *session, const char *name, gint64 deadline_us, GError **error)
{
    int rc;
    GPtrArray *holders = NULL;
    return change(session, CEPH_RECORD_SEAL, name, NULL, NULL, &rc, &holders, deadline_us, error)
               ? holders
               : NULL;
}

static gboolean record_unseal(void *session, const char *name, gint64 deadline_us, GError **error)
{
    int rc;
    return change(session, CEPH_RECORD_UNSEAL, name, NULL, NULL, &rc, NULL, deadline_us, error);
}

static Subvolume subvolume_of(const VolumeId *id)
{
    return (Subvolume){.fs_name = id->fs_name, .group = id->group, .name = id->name};
}

static gboolean volume_create(void *session, const VolumeId *id, const VolumeParams *params,
                              gint64 bytes, BackendVolume **made, gint64 deadline_us,
                              GError **error)
{
    Session *s = session;
    Subvolume subvolume = subvolume_of(id);
    *made = NULL;
    if (!cephfs_mgr_create(s->conn, &subvolume, bytes, params->pool, deadline_us, error))
        return FALSE;
    /* The path is the mgr's choice; the size is ours, also of one that was there. */
    char *path = cephfs_mgr_path(s->conn, &subvolume, deadline_us, error);
    if (!path)
        return FALSE;
    *made = g_new0(BackendVolume, 1);
    (*made)->path = path;
    (*made)->bytes = bytes;
    return TRUE;
}

static gboolean volume_remove(void *session, const VolumeId *id, gboolean keep_snapshots,
                              gint64 deadline_us, GError **error)
{
    Session *s = session;
    Subvolume subvolume = subvolume_of(id);
    return cephfs_mgr_remove(s->conn, &subvolume, keep_snapshots, deadline_us, error);
}

static BackendVolume *volume_look(void *session, const VolumeId *id, gint64 deadline_us,
                                  GError **error)
{
    Session *s = session;
    Subvolume subvolume = subvolume_of(id);
    return cephfs_mgr_look(s->conn, &subvolume, deadline_us, error);
}

static gboolean volume_is_free(void *session, const VolumeId *id, gboolean *is_free,
                               gint64 deadline_us, GError **error)
{
    Session *s = session;
    Subvolume subvolume = subvolume_of(id);
    return cephfs_mgr_is_free(s->conn, &subvolume, is_free, deadline_us, error);
}

static GPtrArray *volume_list(void *session, const VolumeId *where, gint64 deadline_us,
                              GError **error)
{
    Session *s = session;
    Subvolume group = {.fs_name = where->fs_name, .group = where->group};
    return cephfs_mgr_list(s->conn, &group, deadline_us, error);
}

static gboolean volume_resize(void *session, const VolumeId *id, gint64 bytes, gint64 deadline_us,
                              GError **error)
{
    Session *s = session;
    Subvolume subvolume = subvolume_of(id);
    return cephfs_mgr_resize(s->conn, &subvolume, bytes, deadline_us, error);
}

static gboolean volume_pin(void *session, const VolumeId *id, const char *pin, gint64 deadline_us,
                           GError **error)
{
    Session *s = session;
    Subvolume subvolume = subvolume_of(id);
    return cephfs_mgr_pin(s->conn, &subvolume, pin, deadline_us, error);
}

static gboolean volume_describe(void *session, const VolumeId *id, const char *snapshot,
                                const json_t *texts, gint64 deadline_us, GError **error)
{
    Session *s = session;
    Subvolume subvolume = subvolume_of(id);
    return cephfs_metadata_set(s->conn, &subvolume, snapshot, texts, deadline_us, error);
}

static gboolean snapshot_create(void *session, const VolumeId *volume, const char *snapshot,
                                gint64 deadline_us, GError **error)
{
    Session *s = session;
    Subvolume subvolume = subvolume_of(volume);
    return cephfs_snap_create(s->conn, &subvolume, snapshot, deadline_us, error);
}

static gboolean snapshot_create_group(void *session, const VolumeId *const *volumes,
                                      const char *const *snapshots, gsize n, gint64 deadline_us,
                                      GError **error)
{
    Session *s = session;
    g_autofree Subvolume *subvolumes = g_new0(Subvolume, n);
    for (gsize i = 0; i < n; i++)
        subvolumes[i] = subvolume_of(volumes[i]);
    return cephfs_group_snapshot(s->conn, subvolumes, snapshots, n, deadline_us, error);
}

static gboolean snapshot_remove(void *session, const VolumeId *volume, const char *snapshot,
                                gint64 deadline_us, GError **error)
{
    Session *s = session;
    Subvolume subvolume = subvolume_of(volume);
    return cephfs_snap_remove(s->conn, &subvolume, snapshot, deadline_us, error);
}

static GPtrArray *leftovers(void *session, gint64 deadline_us, GError **error)
{
    Session *s = session;
    return cephfs_manifests_find(s->conn, s->fs_name, deadline_us, error);
}

static gboolean leftover_remove(void *session, const char *name, gint64 deadline_us, GError **error)
{
    (void)name; /* there is one alone */
    Session *s = session;
    return cephfs_manifests_remove(s->conn, s->fs_name, deadline_us, error);
}

static gboolean snapshot_look(void *session, const VolumeId *volume, const char *snapshot,
                              gint64 deadline_us, GError **error)
{
    Session *s = session;
    Subvolume subvolume = subvolume_of(volume);
    return cephfs_snap_look(s->conn, &subvolume, snapshot, deadline_us, error);
}

static GPtrArray *snapshot_list(void *session, const VolumeId *volume, gint64 deadline_us,
                                GError **error)
{
    Session *s = session;
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
                            const VolumeId *source, const char *snapshot, gint64 deadline_us,
                            GError **error)
{
    Session *s = session;
    Subvolume from = subvolume_of(source), to = subvolume_of(id);
    return cephfs_snap_clone(s->conn, &from, snapshot, &to, params->pool, deadline_us, error);
}

/* All of a file system is one place, under whatever name its cluster goes: no open_beside(). */
static gboolean check_reach(void *backend, const VolumeId *from, const VolumeId *to,
                            const Secrets *secrets, gint64 deadline_us, GError **error)
{
    gboolean same;
    if (!ceph_backend_same_cluster(backend, from->cluster_id, to->cluster_id, secrets, deadline_us,
                                   &same, error))
        return FALSE;
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
    Session *s = session;
    g_autofree char *own = NULL;
    if (!pool && !cephfs_mgr_pools(s->conn, s->fs_name, NULL, &own, deadline_us, error))
        return FALSE;
    return ceph_mon_available(s->conn, pool ? pool : own, available, deadline_us, error);
}

static VolumeId *new_place(const char *cluster_id, const char *fs_name, const char *group)
{
    VolumeId *place = g_new0(VolumeId, 1);
    place->type = VOLUME_CEPHFS;
    place->cluster_id = g_strdup(cluster_id);
    place->fs_name = g_strdup(fs_name);
    place->group = g_strdup(group);
    return place;
}

static GPtrArray *clusters(void *backend, GError **error)
{
    return ceph_backend_clusters(backend, VOLUME_CEPHFS, error);
}

static GPtrArray *places(void *backend, const VolumeId *cluster, const Secrets *secrets,
                         gint64 deadline_us, GError **error)
{
    g_autoptr(ClusterConfig) config = ceph_backend_config(backend, cluster->cluster_id, error);
    g_autoptr(CephConn) conn =
        config ? ceph_backend_connect(backend, config, secrets, deadline_us, error) : NULL;
    g_auto(GStrv) names = conn ? cephfs_mgr_file_systems(conn, deadline_us, error) : NULL;
    if (!names)
        return NULL;
    GPtrArray *list = g_ptr_array_new_with_free_func(ceph_backend_free_place);
    for (char **name = names; *name; name++)
        g_ptr_array_add(list, new_place(cluster->cluster_id, *name, config->subvolume_group));
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
    VolumeId *id = new_place(adopted->cluster_id, fs_name, config->subvolume_group);
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
    Session *s = session;
    const RbdPlace at = {.conn = s->conn, .pool = s->pool, .nspace = s->journal_namespace};
    return ceph_csi_journal_find(&at, kind, handle, entry, deadline_us, error);
}

static gboolean journal_forget(void *session, JournalKind kind, const char *handle,
                               const JournalEntry *entry, gint64 deadline_us, GError **error)
{
    Session *s = session;
    const RbdPlace at = {.conn = s->conn, .pool = s->pool, .nspace = s->journal_namespace};
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
    .needs_secrets = TRUE,
    .locate = locate,
    .open = session_open,
    .close = session_close,
    .check_reach = check_reach,
    .record_create = record_create,
    .record_read = record_read,
    .record_remove = record_remove,
    .record_list = record_list,
    .record_replace = record_replace,
    .record_hold = record_hold,
    .record_release = record_release,
    .record_seal = record_seal,
    .record_unseal = record_unseal,
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
    .places = places,
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
