/* SPDX-License-Identifier: Apache-2.0 */
/* send.c: commands to the mgr's `volumes` module, for the files that each do one kind of them. */
#ifndef HEARTH_DRIVER_BACKEND_CEPHFS_INTERNAL_H
#define HEARTH_DRIVER_BACKEND_CEPHFS_INTERNAL_H

#include "driver/backend/cephfs/mgr.h"

static inline void reply_cleanup(CephReply *reply)
{
    ceph_reply_clear(reply);
}
#define reply_auto __attribute__((cleanup(reply_cleanup)))

/*
 * {"prefix": prefix, "vol_name": ..., "sub_name": ..., "group_name": ...}, to which the caller adds
 * what the command needs beside; for cephfs_mgr_send().
 */
json_t *cephfs_mgr_command(const char *prefix, const Subvolume *s);
/* Sends a command, which it takes over. FALSE when no answer came in time. */
gboolean cephfs_mgr_send(CephConn *conn, json_t *command, CephReply *reply, gint64 deadline_us,
                         GError **error);
/* Sets the error for an answer that is no success. */
void cephfs_mgr_fail(GError **error, CephConn *conn, const CephReply *reply, const char *prefix,
                     const Subvolume *s);
/* Makes the group of a subvolume; one that exists is fine. */
gboolean cephfs_mgr_create_group(CephConn *conn, const Subvolume *s, gint64 deadline_us,
                                 GError **error);
/* The names in the answer to a command that lists; none when what it lists of is missing. */
GPtrArray *cephfs_mgr_names(CephConn *conn, const char *prefix, const Subvolume *s,
                            gint64 deadline_us, GError **error);
/* NOT_FOUND. */
void cephfs_mgr_missing(GError **error, const Subvolume *s);

#endif
