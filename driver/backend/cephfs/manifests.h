/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Manifests that nodes of earlier versions stored beside a file system's data: objects whose names
 * begin with "manifest", in namespace "hearth" of its data pools. Nodes no longer read them. Their
 * content is not read here either: every tenant that may write to the pool may have written it.
 */
#ifndef HEARTH_DRIVER_BACKEND_CEPHFS_MANIFESTS_H
#define HEARTH_DRIVER_BACKEND_CEPHFS_MANIFESTS_H

#include "driver/backend/cephfs/mgr.h"

/* One name for all of them, if there are any. Pools that this user may not read are left out. */
GPtrArray *cephfs_manifests_find(CephConn *conn, const char *fs_name, gint64 deadline_us,
                                 GError **error);
/* Removes all of them. The user needs "rw" on the data pools. */
gboolean cephfs_manifests_remove(CephConn *conn, const char *fs_name, gint64 deadline_us,
                                 GError **error);

#endif
