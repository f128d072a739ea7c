/* SPDX-License-Identifier: Apache-2.0 */
/* The mgr's `volumes` module: snapshots of subvolumes, and clones of snapshots. */
#ifndef HEARTH_DRIVER_BACKEND_CEPHFS_SNAP_H
#define HEARTH_DRIVER_BACKEND_CEPHFS_SNAP_H

#include "driver/backend/cephfs/mgr.h"

/* One that is there is fine. NOT_FOUND: no such subvolume. */
gboolean cephfs_snap_create(CephConn *conn, const Subvolume *subvolume, const char *snapshot,
                            gint64 deadline_us, GError **error);
/* A missing snapshot or subvolume is fine. FAILED_PRECONDITION: a clone of it is under way. */
gboolean cephfs_snap_remove(CephConn *conn, const Subvolume *subvolume, const char *snapshot,
                            gint64 deadline_us, GError **error);
/* NOT_FOUND. */
gboolean cephfs_snap_look(CephConn *conn, const Subvolume *subvolume, const char *snapshot,
                          gint64 deadline_us, GError **error);
/* Names; the array owns them. None when the subvolume is missing. */
GPtrArray *cephfs_snap_list(CephConn *conn, const Subvolume *subvolume, gint64 deadline_us,
                            GError **error);

/* Begins a clone, which goes on in the mgr; one that has begun is fine. NOT_FOUND: the snapshot is
 * missing. Makes the target's group when it is missing. */
gboolean cephfs_snap_clone(CephConn *conn, const Subvolume *source, const char *snapshot,
                           const Subvolume *target, gint64 deadline_us, GError **error);
/* The state of a clone's target that is not ready; always incomplete. */
BackendVolume *cephfs_snap_progress(CephConn *conn, const Subvolume *target, gint64 deadline_us,
                                    GError **error);
/* Asks the mgr to stop a clone; one that has ended, or never began, is fine. */
gboolean cephfs_snap_cancel(CephConn *conn, const Subvolume *target, gint64 deadline_us,
                            GError **error);

#endif
