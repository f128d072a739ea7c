/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metadata of a subvolume or of its snapshot (`ceph fs subvolume metadata ls`). Ceph before 16.2.11
 * has none of these commands, and some later releases have only one; a command that the mgr does
 * not know is not sent again for a while, because the mgr runs its commands one after another.
 */
#include <errno.h>
#include "driver/backend/cephfs/internal.h"
#include "driver/backend/cephfs/metadata.h"

/* An upgrade is noticed after this. */
#define UNKNOWN_AGE_US (10 * 60 * G_USEC_PER_SEC)
/* ceph-mgr, DaemonServer.cc; another fault of a request is EINVAL too. */
#define UNKNOWN_STATUS "No handler found"

gboolean cephfs_metadata_set(CephConn *conn, const Subvolume *s, const char *snapshot,
                             const json_t *texts, gint64 deadline_us, GError **error)
{
    const char *prefix =
        snapshot ? "fs subvolume snapshot metadata set" : "fs subvolume metadata set";
    g_autofree char *memo = g_strconcat("unknown: ", prefix, NULL);
    g_autofree char *unknown = ceph_conn_recall(conn, memo, UNKNOWN_AGE_US);
    if (unknown)
        return TRUE;
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)texts, key, value) {
        reply_auto CephReply reply = {0};
        json_t *command = cephfs_mgr_command(prefix, s);
        json_object_set_new(command, "key_name", json_string(key));
        json_object_set(command, "value", value);
        if (snapshot)
            json_object_set_new(command, "snap_name", json_string(snapshot));
        if (!cephfs_mgr_send(conn, command, &reply, deadline_us, error))
            return FALSE;
        if (reply.rc == 0)
            continue;
        if (reply.rc == -EINVAL && g_str_has_prefix(reply.status, UNKNOWN_STATUS))
            ceph_conn_remember(conn, memo, "");
        cephfs_mgr_fail(error, conn, &reply, prefix, s);
        return FALSE;
    }
    return TRUE;
}
