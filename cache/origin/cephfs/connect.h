/* SPDX-License-Identifier: Apache-2.0 */
/* How a connection to CephFS is made: mount.c makes it, connect.c bounds the wait for it. */
#ifndef HEARTH_CACHE_ORIGIN_CEPHFS_CONNECT_H
#define HEARTH_CACHE_ORIGIN_CEPHFS_CONNECT_H

#include "cache/origin/cephfs/client/client.h"

/* An MDS that answers ends a session at once. */
#define CEPHFS_RECLAIM_SEC 5

/*
 * Connects, by ceph_mount(), for as long as that takes. `name`, of the session, may be NULL and
 * stays the caller's; the connection has a reference, too. *aborted is set if libcephfs aborted in
 * the mount, and this thread has stopped.
 */
Origin *cephfs_connect(const CephfsOriginConfig *config, SessionName *name,
                       _Atomic gboolean *aborted, GError **error);
/*
 * cephfs_connect() on a thread of its own, for which the caller waits no longer than the timeout:
 * TIMED_OUT then. `extra_sec`: what it may take before ceph_mount().
 */
Origin *cephfs_attempt(const CephfsOriginConfig *config, unsigned extra_sec, GError **error);

#endif
