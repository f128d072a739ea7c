/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel gives the lowest number that is free, so the number tells how many there are. */
#include "cache/store/disk/descriptors.h"
#include <errno.h>
#include <glib.h>
#include <sys/resource.h>
#include <unistd.h>

int descriptors_admit(int fd)
{
    struct rlimit limit;
    if (fd < 0)
        return -errno;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return fd;
    if ((rlim_t)fd < limit.rlim_cur - MIN(limit.rlim_cur / 4, DESCRIPTORS_KEPT))
        return fd;
    close(fd);
    return -EMFILE;
}
