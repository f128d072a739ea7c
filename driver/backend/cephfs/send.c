/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/backend/cephfs/internal.h"
#include <errno.h>

json_t *cephfs_mgr_command(const char *prefix, const Subvolume *s)
{
    json_t *command = json_object();
    json_object_set_new(command, "prefix", json_string(prefix));
    json_object_set_new(command, "vol_name", json_string(s->fs_name));
    json_object_set_new(command, "group_name", json_string(s->group));
    if (s->name)
        json_object_set_new(command, "sub_name", json_string(s->name));
    json_object_set_new(command, "format", json_string("json"));
    return command;
}

gboolean cephfs_mgr_send(CephConn *conn, json_t *command, CephReply *reply, gint64 deadline_us,
                         GError **error)
{
    json_auto_t *taken = command;
    return ceph_conn_command(conn, CEPH_MGR, taken, reply, deadline_us, error);
}

void cephfs_mgr_fail(GError **error, CephConn *conn, const CephReply *reply, const char *prefix,
                     const Subvolume *s)
{
    g_autofree char *what =
        g_strdup_printf("%s %s/%s/%s", prefix, s->fs_name, s->group, s->name ? s->name : "");
    ceph_conn_fail(error, conn, reply->rc, what, reply->status);
}

void cephfs_mgr_missing(GError **error, const Subvolume *s)
{
    hearth_fail(error, HEARTH_ERROR_NOT_FOUND, "subvolume %s/%s/%s does not exist", s->fs_name,
                s->group, s->name);
}

gboolean cephfs_mgr_create_group(CephConn *conn, const Subvolume *s, gint64 deadline_us,
                                 GError **error)
{
    reply_auto CephReply reply = {0};
    Subvolume group = {.fs_name = s->fs_name, .group = s->group};
    const char *prefix = "fs subvolumegroup create";
    if (!cephfs_mgr_send(conn, cephfs_mgr_command(prefix, &group), &reply, deadline_us, error))
        return FALSE;
    if (reply.rc != 0 && reply.rc != -EEXIST) {
        cephfs_mgr_fail(error, conn, &reply, prefix, &group);
        return FALSE;
    }
    return TRUE;
}

GPtrArray *cephfs_mgr_names(CephConn *conn, const char *prefix, const Subvolume *s,
                            gint64 deadline_us, GError **error)
{
    reply_auto CephReply reply = {0};
    if (!cephfs_mgr_send(conn, cephfs_mgr_command(prefix, s), &reply, deadline_us, error))
        return NULL;
    if (reply.rc != 0 && reply.rc != -ENOENT) {
        cephfs_mgr_fail(error, conn, &reply, prefix, s);
        return NULL;
    }
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    json_auto_t *list = json_loads(reply.output, 0, NULL);
    gsize i;
    json_t *entry;
    json_array_foreach (list, i, entry) {
        const char *name = json_string_value(json_object_get(entry, "name"));
        if (name)
            g_ptr_array_add(names, g_strdup(name));
    }
    return names;
}
