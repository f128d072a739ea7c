/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Subvolumes, by commands to the mgr's `volumes` module. The mgr runs its commands one after
 * another, so each function sends as few as it can. ops.c calls this for the backend.
 */
#include "driver/backend/cephfs/internal.h"
#include "driver/backend/cephfs/snap.h"
#include <errno.h>
#include <string.h>

/* Any user of a pod may write, as in ceph-csi: Kubernetes narrows it by fsGroup. */
#define SUBVOLUME_MODE "777"

gboolean cephfs_mgr_create(CephConn *conn, const Subvolume *s, gint64 bytes, gint64 deadline_us,
                           GError **error)
{
    const char *prefix = "fs subvolume create";
    for (int attempt = 0;; attempt++) {
        reply_auto CephReply reply = {0};
        json_t *command = cephfs_mgr_command(prefix, s);
        json_object_set_new(command, "size", json_integer(bytes));
        json_object_set_new(command, "mode", json_string(SUBVOLUME_MODE));
        if (s->pool)
            json_object_set_new(command, "pool_layout", json_string(s->pool));
        if (!cephfs_mgr_send(conn, command, &reply, deadline_us, error))
            return FALSE;
        if (reply.rc == 0 || reply.rc == -EEXIST)
            return TRUE;
        /* The usual case has the group, so it is made only when missed. */
        if (reply.rc != -ENOENT || attempt > 0) {
            cephfs_mgr_fail(error, conn, &reply, prefix, s);
            return FALSE;
        }
        if (!cephfs_mgr_create_group(conn, s, deadline_us, error))
            return FALSE;
    }
}

/* A cancelled clone releases its target within this time. */
#define CANCEL_TRIES 20
#define CANCEL_WAIT_US (100 * 1000)

gboolean cephfs_mgr_remove(CephConn *conn, const Subvolume *s, gboolean retain_snapshots,
                           gint64 deadline_us, GError **error)
{
    const char *prefix = "fs subvolume rm";
    for (int attempt = 0;; attempt++) {
        reply_auto CephReply reply = {0};
        json_t *command = cephfs_mgr_command(prefix, s);
        if (retain_snapshots)
            json_object_set_new(command, "retain_snapshots", json_true());
        /* Only a forced removal takes what a clone has left. */
        if (attempt > 0)
            json_object_set_new(command, "force", json_true());
        if (!cephfs_mgr_send(conn, command, &reply, deadline_us, error))
            return FALSE;
        if (reply.rc == 0 || reply.rc == -ENOENT)
            return TRUE;
        if (reply.rc != -EAGAIN || attempt == CANCEL_TRIES) {
            cephfs_mgr_fail(error, conn, &reply, prefix, s);
            return FALSE;
        }
        if (attempt == 0 && !cephfs_snap_cancel(conn, s, deadline_us, error))
            return FALSE;
        /* The mgr does not signal when its cloner has stopped. */
        if (attempt > 0)
            g_usleep(CANCEL_WAIT_US);
    }
}

char *cephfs_mgr_path(CephConn *conn, const Subvolume *s, gint64 deadline_us, GError **error)
{
    reply_auto CephReply reply = {0};
    const char *prefix = "fs subvolume getpath";
    if (!cephfs_mgr_send(conn, cephfs_mgr_command(prefix, s), &reply, deadline_us, error))
        return NULL;
    g_strstrip(reply.output);
    if (reply.rc == 0 && *reply.output == '/')
        return g_steal_pointer(&reply.output);
    if (reply.rc == -ENOENT)
        cephfs_mgr_missing(error, s);
    else if (reply.rc != 0)
        cephfs_mgr_fail(error, conn, &reply, prefix, s);
    else
        hearth_fail(error, HEARTH_ERROR_INTERNAL, "%s %s/%s/%s: the mgr's answer is no path",
                    prefix, s->fs_name, s->group, s->name);
    return NULL;
}

GPtrArray *cephfs_mgr_list(CephConn *conn, const Subvolume *group, gint64 deadline_us,
                           GError **error)
{
    return cephfs_mgr_names(conn, "fs subvolume ls", group, deadline_us, error);
}

/* Looking up one subvolume costs the mgr a fifth of making it, so a list of all is used instead. */
#define NAMES_AGE_US (30 * G_USEC_PER_SEC)

gboolean cephfs_mgr_is_free(CephConn *conn, const Subvolume *s, gboolean *is_free,
                            gint64 deadline_us, GError **error)
{
    g_autofree char *memo = g_strconcat("subvolumes of ", s->fs_name, "/", s->group, NULL);
    g_autofree char *names = ceph_conn_recall(conn, memo, NAMES_AGE_US);
    if (!names) {
        Subvolume group = {.fs_name = s->fs_name, .group = s->group};
        g_autoptr(GPtrArray) list = cephfs_mgr_list(conn, &group, deadline_us, error);
        if (!list)
            return FALSE;
        g_ptr_array_add(list, NULL);
        g_autofree char *lines = g_strjoinv("\n", (char **)list->pdata);
        names = g_strconcat("\n", lines, "\n", NULL);
        ceph_conn_remember(conn, memo, names);
    }
    g_autofree char *line = g_strconcat("\n", s->name, "\n", NULL);
    *is_free = strstr(names, line) == NULL;
    return TRUE;
}

