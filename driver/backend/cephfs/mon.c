/* SPDX-License-Identifier: Apache-2.0 */
/* File systems and their pools, as the monitors know them. Answers that each call needs are
 * remembered for seconds (ceph_conn_remember()). */
#include "driver/backend/ceph/mon.h"
#include "driver/backend/cephfs/internal.h"
#include <string.h>

static const char *text_of(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

gboolean cephfs_mgr_pools(CephConn *conn, const char *fs_name, char **metadata, char **data,
                          gint64 deadline_us, GError **error)
{
    json_auto_t *list = ceph_mon_ask(conn, "fs ls", deadline_us, error);
    if (!list)
        return FALSE;
    g_autoptr(GString) known = g_string_new(NULL);
    gboolean found = FALSE;
    gsize i;
    json_t *fs;
    json_array_foreach (list, i, fs) {
        const char *name = text_of(fs, "name"), *meta = text_of(fs, "metadata_pool");
        const char *first = json_string_value(json_array_get(json_object_get(fs, "data_pools"), 0));
        if (!name || !meta || !first)
            continue;
        g_string_append_printf(known, "%s%s", known->len ? ", " : "", name);
        if (found || strcmp(name, fs_name) != 0)
            continue;
        found = TRUE;
        if (metadata)
            *metadata = g_strdup(meta);
        if (data)
            *data = g_strdup(first);
    }
    if (!found)
        hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                    "fsName \"%s\": client.%s sees no such file system on the cluster; there are: "
                    "%s",
                    fs_name, ceph_conn_user(conn), known->len ? known->str : "none");
    return found;
}

/* A new file system under an old name may be taken for the old one for this long. */
#define POOL_AGE_US (5 * G_USEC_PER_SEC)

char *cephfs_mgr_metadata_pool(CephConn *conn, const char *fs_name, gint64 deadline_us,
                               GError **error)
{
    g_autofree char *memo = g_strconcat("metadata pool of ", fs_name, NULL);
    char *pool = ceph_conn_recall(conn, memo, POOL_AGE_US);
    if (!pool && cephfs_mgr_pools(conn, fs_name, &pool, NULL, deadline_us, error))
        ceph_conn_remember(conn, memo, pool);
    return pool;
}

char **cephfs_mgr_data_pools(CephConn *conn, const char *fs_name, gint64 deadline_us,
                             GError **error)
{
    g_autofree char *memo = g_strconcat("data pools of ", fs_name, NULL);
    g_autofree char *known = ceph_conn_recall(conn, memo, POOL_AGE_US);
    if (known)
        return g_strsplit(known, "\n", -1);
    json_auto_t *list = ceph_mon_ask(conn, "fs ls", deadline_us, error);
    if (!list)
        return NULL;
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    gsize i, k;
    json_t *fs, *pool;
    json_array_foreach (list, i, fs) {
        if (g_strcmp0(text_of(fs, "name"), fs_name) != 0)
            continue;
        json_array_foreach (json_object_get(fs, "data_pools"), k, pool)
            g_ptr_array_add(names, g_strdup(json_string_value(pool)));
    }
    g_ptr_array_add(names, NULL);
    g_autofree char *joined = g_strjoinv("\n", (char **)names->pdata);
    ceph_conn_remember(conn, memo, joined);
    return g_strdupv((char **)names->pdata);
}

static gint compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char **cephfs_mgr_file_systems(CephConn *conn, gint64 deadline_us, GError **error)
{
    json_auto_t *list = ceph_mon_ask(conn, "fs ls", deadline_us, error);
    if (!list)
        return NULL;
    GPtrArray *names = g_ptr_array_new();
    gsize i;
    json_t *fs;
    json_array_foreach (list, i, fs) {
        if (text_of(fs, "name"))
            g_ptr_array_add(names, g_strdup(text_of(fs, "name")));
    }
    g_ptr_array_sort(names, compare_names);
    g_ptr_array_add(names, NULL);
    return (char **)g_ptr_array_free(names, FALSE);
}

char *cephfs_mgr_file_system(CephConn *conn, guint64 id, gint64 deadline_us, GError **error)
{
    json_auto_t *map = ceph_mon_ask(conn, "fs dump", deadline_us, error);
    char *name = NULL;
    gsize i;
    json_t *fs;
    json_array_foreach (json_object_get(map, "filesystems"), i, fs) {
        if (!name && json_integer_value(json_object_get(fs, "id")) == (json_int_t)id)
            name = g_strdup(text_of(json_object_get(fs, "mdsmap"), "fs_name"));
    }
    return name;
}
