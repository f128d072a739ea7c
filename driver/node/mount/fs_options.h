/* SPDX-License-Identifier: Apache-2.0 */
/* Mount flags of a capability for a file system on an image. */
#ifndef HEARTH_DRIVER_NODE_MOUNT_FS_OPTIONS_H
#define HEARTH_DRIVER_NODE_MOUNT_FS_OPTIONS_H

#include <glib.h>
#include <stdint.h>
#include "common/error.h"

/*
 * Splits flags into those of any mount (*attrs and *context, see mount_parse_flags()) and those of
 * the file system, which are returned, for g_strfreev(). fs_type "ext4", "xfs", or NULL: either.
 * NULL with INVALID_ARGUMENT for one that is not allowed, naming those that are.
 */
char **fs_options_parse(const char *fs_type, char *const *flags, size_t n, uint64_t *attrs,
                        char **context, GError **error);

#endif
