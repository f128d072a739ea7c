/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HEARTH_CMD_HEARTH_CSI_CLEANUP_H
#define HEARTH_CMD_HEARTH_CSI_CLEANUP_H

/* argv[0] is "cleanup". The exit status. */
int cleanup_main(int argc, char **argv);

#endif
