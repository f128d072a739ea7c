/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node plugin cannot end while a thread of it waits in the kernel for a mount, and Kubernetes
 * begins the next one only then. If hearthd has ended, the mount waits for a node plugin that gives
 * it to the next hearthd: so this one goes on with that until no thread waits.
 */
#ifndef HEARTH_CMD_CSI_LINGER_H
#define HEARTH_CMD_CSI_LINGER_H

/* Call it before anything is freed. Returns after 90 s at the latest. */
void linger_for_mounts(void);

#endif
