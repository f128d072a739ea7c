/* SPDX-License-Identifier: Apache-2.0 */
/* `hearth-csi audit`. argv[0] is "audit". Returns the exit status, see hearth-csi(8). */
#ifndef HEARTH_CMD_HEARTH_CSI_AUDIT_H
#define HEARTH_CMD_HEARTH_CSI_AUDIT_H

int audit_main(int argc, char **argv);

#endif