/* "2024-01-31 10:20:30", UTC. */
static gint64 time_of(const char *text)
{
    g_autoptr(GTimeZone) utc = g_time_zone_new_utc();
    g_autoptr(GDateTime) time = text ? g_date_time_new_from_iso8601(text, utc) : NULL;
    return time ? g_date_time_to_unix(time) : 0;
}

BackendVolume *cephfs_mgr_look(CephConn *conn, const Subvolume *s, gint64 deadline_us,
                               GError **error)
{
    reply_auto CephReply reply = {0};
    const char *prefix = "fs subvolume info";
    if (!cephfs_mgr_send(conn, cephfs_mgr_command(prefix, s), &reply, deadline_us, error))
        return NULL;
    if (reply.rc == -ENOENT) {
        cephfs_mgr_missing(error, s);
        return NULL;
    }
    if (reply.rc == -EAGAIN)
        return cephfs_snap_progress(conn, s, deadline_us, error);
    if (reply.rc == -ENODATA) {
        /*
         * A directory without the module's metadata and without a quota: the mgr died while it made
         * it, or before its metadata was on disk. `create` continues it.
         */
        BackendVolume *part = g_new0(BackendVolume, 1);
        part->incomplete = TRUE;
        part->path = g_strdup_printf("/volumes/%s/%s", s->group, s->name);
        return part;
    }
    if (reply.rc != 0) {
        cephfs_mgr_fail(error, conn, &reply, prefix, s);
        return NULL;
    }
    json_auto_t *info = json_loads(reply.output, 0, NULL);
    const char *path = json_string_value(json_object_get(info, "path"));
    const char *state = json_string_value(json_object_get(info, "state"));
    BackendVolume *volume = NULL;
    if (g_strcmp0(state, "snapshot-retained") == 0) {
        cephfs_mgr_missing(error, s);
    } else if (path && *path == '/') {
        volume = g_new0(BackendVolume, 1);
        volume->path = g_strdup(path);
        /* "infinite" without a quota, which is no integer: 0. */
        volume->bytes = json_integer_value(json_object_get(info, "bytes_quota"));
        volume->created = time_of(json_string_value(json_object_get(info, "created_at")));
    } else {
        hearth_fail(error, HEARTH_ERROR_INTERNAL, "%s %s/%s/%s: the mgr's answer has no path",
                    prefix, s->fs_name, s->group, s->name);
    }
    return volume;
}

char *cephfs_mgr_find(CephConn *conn, const Subvolume *s, const char *suffix, gint64 deadline_us,
                      GError **error)
{
    Subvolume group = {.fs_name = s->fs_name, .group = s->group};
    g_autoptr(GPtrArray) names = cephfs_mgr_list(conn, &group, deadline_us, error);
    for (guint i = 0; names && i < names->len; i++) {
        if (g_str_has_suffix(names->pdata[i], suffix))
            return g_strdup(names->pdata[i]);
    }
    return NULL;
}

gboolean cephfs_mgr_resize(CephConn *conn, const Subvolume *s, gint64 bytes, gint64 deadline_us,
                           GError **error)
{
    reply_auto CephReply reply = {0};
    const char *prefix = "fs subvolume resize";
    json_t *command = cephfs_mgr_command(prefix, s);
    g_autofree char *size = g_strdup_printf("%" G_GINT64_FORMAT, bytes);
    json_object_set_new(command, "new_size", json_string(size));
    json_object_set_new(command, "no_shrink", json_true());
    if (!cephfs_mgr_send(conn, command, &reply, deadline_us, error))
        return FALSE;
    if (reply.rc == -ENOENT)
        cephfs_mgr_missing(error, s);
    else if (reply.rc != 0)
        cephfs_mgr_fail(error, conn, &reply, prefix, s);
    return reply.rc == 0;
}

gboolean cephfs_mgr_pin(CephConn *conn, const Subvolume *s, const char *pin, gint64 deadline_us,
                        GError **error)
{
    reply_auto CephReply reply = {0};
    const char *prefix = "fs subvolume pin";
    const char *setting = strchr(pin, ':');
    g_autofree char *type = g_strndup(pin, (gsize)(setting - pin));
    json_t *command = cephfs_mgr_command(prefix, s);
    json_object_set_new(command, "pin_type", json_string(type));
    json_object_set_new(command, "pin_setting", json_string(setting + 1));
    if (!cephfs_mgr_send(conn, command, &reply, deadline_us, error))
        return FALSE;
    /* The volume exists by now, so the request alone is never at fault. */
    if (reply.rc == -EINVAL || reply.rc == -EDOM)
        hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                    "mdsPin=%s: this cluster refuses it for %s (%s)%s", pin, s->name, reply.status,
                    strcmp(type, "random") == 0
                        ? "; a fraction must not exceed mds_export_ephemeral_random_max"
                        : "");
    else if (reply.rc != 0)
        cephfs_mgr_fail(error, conn, &reply, prefix, s);
    return reply.rc == 0;
}
