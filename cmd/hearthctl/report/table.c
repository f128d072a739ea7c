/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/hearthctl/report/table.h"
#include <string.h>

#define GAP 2

struct Table {
    const TableColumn *columns;
    guint n;
    GPtrArray *rows; /* char **, of n cells and a NULL */
};

Table *table_new(const TableColumn *columns, guint n)
{
    Table *table = g_new0(Table, 1);
    table->columns = columns;
    table->n = n;
    table->rows = g_ptr_array_new_with_free_func((GDestroyNotify)g_strfreev);
    return table;
}

void table_free(Table *table)
{
    if (!table)
        return;
    g_ptr_array_unref(table->rows);
    g_free(table);
}

void table_row(Table *table)
{
    char **cells = g_new0(char *, table->n + 1);
    for (guint i = 0; i < table->n; i++)
        cells[i] = g_strdup("");
    g_ptr_array_add(table->rows, cells);
}

/* UTF-8 without control characters. */
static char *printable(const char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    GString *out = g_string_new(NULL);
    for (const char *p = valid; *p; p = g_utf8_next_char(p)) {
        gunichar c = g_utf8_get_char(p);
        g_string_append_unichar(out, g_unichar_isprint(c) ? c : '?');
    }
    return g_string_free(out, FALSE);
}

char *table_shorten(const char *text, unsigned width)
{
    const glong length = g_utf8_strlen(text, -1);
    if (length <= (glong)width)
        return g_strdup(text);
    if (width == 0)
        return g_strdup("");
    const glong head = width / 2, tail = width - head - 1;
    g_autofree char *begin = g_utf8_substring(text, 0, head);
    const char *end = g_utf8_offset_to_pointer(text, length - tail);
    return g_strconcat(begin, "…", end, NULL);
}

void table_take(Table *table, guint column, char *text)
{
    g_assert(table->rows->len > 0 && column < table->n);
    char **cells = table->rows->pdata[table->rows->len - 1];
    g_autofree char *owned = text;
    g_autofree char *clean = printable(owned ? owned : "-");
    const unsigned max = table->columns[column].max_width;
    g_free(cells[column]);
    cells[column] = max ? table_shorten(clean, max) : g_steal_pointer(&clean);
}

void table_set(Table *table, guint column, const char *text)
{
    table_take(table, column, g_strdup(text));
}

static void append_padded(GString *line, const char *cell, glong width, gboolean right)
{
    const glong pad = width - g_utf8_strlen(cell, -1);
    if (!right)
        g_string_append(line, cell);
    for (glong i = 0; i < pad; i++)
        g_string_append_c(line, ' ');
    if (right)
        g_string_append(line, cell);
}

static char *make_line(const Table *table, const char *const *cells, const glong *widths,
                       unsigned max_width)
{
    g_autoptr(GString) line = g_string_new(NULL);
    for (guint i = 0; i < table->n; i++) {
        if (i > 0)
            g_string_append_printf(line, "%*s", GAP, "");
        append_padded(line, cells[i], widths[i], table->columns[i].right);
    }
    if (max_width && g_utf8_strlen(line->str, -1) > (glong)max_width)
        g_string_truncate(
            line, (gsize)(g_utf8_offset_to_pointer(line->str, (glong)max_width) - line->str));
    while (line->len > 0 && line->str[line->len - 1] == ' ')
        g_string_truncate(line, line->len - 1);
    return g_strdup(line->str);
}

char **table_lines(const Table *table, unsigned max_width)
{
    g_autofree glong *widths = g_new0(glong, table->n);
    g_autofree const char **headers = g_new0(const char *, table->n + 1);
    char **lines = g_new0(char *, table->rows->len + 2);
    for (guint i = 0; i < table->n; i++) {
        headers[i] = table->columns[i].header;
        widths[i] = g_utf8_strlen(headers[i], -1);
        for (guint r = 0; r < table->rows->len; r++)
            widths[i] = MAX(widths[i], g_utf8_strlen(((char **)table->rows->pdata[r])[i], -1));
    }
    lines[0] = make_line(table, headers, widths, max_width);
    for (guint r = 0; r < table->rows->len; r++)
        lines[r + 1] =
            make_line(table, (const char *const *)table->rows->pdata[r], widths, max_width);
    return lines;
}
