/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's own Ceph user, for calls that carry no secret: ListVolumes, GetCapacity,
 * ControllerGetVolume, and ListSnapshots of a class without a list secret. It is a Kubernetes
 * Secret mounted as a directory, one file a key; with several clusters that have different users,
 * a directory for each:
 *
 *     DIR/userID  DIR/userKey                            for every cluster
 *     DIR/<clusterID>/userID  DIR/<clusterID>/userKey    for that one, before the others
 *
 * The files are read at every use, so that a changed Secret takes effect at once.
 */
#ifndef HEARTH_DRIVER_CLUSTER_SECRET_DIR_H
#define HEARTH_DRIVER_CLUSTER_SECRET_DIR_H

#include "driver/cluster/secrets.h"

/* `cluster_id` may be NULL. FAILED_PRECONDITION names what is missing. */
Secrets *secret_dir_read(const char *dir, const char *cluster_id, GError **error);

#endif
