/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/hearthctl/report/style.h"
#include "cmd/hearthctl/client/terminal.h"
#include "cmd/hearthctl/client/text.h"
#include <unistd.h>

#define ESCAPE '\033'

const char *style_begin(Style style)
{
    static const char *const begins[] = {
        [STYLE_PLAIN] = "",         [STYLE_GOOD] = "\033[32m", [STYLE_WARN] = "\033[33m",
        [STYLE_BAD] = "\033[1;31m", [STYLE_DIM] = "\033[2m",   [STYLE_HEAD] = "\033[1m",
    };
    return begins[style];
}

char *style_text(const char *text, Style style, gboolean colour)
{
    if (!colour || style == STYLE_PLAIN || !text[0])
        return g_strdup(text);
    return g_strconcat(style_begin(style), text, STYLE_END, NULL);
}

const char *style_next(const char *at, unsigned *width)
{
    const char *next = g_utf8_next_char(at);
    if (*at != ESCAPE) {
        *width += text_char_width(at);
        return next;
    }
    /* It ends with a letter. */
    while (*next && !g_ascii_isalpha(*next))
        next++;
    return *next ? next + 1 : next;
}

unsigned style_width(const char *line)
{
    unsigned width = 0;
    for (const char *p = line; *p;)
        p = style_next(p, &width);
    return width;
}

char *style_cut(const char *line, unsigned columns)
{
    GString *out = g_string_new(NULL);
    gboolean styled = FALSE;
    unsigned shown = 0;
    const char *next;
    for (const char *p = line; *p; p = next) {
        next = style_next(p, &shown);
        if (shown > columns && *p != ESCAPE)
            break;
        if (*p == ESCAPE)
            styled = !g_str_has_prefix(p, STYLE_END);
        g_string_append_len(out, p, next - p);
    }
    if (styled)
        g_string_append(out, STYLE_END);
    return g_string_free(out, FALSE);
}

View view_stdout(const Ctl *ctl, gboolean wide)
{
    const unsigned columns = terminal_columns(STDOUT_FILENO);
    return (View){.columns = wide ? 0 : columns,
                  .as = ctl->as,
                  .colour = !ctl->no_colour && terminal_has_colour(STDOUT_FILENO),
                  .details = wide || columns == 0};
}
