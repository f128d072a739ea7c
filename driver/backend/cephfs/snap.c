/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots of subvolumes and clones of them, by commands to the mgr's `volumes` module. A clone
 * runs in the mgr; its progress is asked for with `fs clone status`.
 */
#include "driver/backend/cephfs/snap.h"
#include <errno.h>
#include <string.h>
#include "driver/backend/cephfs/internal.h"

static json_t *snap_command(const char *prefix, const Subvolume *s, const char *snapshot)
{
    json_t *command = cephfs_mgr_command(prefix, s);
    json_object_set_new(command, "snap_name", json_string(snapshot));
    return command;
}

static void fail_missing(GError **error, const Subvolume *s, const char *snapshot)
{
    hearth_fail(error, HEARTH_ERROR_NOT_FOUND, "snapshot %s of subvolume %s/%s/%s does not exist",
                snapshot, s->fs_name, s->group, s->name);
}

gboolean cephfs_snap_create(CephConn *conn, const Subvolume *s, const char *snapshot,
                            gint64 deadline_us, GError **error)
{
    reply_auto CephReply reply = {0};
    const char *prefix = "fs subvolume snapshot create";
    if (!cephfs_mgr_send(conn, snap_command(prefix, s, snapshot), &reply, deadline_us, error))
        return FALSE;
    if (reply.rc == -ENOENT)
        cephfs_mgr_missing(error, s);
    else if (reply.rc != 0 && reply.rc != -EEXIST)
        cephfs_mgr_fail(error, conn, &reply, prefix, s);
    return reply.rc == 0 || reply.rc == -EEXIST;
}

gboolean cephfs_snap_remove(CephConn *conn, const Subvolume *s, const char *snapshot,
                            gint64 deadline_us, GError **error)
{
    reply_auto CephReply reply = {0};
    const char *prefix = "fs subvolume snapshot rm";
    if (!cephfs_mgr_send(conn, snap_command(prefix, s, snapshot), &reply, deadline_us, error))
        return FALSE;
    if (reply.rc == 0 || reply.rc == -ENOENT)
        return TRUE;
    if (reply.rc == -EAGAIN && strstr(reply.status, "clone"))
        hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                    "snapshot %s of %s is in use: volumes are being copied from it; wait until "
                    "they are ready (`ceph fs subvolume snapshot info %s %s %s --group_name %s` "
                    "lists them) or delete them, then try again",
                    snapshot, s->name, s->fs_name, s->name, snapshot, s->group);
    else
        cephfs_mgr_fail(error, conn, &reply, prefix, s);
    return FALSE;
}

gboolean cephfs_snap_look(CephConn *conn, const Subvolume *s, const char *snapshot,
                          gint64 deadline_us, GError **error)
{
    reply_auto CephReply reply = {0};
    const char *prefix = "fs subvolume snapshot info";
    if (!cephfs_mgr_send(conn, snap_command(prefix, s, snapshot), &reply, deadline_us, error))
        return FALSE;
    if (reply.rc == -ENOENT)
        fail_missing(error, s, snapshot);
    else if (reply.rc != 0)
        cephfs_mgr_fail(error, conn, &reply, prefix, s);
    return reply.rc == 0;
}

GPtrArray *cephfs_snap_list(CephConn *conn, const Subvolume *s, gint64 deadline_us, GError **error)
{
    return cephfs_mgr_names(conn, "fs subvolume snapshot ls", s, deadline_us, error);
}

gboolean cephfs_snap_clone(CephConn *conn, const Subvolume *source, const char *snapshot,
                           const Subvolume *target, gint64 deadline_us, GError **error)
{
    const char *prefix = "fs subvolume snapshot clone";
    for (int attempt = 0;; attempt++) {
        reply_auto CephReply reply = {0};
        json_t *command = snap_command(prefix, source, snapshot);
        json_object_set_new(command, "target_sub_name", json_string(target->name));
        json_object_set_new(command, "target_group_name", json_string(target->group));
        if (target->pool)
            json_object_set_new(command, "pool_layout", json_string(target->pool));
        if (!cephfs_mgr_send(conn, command, &reply, deadline_us, error))
            return FALSE;
        if (reply.rc == 0 || reply.rc == -EEXIST)
            return TRUE;
        if (reply.rc != -ENOENT) {
            cephfs_mgr_fail(error, conn, &reply, prefix, target);
            return FALSE;
        }
        /* The target's group may be missing; it is made only then. */
        if (attempt > 0 || !cephfs_snap_look(conn, source, snapshot, deadline_us, error)) {
            if (attempt > 0)
                fail_missing(error, source, snapshot);
            return FALSE;
        }
        if (!cephfs_mgr_create_group(conn, target, deadline_us, error))
            return FALSE;
    }
}

/* The clone commands have the subvolume under another name. */
static gboolean send_clone(CephConn *conn, const char *prefix, const Subvolume *s, CephReply *reply,
                           gint64 deadline_us, GError **error)
{
    Subvolume group = {.fs_name = s->fs_name, .group = s->group};
    json_t *command = cephfs_mgr_command(prefix, &group);
    json_object_set_new(command, "clone_name", json_string(s->name));
    return cephfs_mgr_send(conn, command, reply, deadline_us, error);
}

BackendVolume *cephfs_snap_progress(CephConn *conn, const Subvolume *s, gint64 deadline_us,
                                    GError **error)
{
    reply_auto CephReply reply = {0};
    const char *prefix = "fs clone status";
    if (!send_clone(conn, prefix, s, &reply, deadline_us, error))
        return NULL;
    if (reply.rc != 0) {
        if (reply.rc == -ENOENT)
            cephfs_mgr_missing(error, s);
        else
            cephfs_mgr_fail(error, conn, &reply, prefix, s);
        return NULL;
    }
    json_auto_t *root = json_loads(reply.output, 0, NULL);
    const json_t *status = json_object_get(root, "status");
    const char *state = json_string_value(json_object_get(status, "state"));
    const json_t *failure = json_object_get(status, "failure");
    const char *text = json_string_value(json_object_get(failure, "error_msg"));
    const char *number = json_string_value(json_object_get(failure, "errno"));
    BackendVolume *volume = g_new0(BackendVolume, 1);
    volume->incomplete = TRUE;
    volume->path = g_strdup_printf("/volumes/%s/%s", s->group, s->name);
    if (g_strcmp0(state, "failed") == 0 || g_strcmp0(state, "canceled") == 0) {
        volume->failure = g_strdup(text ? text : state);
        int code = number ? atoi(number) : 0;
        volume->no_space = code == ENOSPC || code == EDQUOT;
    } else {
        /* Also when "complete": the clone ended just now, and the next look shows the volume. */
        volume->copying = TRUE;
    }
    return volume;
}

gboolean cephfs_snap_cancel(CephConn *conn, const Subvolume *s, gint64 deadline_us, GError **error)
{
    reply_auto CephReply reply = {0};
    const char *prefix = "fs clone cancel";
    if (!send_clone(conn, prefix, s, &reply, deadline_us, error))
        return FALSE;
    /* EINVAL: it ended by itself; EOPNOTSUPP: it is no clone. */
    gboolean good =
        reply.rc == 0 || reply.rc == -EINVAL || reply.rc == -ENOENT || reply.rc == -EOPNOTSUPP;
    if (!good)
        cephfs_mgr_fail(error, conn, &reply, prefix, s);
    return good;
}
