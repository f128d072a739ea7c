/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HEARTH_CMD_HEARTH_CSI_PROBE_H
#define HEARTH_CMD_HEARTH_CSI_PROBE_H

/* argv[0] is "probe". The exit status. */
int probe_main(int argc, char **argv);

#endif
