/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A terminal taken over for a picture that is drawn again and again, and given back as it was: the
 * alternate screen, no echo, no cursor. Only escape sequences that every terminal since the VT100
 * and xterm knows; curses was rejected, as one table needs none of it.
 */
#ifndef HEARTH_CMD_HEARTHCTL_SCREEN_H
#define HEARTH_CMD_HEARTHCTL_SCREEN_H

#include <glib.h>

typedef struct Screen Screen;

typedef enum ScreenEvent {
    SCREEN_TIME,    /* the time is over */
    SCREEN_KEY,     /* *key is what was pressed */
    SCREEN_RESIZED, /* draw it again */
    SCREEN_END,     /* a signal, or the terminal is gone */
} ScreenEvent;

/* NULL when standard input or output is no terminal. One at a time: it blocks signals of the
 * process. */
Screen *screen_open(void);
/* Gives the terminal back. */
void screen_close(Screen *screen);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Screen, screen_close)

void screen_size(const Screen *screen, unsigned *columns, unsigned *rows);
/* Shows these lines, as many as fit, in place of what was there. Line number `bold` stands out; -1:
 * none. */
void screen_draw(Screen *screen, char *const *lines, int bold);
/* Waits until `deadline_us` of the monotonic clock for what comes first. */
ScreenEvent screen_wait(Screen *screen, gint64 deadline_us, char *key);

#endif
