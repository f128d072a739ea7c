/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots of several subvolumes as of one moment: `fs quiesce` of the mgr's `volumes` module,
 * which Ceph has since 19 (docs.ceph.com, "Subvolume quiesce"). */
#ifndef HEARTH_DRIVER_BACKEND_CEPHFS_GROUP_H
#define HEARTH_DRIVER_BACKEND_CEPHFS_GROUP_H

#include "driver/backend/cephfs/mgr.h"

/*
 * Subvolume i's of name snapshots[i], all of one file system. After FALSE none of them is left
 * unless their removal failed too. FAILED_PRECONDITION: an older Ceph. NOT_FOUND: a subvolume is
 * missing. ABORTED: clients did not pause in time, or for long enough.
 */
gboolean cephfs_group_snapshot(CephConn *conn, const Subvolume *subvolumes,
                               const char *const *snapshots, gsize n, gint64 deadline_us,
                               GError **error);

#endif
