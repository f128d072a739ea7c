/* SPDX-License-Identifier: Apache-2.0 */
/* Where a screen is shown, and what colours mean there. */
#ifndef HEARTH_CMD_HEARTHCTL_REPORT_STYLE_H
#define HEARTH_CMD_HEARTHCTL_REPORT_STYLE_H

#include "cmd/hearthctl/client/client.h"

typedef struct View {
    unsigned columns; /* of the terminal; 0: nothing has to fit */
    gboolean colour;
    gboolean details; /* show what only an administrator asks for */
    const char *as;   /* what the user types for "hearthctl" in commands; NULL: that */
} View;

/* Of standard output. Where nobody looks, and with `wide`, everything is shown. */
View view_stdout(const Ctl *ctl, gboolean wide);

typedef enum Style {
    STYLE_PLAIN,
    STYLE_GOOD, /* green */
    STYLE_WARN, /* yellow */
    STYLE_BAD,  /* red */
    STYLE_DIM,
    STYLE_HEAD, /* a heading: bold */
} Style;

/* Standard escape sequences (ECMA-48, SGR). */
#define STYLE_END "\033[0m"
const char *style_begin(Style style); /* "" for STYLE_PLAIN */
/* `text` in this style, or as it is without `colour`; the caller's. */
char *style_text(const char *text, Style style, gboolean colour);
/* The next character or escape sequence; `width` grows by the columns that it takes. */
const char *style_next(const char *at, unsigned *width);
/* How many columns it takes on a terminal. */
unsigned style_width(const char *line);
/* What fits `columns` columns of a terminal; the caller's. */
char *style_cut(const char *line, unsigned columns);

#endif
