/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/hearthctl/report/lines.h"
#include "cmd/hearthctl/client/text.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INDENT 2u

Lines *lines_new(void)
{
    return g_ptr_array_new();
}

/* Where the first line of at most `room` columns ends: at a blank, or where the room does. */
static const char *line_end(const char *text, unsigned room)
{
    const char *blank = NULL, *next;
    unsigned shown = 0;
    for (const char *p = text; *p; p = next) {
        next = style_next(p, &shown);
        if (*p == ' ' && p > text)
            blank = p;
        if (shown <= room || *p == '\033')
            continue;
        if (blank)
            return blank;
        return p > text ? p : next;
    }
    return text + strlen(text);
}

void lines_add_text(Lines *lines, const View *view, unsigned first, unsigned next, const char *said)
{
    g_autofree char *typed = text_typed(said, view->as);
    const char *text = typed;
    unsigned indent = first;
    do {
        const unsigned room = view->columns > indent ? view->columns - indent : 1;
        const char *end = view->columns ? line_end(text, room) : text + strlen(text);
        char *line = g_strdup_printf("%*s%.*s", (int)indent, "", (int)(end - text), text);
        g_ptr_array_add(lines, g_strchomp(line));
        text = end + strspn(end, " ");
        indent = next;
    } while (*text);
}

void lines_add(Lines *lines, const View *view, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    lines_add_text(lines, view, 0, INDENT, text);
}

void lines_add_cut(Lines *lines, const View *view, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    const gboolean fits = !view->columns || style_width(text) <= view->columns;
    g_autofree char *cut = fits ? g_strdup(text) : style_cut(text, view->columns - 1);
    g_ptr_array_add(lines, g_strconcat(cut, fits ? "" : "…", NULL));
}

void lines_add_table(Lines *lines, const View *view, const Table *table)
{
    g_autofree char **rows = table_lines(table, view);
    for (char **row = rows; *row; row++)
        g_ptr_array_add(lines, *row);
}

void lines_add_taken(Lines *lines, char *line)
{
    g_ptr_array_add(lines, line);
}

char **lines_end(Lines *lines)
{
    g_ptr_array_add(lines, NULL);
    return (char **)g_ptr_array_free(lines, FALSE);
}

gboolean lines_print(char **lines)
{
    for (char **line = lines; *line; line++)
        printf("%s\n", *line);
    g_strfreev(lines);
    return fflush(stdout) == 0;
}

void lines_print_json(const json_t *json)
{
    g_autofree char *text = json ? json_dumps(json, JSON_INDENT(2) | JSON_ENCODE_ANY) : NULL;
    if (!text) {
        fprintf(stderr, "hearthctl: there is no JSON of a name that is not UTF-8\n");
        exit(CTL_FAILED);
    }
    printf("%s\n", text);
    fflush(stdout);
}
