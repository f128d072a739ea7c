/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is mounted at one path, at a price that does not grow with the number of mounts.
 */
#ifndef HEARTH_DRIVER_NODE_MOUNT_MOUNT_LOOKUP_H
#define HEARTH_DRIVER_NODE_MOUNT_MOUNT_LOOKUP_H

#include "driver/node/mount/mount.h"

/* The mount that is visible at a canonical path, as mount_find() would have it: *entry is the
 * caller's; NULL: nothing is mounted there. FALSE: only the mount table can tell. */
gboolean mount_lookup(const char *path, MountEntry **entry);

#endif
