/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A terminal used for a screen that is redrawn, and restored afterwards: the alternate screen, no
 * echo, no cursor. It uses only escape sequences that every terminal since the VT100 and xterm
 * knows; curses was rejected, because one table does not need it.
 */
#ifndef HEARTH_CMD_HEARTHCTL_SCREEN_H
#define HEARTH_CMD_HEARTHCTL_SCREEN_H

#include <glib.h>

typedef struct Screen Screen;

typedef enum ScreenEvent {
    SCREEN_TIME,    /* the deadline has passed */
    SCREEN_KEY,     /* *key is what was pressed */
    SCREEN_RESIZED, /* draw it again */
    SCREEN_END,     /* a signal, or the terminal is gone */
} ScreenEvent;

/* NULL when standard input or output is no terminal. One at a time: it blocks signals of the
 * process. */
Screen *screen_open(void);
/* Restores the terminal. */
void screen_close(Screen *screen);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Screen, screen_close)

void screen_size(const Screen *screen, unsigned *columns, unsigned *rows);
/* Replaces the screen with as many of these lines as fit. Line number `bold` is highlighted; -1:
 * none. */
void screen_draw(Screen *screen, char *const *lines, int bold);
/* Waits for the first of these events, until `deadline_us` of the monotonic clock. */
ScreenEvent screen_wait(Screen *screen, gint64 deadline_us, char *key);

#endif
