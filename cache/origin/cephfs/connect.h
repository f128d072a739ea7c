/* SPDX-License-Identifier: Apache-2.0 */
/* How a connection to CephFS comes about: what mount.c, connect.c and config.c
 * share. */
#ifndef HEARTH_CACHE_ORIGIN_CEPHFS_CONNECT_H
#define HEARTH_CACHE_ORIGIN_CEPHFS_CONNECT_H

#include <cephfs/libcephfs.h>
#include "cache/origin/origin.h"
#include "cache/origin/cephfs/session_names.h"

unsigned cephfs_timeout_sec(const CephfsOriginConfig *config);
/* How many names libcephfs is to keep. */
unsigned cephfs_names_kept(const CephfsOriginConfig *config);
/* Whether the monitors take the user and the key: 0 or -errno within the timeout. */
int cephfs_reach_monitors(const CephfsOriginConfig *config);
/* A client that has its options and is not initialised; NULL with an error. */
struct ceph_mount_info *cephfs_configured(const CephfsOriginConfig *config, GError **error);
/* What ceph_mount() came to. */
void cephfs_set_mount_error(const CephfsOriginConfig *config, int r, GError **error);
CephfsOriginConfig *cephfs_config_copy(const CephfsOriginConfig *config);
/* Takes the key out of memory, too. */
void cephfs_config_free(void *config);

typedef struct CephfsAttempt CephfsAttempt;
/* The connection alone, by ceph_mount(); as long as that takes. The session's name, which may be
 * NULL, is the attempt's; a connection has it, too. */
Origin *cephfs_connect(const CephfsOriginConfig *config, SessionName *name, CephfsAttempt *attempt,
                       GError **error);
/* Whether it is to take the place of a connection that was lost, under its session's name. */
static inline gboolean cephfs_follows(const CephfsOriginConfig *config)
{
    return config->client && g_strcmp0(config->client, config->dead_client) == 0;
}
/* ceph_mount() as part of an attempt. */
int cephfs_attempt_mount(CephfsAttempt *attempt, struct ceph_mount_info *mount, const char *path);

/* cephfs_connect(), of which is waited no longer than the timeout: TIMED_OUT then. `extra_sec`:
 * what it may take before ceph_mount(). */
Origin *cephfs_attempt(const CephfsOriginConfig *config, unsigned extra_sec, GError **error);

/* ceph_mount(). When libcephfs aborts the process in it, only this thread stops, for ever, and
 * *aborted is set. */
int cephfs_mount_or_stop(struct ceph_mount_info *mount, const char *path,
                         _Atomic gboolean *aborted);
/* ceph_abort_conn(), by a thread of its own: it may be stopped for ever. */
void cephfs_abort_or_stop(struct ceph_mount_info *mount);

#endif
