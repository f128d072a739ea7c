/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/hearthctl/client/terminal.h"
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define UNKNOWN_COLUMNS 80

unsigned terminal_columns(int fd)
{
    struct winsize size;
    if (!isatty(fd))
        return 0;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : UNKNOWN_COLUMNS;
}

gboolean terminal_has_colour(int fd)
{
    const char *none = g_getenv("NO_COLOR"), *term = g_getenv("TERM");
    return isatty(fd) && !(none && none[0]) && term && strcmp(term, "dumb") != 0;
}
