/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/backend/cephfs/manifests.h"
#include <errno.h>
#include "driver/backend/ceph/object.h"

#define NAMESPACE "hearth"
#define PREFIX "manifest"

static gboolean remove_manifest(const CephPool *at, const char *name, gint64 deadline_us,
                                GError **error)
{
    const CephObjectRequest request = {.op = CEPH_OBJECT_REMOVE, .object = name};
    CephObjectAnswer answer;
    if (!ceph_object(at, &request, &answer, deadline_us, error))
        return FALSE;
    if (answer.rc == 0 || answer.rc == -ENOENT)
        return TRUE;
    g_autofree char *what = g_strdup_printf("removing %s of pool %s", name, at->pool);
    ceph_conn_fail(error, at->conn, answer.rc, what, NULL);
    return FALSE;
}

/* The names of a pool; *names NULL without an error: this user may not see them. */
static gboolean list_pool(const CephPool *at, GPtrArray **names, gint64 deadline_us, GError **error)
{
    int rc;
    *names = NULL;
    if (!ceph_object_list(at, names, &rc, deadline_us, error))
        return FALSE;
    if (rc == 0 || rc == -EPERM || rc == -EACCES)
        return TRUE;
    g_autofree char *what = g_strdup_printf("listing the manifests in pool %s", at->pool);
    ceph_conn_fail(error, at->conn, rc, what, NULL);
    return FALSE;
}

/* Counts the manifests, and removes them if `remove`. */
static gboolean each_manifest(CephConn *conn, const char *fs_name, gboolean remove, guint *found,
                              gint64 deadline_us, GError **error)
{
    g_auto(GStrv) pools = cephfs_mgr_data_pools(conn, fs_name, deadline_us, error);
    *found = 0;
    for (char **pool = pools; pool && *pool; pool++) {
        g_autoptr(GPtrArray) names = NULL;
        const CephPool at = {.conn = conn, .pool = *pool, .nspace = NAMESPACE};
        if (!list_pool(&at, &names, deadline_us, error))
            return FALSE;
        for (guint i = 0; names && i < names->len; i++) {
            if (!g_str_has_prefix(names->pdata[i], PREFIX))
                continue;
            ++*found;
            if (remove && !remove_manifest(&at, names->pdata[i], deadline_us, error))
                return FALSE;
        }
    }
    return pools != NULL;
}

GPtrArray *cephfs_manifests_find(CephConn *conn, const char *fs_name, gint64 deadline_us,
                                 GError **error)
{
    guint found;
    if (!each_manifest(conn, fs_name, FALSE, &found, deadline_us, error))
        return NULL;
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    if (found)
        g_ptr_array_add(names, g_strdup(PREFIX "*"));
    return names;
}

gboolean cephfs_manifests_remove(CephConn *conn, const char *fs_name, gint64 deadline_us,
                                 GError **error)
{
    guint found;
    return each_manifest(conn, fs_name, TRUE, &found, deadline_us, error);
}
