/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/store/disk/replace.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include "common/autofd.h"

int replace_file(int dir_fd, const char *name, const char *new_name, const void *data, size_t size)
{
    hearth_autofd int fd = openat(dir_fd, new_name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    ssize_t n = write(fd, data, size);
    if (n != (ssize_t)size)
        return n < 0 ? -errno : -ENOSPC;
    if (fsync(fd) < 0)
        return -errno;
    if (renameat(dir_fd, new_name, dir_fd, name) < 0)
        return -errno;
    return fsync(dir_fd) < 0 ? -errno : 0;
}
