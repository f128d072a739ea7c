/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fusectl (Documentation/filesystems/fuse.rst of the kernel) has a directory for each connection,
 * with the number of the file system's device. It is mounted for this process alone, so a container
 * needs nothing of it.
 */
#include "driver/node/mount/fuse_abort.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "common/autofd.h"

static int mount_fusectl(void)
{
    hearth_autofd int context = fsopen("fusectl", FSOPEN_CLOEXEC);
    if (context < 0 || fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) != 0)
        return -1;
    return fsmount(context, FSMOUNT_CLOEXEC, 0);
}

gboolean fuse_abort(dev_t dev, GError **error)
{
    g_autofree char *path = g_strdup_printf("%u/abort", minor(dev));
    hearth_autofd int root = mount_fusectl();
    hearth_autofd int file = root >= 0 ? openat(root, path, O_WRONLY | O_CLOEXEC) : -1;
    if (root >= 0 && file < 0 && errno == ENOENT)
        return TRUE; /* it has ended */
    if (file >= 0 && write(file, "1", 1) == 1)
        return TRUE;
    return hearth_fail(error, HEARTH_ERROR_INTERNAL, "fusectl, %s: %s", path, g_strerror(errno));
}
