/* SPDX-License-Identifier: Apache-2.0 */
/* A FUSE mount by the kernel's mount API, for mount.c. */
#ifndef HEARTH_DRIVER_NODE_MOUNT_FUSE_MOUNT_H
#define HEARTH_DRIVER_NODE_MOUNT_FUSE_MOUNT_H

#include "driver/node/mount/mount.h"

/* As NodeMounterOps.mount_fuse. */
int mount_fuse_detached(const char *volume, const MountOptions *options, int *fuse_fd,
                        GError **error);

#endif
