/* SPDX-License-Identifier: Apache-2.0 */
/* Text of others on a terminal: what it may do there, and how wide it is. */
#ifndef HEARTH_CMD_HEARTHCTL_CLIENT_TEXT_H
#define HEARTH_CMD_HEARTHCTL_CLIENT_TEXT_H

#include <glib.h>

/* With "?" for each character that is not printed: names of files may hold escape sequences, which
 * a terminal would obey. The caller's. */
char *text_printable(const char *text);
/* With `as` for "hearthctl" in commands that are to be typed; NULL: as it is. The caller's. */
char *text_typed(const char *text, const char *as);
/* How many columns the character takes: 2 of East Asian ones and emoji, 0 of combining ones. */
unsigned text_char_width(const char *at);
/* Of valid UTF-8. */
unsigned text_width(const char *text);

#endif
