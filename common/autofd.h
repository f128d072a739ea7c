/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file descriptor that closes itself at the end of its scope, in the manner of g_autofree.
 * GLib has g_autofd only from 2.76 on; Debian 12 ships 2.74.
 */
#ifndef HEARTH_COMMON_AUTOFD_H
#define HEARTH_COMMON_AUTOFD_H

#include <unistd.h>

/* Closes it, if there is one, and leaves -1 behind. */
static inline void hearth_close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Declare with an initial value: `hearth_autofd int fd = -1;` */
#define hearth_autofd __attribute__((cleanup(hearth_close_fd)))

/* Hands the descriptor over: returns *fd and leaves -1 behind. */
static inline int hearth_steal_fd(int *fd)
{
    int stolen = *fd;
    *fd = -1;
    return stolen;
}

#endif
