/* SPDX-License-Identifier: Apache-2.0 */
/* Standard input, output and error of a command that ends with the truth about its output. */
#ifndef HEARTH_CMD_HEARTHCTL_CLIENT_OUTPUT_H
#define HEARTH_CMD_HEARTHCTL_CLIENT_OUTPUT_H

/* Those that are closed are opened, and cannot be used: a socket that got such a number would be
 * sent what is printed. Call it before anything is opened. */
void output_begin(void);
/* The exit code: `code`, or CTL_FAILED with a message when not all output could be written. */
int output_end(int code);

#endif
