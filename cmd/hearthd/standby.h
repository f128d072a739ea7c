/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One hearthd serves a control socket. A second one is its standby: it waits until the first has
 * ended, then starts. So an upgrade starts the new hearthd before it ends the old one.
 *
 * The lock is held on SOCKET.lock, which stays. A hearthd of 0.1.0 holds no lock, so the standby
 * also waits for a process that answers at the socket.
 */
#ifndef HEARTH_CMD_HEARTHD_STANDBY_H
#define HEARTH_CMD_HEARTHD_STANDBY_H

#include <glib.h>
#include <signal.h>

typedef enum Standby {
    STANDBY_SERVES, /* no other hearthd serves the socket, and none will until standby_end() */
    STANDBY_ENDS,   /* one of the signals came first */
    STANDBY_FAILED, /* error is set, in G_IO_ERROR */
} Standby;

/* Call it once. Makes the directory of the socket. The signals are blocked. */
Standby standby_begin(const char *socket_path, const sigset_t *signals, GError **error);
/* The next hearthd starts. A process that has ended may still have the lock, as long as the kernel
 * cannot end a thread of it. */
void standby_end(void);

#endif
