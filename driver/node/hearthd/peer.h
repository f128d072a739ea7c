/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process at the other end of a unix socket. One that was killed is not gone while a thread of
 * it waits in the kernel where no signal reaches it. Its descriptors stay open for that time, so
 * the socket does not show its end.
 */
#ifndef HEARTH_DRIVER_NODE_HEARTHD_PEER_H
#define HEARTH_DRIVER_NODE_HEARTHD_PEER_H

#include <glib.h>

/* A pidfd of the process that listens (unix(7), SO_PEERPIDFD, Linux 6.5), the caller's; -1: the
 * kernel has none. */
int peer_open(int socket);
/* Whether the process was killed and has not ended. Asks process_mrelease(2), which refuses a
 * process that is to live, and else only frees memory that nobody uses any more. */
gboolean peer_is_dying(int pidfd);

#endif
