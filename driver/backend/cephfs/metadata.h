/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata of subvolumes and their snapshots, which people and tools look at. */
#ifndef HEARTH_DRIVER_BACKEND_CEPHFS_METADATA_H
#define HEARTH_DRIVER_BACKEND_CEPHFS_METADATA_H

#include "driver/backend/cephfs/mgr.h"

/*
 * Sets the texts, an object of names and strings, of a subvolume, or of a snapshot of it unless
 * that is NULL. An error says once in a while that this Ceph has no such thing; TRUE between, with
 * nothing set.
 */
gboolean cephfs_metadata_set(CephConn *conn, const Subvolume *subvolume, const char *snapshot,
                             const json_t *texts, gint64 deadline_us, GError **error);

#endif
