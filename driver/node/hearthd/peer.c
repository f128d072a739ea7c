/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/hearthd/peer.h"
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

int peer_open(int socket)
{
    int pidfd = -1;
    socklen_t size = sizeof(pidfd);
    return getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) == 0 ? pidfd : -1;
}

gboolean peer_is_dying(int pidfd)
{
    /* EAGAIN: its memory is being freed. */
    return pidfd >= 0 && (syscall(SYS_process_mrelease, pidfd, 0) == 0 || errno == EAGAIN);
}
