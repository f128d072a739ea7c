/*
 * What nodes keep of snapshots beside a file system's data, in namespace "hearth" of its data
 * pools: manifests, and for each snapshot the object "manifest-of.<path>" that lists them
 * (cache/manifest/share.h has the format). They are made again where they are missed, so nothing
 * is lost with one; they go with their snapshot.
 */
#ifndef HEARTH_DRIVER_BACKEND_CEPHFS_MANIFESTS_H
#define HEARTH_DRIVER_BACKEND_CEPHFS_MANIFESTS_H

#include "driver/backend/cephfs_mgr.h"

/* Removes those of a snapshot that is gone. The user needs "rw" on the data pools. */
gboolean cephfs_manifests_forget(CephConn *conn, const Subvolume *subvolume, const char *snapshot,
                                 gint64 deadline_us, GError **error);
/*
 * Those that no snapshot needs: names of lists whose snapshot of a subvolume is gone, and of
 * manifests ("manifest.<id>") on no list. The array owns them. Pools that this user may not read
 * are left out.
 */
GPtrArray *cephfs_manifests_orphans(CephConn *conn, const char *fs_name, gint64 deadline_us,
                                    GError **error);
/* Removes one of these, unless its snapshot is there. */
gboolean cephfs_manifests_remove(CephConn *conn, const char *fs_name, const char *name,
                                 gint64 deadline_us, GError **error);

#endif
