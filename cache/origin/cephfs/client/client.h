/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients of libcephfs before and after a connection: their options and errors, the mount that may
 * abort, the end of dead sessions.
 */
#ifndef HEARTH_CACHE_ORIGIN_CEPHFS_CLIENT_CLIENT_H
#define HEARTH_CACHE_ORIGIN_CEPHFS_CLIENT_CLIENT_H

#include <cephfs/libcephfs.h>
#include "cache/origin/cephfs/client/session_names.h"
#include "cache/origin/origin.h"

#define CEPHFS_SNAPSHOT_DIR ".snap"

/* --- config.c --- */
unsigned cephfs_timeout_sec(const CephfsOriginConfig *config);
/* How many names libcephfs should keep, if that many are this connection's share. */
unsigned cephfs_names_most(const CephfsOriginConfig *config);
/* Whether the monitors accept the user and the key: 0 or -errno within the timeout. */
int cephfs_reach_monitors(const CephfsOriginConfig *config);
/* Has the monitors run a command, in JSON: 0 or -errno within twice the timeout. */
int cephfs_command_monitors(const CephfsOriginConfig *config, const char *command);
/* A client that has its options and is not initialised; NULL with an error. */
struct ceph_mount_info *cephfs_configured(const CephfsOriginConfig *config, GError **error);
/* Sets the error for the -errno of a mount. */
void cephfs_set_mount_error(const CephfsOriginConfig *config, int r, GError **error);
CephfsOriginConfig *cephfs_config_copy(const CephfsOriginConfig *config);
/* Overwrites the key in memory, too. */
void cephfs_config_free(void *config);
/* Whether the connection replaces one that was lost, under its session's name. */
static inline gboolean cephfs_follows(const CephfsOriginConfig *config)
{
    return config->client && g_strcmp0(config->client, config->dead_client) == 0;
}

/* --- abort.c --- */
/* ceph_mount(). When libcephfs aborts the process in it, only this thread stops, for ever, and
 * *aborted is set. */
int cephfs_mount_or_stop(struct ceph_mount_info *mount, const char *path,
                         _Atomic gboolean *aborted);
/* ceph_abort_conn(), on a thread of its own, because it may be stopped for ever. */
void cephfs_abort_or_stop(struct ceph_mount_info *mount);

/* --- reclaim.c --- */
/*
 * Ends the MDS session of that name, whose owner is gone, through `mount`, which is configured, not
 * yet initialised, and taken over. Returns when done, or after limit_sec. 0: it is ended; -ENOENT:
 * there was none; -ETIMEDOUT: no MDS has answered yet; other -errno: it is refused.
 */
int cephfs_reclaim(struct ceph_mount_info *mount, const CephClient *ceph, const char *client,
                   unsigned limit_sec);

/* --- shut_out.c --- */
/*
 * Puts the client of a lost connection on the blocklist, so that libcephfs ends the calls that wait
 * in it: 0; -EACCES: the user has no right to; other -errno, also after limit_sec: not done yet.
 */
int cephfs_shut_out(struct ceph_mount_info *mount, const CephfsOriginConfig *config,
                    unsigned limit_sec);
/* The address of the one client in what ceph_getaddrs() tells, as the blocklist has it; caller's.
 * NULL: there is none. */
char *cephfs_blocklist_address(const char *addresses);

#endif
