/* The mgr's `volumes` module: subvolumes and their groups (docs.ceph.com, "FS volumes and
 * subvolumes"). */
#ifndef HEARTH_DRIVER_BACKEND_CEPHFS_MGR_H
#define HEARTH_DRIVER_BACKEND_CEPHFS_MGR_H

#include "driver/backend/backend.h"
#include "driver/backend/ceph_conn.h"

typedef struct Subvolume {
    const char *fs_name, *group, *name;
} Subvolume;

/*
 * Makes the group too when it is missing. `pool` NULL: the file system's own layout. One that
 * exists already is fine.
 */
gboolean cephfs_mgr_create(CephConn *conn, const Subvolume *subvolume, gint64 bytes,
                           const char *pool, gint64 deadline_us, GError **error);
/* Missing is fine. FAILED_PRECONDITION: it has snapshots. */
gboolean cephfs_mgr_remove(CephConn *conn, const Subvolume *subvolume, gint64 deadline_us,
                           GError **error);
/* NOT_FOUND. */
BackendVolume *cephfs_mgr_look(CephConn *conn, const Subvolume *subvolume, gint64 deadline_us,
                               GError **error);
/* The metadata pool of a file system, caller's. INVALID_ARGUMENT lists those there are. */
char *cephfs_mgr_metadata_pool(CephConn *conn, const char *fs_name, gint64 deadline_us,
                               GError **error);

#endif
