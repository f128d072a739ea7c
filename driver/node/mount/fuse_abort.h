/* SPDX-License-Identifier: Apache-2.0 */
/* The end of FUSE connections, for mount.c. */
#ifndef HEARTH_DRIVER_NODE_MOUNT_FUSE_ABORT_H
#define HEARTH_DRIVER_NODE_MOUNT_FUSE_ABORT_H

#include <glib.h>
#include <sys/types.h>
#include "common/error.h"

/* As NodeMounterOps.abort_fuse. */
gboolean fuse_abort(dev_t dev, GError **error);

#endif
