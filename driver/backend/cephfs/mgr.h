/* SPDX-License-Identifier: Apache-2.0 */
/* The mgr's `volumes` module: subvolumes and their groups (docs.ceph.com, "FS volumes and
 * subvolumes"). */
#ifndef HEARTH_DRIVER_BACKEND_CEPHFS_MGR_H
#define HEARTH_DRIVER_BACKEND_CEPHFS_MGR_H

#include "driver/backend/backend.h"
#include "driver/backend/ceph/conn.h"

typedef struct Subvolume {
    const char *fs_name, *group, *name;
    const char
        *pool; /* of the data of one that is to be made; NULL: the file system's own layout */
} Subvolume;

/* Makes the group too when it is missing. One that exists already is fine. */
gboolean cephfs_mgr_create(CephConn *conn, const Subvolume *subvolume, gint64 bytes,
                           gint64 deadline_us, GError **error);
/*
 * A missing one is fine. FAILED_PRECONDITION: it has snapshots, and they are not to be retained.
 * Cancels a clone that is under way to it.
 */
gboolean cephfs_mgr_remove(CephConn *conn, const Subvolume *subvolume, gboolean retain_snapshots,
                           gint64 deadline_us, GError **error);
/* The path of one that is complete; the caller's. NOT_FOUND. */
char *cephfs_mgr_path(CephConn *conn, const Subvolume *subvolume, gint64 deadline_us,
                      GError **error);
/* NOT_FOUND, also for one of which only snapshots are retained. */
BackendVolume *cephfs_mgr_look(CephConn *conn, const Subvolume *subvolume, gint64 deadline_us,
                               GError **error);
/* The names of all subvolumes of a group; none of a group that is missing. */
GPtrArray *cephfs_mgr_list(CephConn *conn, const Subvolume *group, gint64 deadline_us,
                           GError **error);
/* *is_free: a listing that is at most 30 s old lacks the name. */
gboolean cephfs_mgr_is_free(CephConn *conn, const Subvolume *subvolume, gboolean *is_free,
                            gint64 deadline_us, GError **error);
/* The name of the first subvolume of the group that ends with `suffix`, the caller's; NULL without
 * an error: there is none. s->name does not matter. */
char *cephfs_mgr_find(CephConn *conn, const Subvolume *s, const char *suffix, gint64 deadline_us,
                      GError **error);
/* Sets the quota, which must not shrink. NOT_FOUND. */
gboolean cephfs_mgr_resize(CephConn *conn, const Subvolume *subvolume, gint64 bytes,
                           gint64 deadline_us, GError **error);
/* `pin` is TYPE:SETTING. FAILED_PRECONDITION: this cluster does not take it. */
gboolean cephfs_mgr_pin(CephConn *conn, const Subvolume *subvolume, const char *pin,
                        gint64 deadline_us, GError **error);
/*
 * The metadata pool and the first data pool (where files go that no layout sends elsewhere) of a
 * file system, caller's; either may be NULL. INVALID_ARGUMENT lists the file systems there are.
 */
gboolean cephfs_mgr_pools(CephConn *conn, const char *fs_name, char **metadata, char **data,
                          gint64 deadline_us, GError **error);
/* The metadata pool alone, as of some seconds ago at most; the caller's. */
char *cephfs_mgr_metadata_pool(CephConn *conn, const char *fs_name, gint64 deadline_us,
                               GError **error);
/* All its data pools, as of some seconds ago at most; the caller's. */
char **cephfs_mgr_data_pools(CephConn *conn, const char *fs_name, gint64 deadline_us,
                             GError **error);
/* The names of the file systems, sorted, caller's. */
char **cephfs_mgr_file_systems(CephConn *conn, gint64 deadline_us, GError **error);
/* The name of the file system of a number, the caller's; NULL without an error: there is none. */
char *cephfs_mgr_file_system(CephConn *conn, guint64 id, gint64 deadline_us, GError **error);

#endif
