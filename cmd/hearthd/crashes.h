/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts how often hearthd has crashed in a row: by a signal of its own making, not by SIGKILL. The
 * next hearthd gets the requests again that were under way. If one of them is the cause, it would
 * crash for ever.
 */
#ifndef HEARTH_CMD_HEARTHD_CRASHES_H
#define HEARTH_CMD_HEARTHD_CRASHES_H

/* Requests are suspected after so many. */
#define CRASHES_MANY 3

/* The crashes before this start, of a hearthd with this control socket. This one counts from now
 * on; the count is 0 again when it has run for a minute. */
unsigned crashes_begin(const char *socket_path);
/* It ends because it was asked to: the count is 0 again. */
void crashes_end(void);

#endif
