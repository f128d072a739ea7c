/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a descriptor is a terminal, how wide it is, and whether it may be coloured. */
#ifndef HEARTH_CMD_HEARTHCTL_CLIENT_TERMINAL_H
#define HEARTH_CMD_HEARTHCTL_CLIENT_TERMINAL_H

#include <glib.h>

/* 0: it is no terminal, so nothing has to fit. 80 when the terminal does not say. */
unsigned terminal_columns(int fd);
/* A terminal that is not "dumb", without NO_COLOR (no-color.org) in the environment. */
gboolean terminal_has_colour(int fd);

#endif
