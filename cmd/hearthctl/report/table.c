/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/hearthctl/report/table.h"
#include "cmd/hearthctl/client/text.h"
#include <string.h>

#define GAP 2

typedef struct Row {
    char **cells; /* n, and a NULL */
    Style *styles;
} Row;

struct Table {
    const TableColumn *columns;
    guint n;
    int kept;        /* a column; -1: none */
    GPtrArray *rows; /* Row * */
};

typedef struct Layout {
    gboolean shown;
    glong natural, width; /* of its widest cell; as shown */
} Layout;

static void row_free(void *data)
{
    Row *row = data;
    g_strfreev(row->cells);
    g_free(row->styles);
    g_free(row);
}

Table *table_new(const TableColumn *columns, guint n)
{
    Table *table = g_new0(Table, 1);
    table->columns = columns;
    table->n = n;
    table->kept = -1;
    table->rows = g_ptr_array_new_with_free_func(row_free);
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
    Row *row = g_new0(Row, 1);
    row->cells = g_new0(char *, table->n + 1);
    row->styles = g_new0(Style, table->n);
    for (guint i = 0; i < table->n; i++)
        row->cells[i] = g_strdup("");
    g_ptr_array_add(table->rows, row);
}

/* The last characters of it that fit `width` columns. */
static const char *tail_of(const char *text, unsigned width)
{
    const char *at = text + strlen(text);
    while (at > text) {
        const char *before = g_utf8_prev_char(at);
        const unsigned more = text_char_width(before);
        if (more > width)
            break;
        width -= more;
        at = before;
    }
    /* A mark would join the character before it. */
    while (*at && text_char_width(at) == 0)
        at = g_utf8_next_char(at);
    return at;
}

char *table_shorten(const char *text, unsigned width)
{
    if (text_width(text) <= width)
        return g_strdup(text);
    if (width == 0)
        return g_strdup("");
    const unsigned head = width / 2;
    g_autofree char *begin = style_cut(text, head);
    return g_strconcat(begin, "…", tail_of(text, width - text_width(begin) - 1), NULL);
}

static Row *last_row(Table *table, guint column)
{
    g_assert(table->rows->len > 0 && column < table->n);
    return table->rows->pdata[table->rows->len - 1];
}

void table_style(Table *table, guint column, Style style)
{
    last_row(table, column)->styles[column] = style;
}

void table_keep(Table *table, guint column)
{
    table->kept = (int)column;
}

void table_take(Table *table, guint column, char *text)
{
    char **cells = last_row(table, column)->cells;
    g_autofree char *owned = text;
    g_autofree char *clean = text_printable(owned ? owned : "-");
    const unsigned max = table->columns[column].max_width;
    g_free(cells[column]);
    cells[column] = max ? table_shorten(clean, max) : g_steal_pointer(&clean);
}

void table_set(Table *table, guint column, const char *text)
{
    table_take(table, column, g_strdup(text));
}

static void append_padded(GString *line, const char *cell, glong width, gboolean right,
                          const char *before)
{
    const glong pad = width - text_width(cell);
    const char *after = before[0] ? STYLE_END : "";
    if (!right)
        g_string_append_printf(line, "%s%s%s", before, cell, after);
    for (glong i = 0; i < pad; i++)
        g_string_append_c(line, ' ');
    if (right)
        g_string_append_printf(line, "%s%s%s", before, cell, after);
}

/* What a column takes at least. */
static glong least(const Table *table, const Layout *layout, guint i)
{
    const glong least = table->columns[i].min_width;
    if (least == 0)
        return layout[i].natural;
    return MIN(layout[i].natural, MAX(least, text_width(table->columns[i].header)));
}

static glong least_of_all(const Table *table, const Layout *layout)
{
    glong sum = 0;
    for (guint i = 0; i < table->n; i++)
        if (layout[i].shown)
            sum += least(table, layout, i) + (sum ? GAP : 0);
    return sum;
}

/* The shown column of least worth; -1: all have to stay. */
static int least_worth(const Table *table, const Layout *layout)
{
    int found = -1;
    for (guint i = 0; i < table->n; i++) {
        const unsigned worth = table->columns[i].worth;
        if (!layout[i].shown || worth == 0 || (int)i == table->kept)
            continue;
        if (found < 0 || worth < table->columns[found].worth)
            found = (int)i;
    }
    return found;
}

static void fit(const Table *table, Layout *layout, unsigned columns)
{
    const glong room = columns ? (glong)columns : G_MAXINT;
    for (int i; least_of_all(table, layout) > room && (i = least_worth(table, layout)) >= 0;)
        layout[i].shown = FALSE;
    glong left = room - least_of_all(table, layout);
    for (guint i = 0; i < table->n; i++) {
        layout[i].width = least(table, layout, i);
        if (!layout[i].shown)
            continue;
        const glong more = CLAMP(layout[i].natural - layout[i].width, 0, MAX(left, 0));
        layout[i].width += more;
        left -= more;
    }
}

static void measure(const Table *table, Layout *layout)
{
    for (guint i = 0; i < table->n; i++) {
        layout[i].shown = TRUE;
        layout[i].natural = text_width(table->columns[i].header);
        for (guint r = 0; r < table->rows->len; r++) {
            const Row *row = table->rows->pdata[r];
            layout[i].natural = MAX(layout[i].natural, text_width(row->cells[i]));
        }
    }
}

static char *make_line(const Table *table, char *const *cells, const Style *styles,
                       const Layout *layout, const View *view)
{
    g_autoptr(GString) line = g_string_new(NULL);
    const char *gap = "";
    for (guint i = 0; i < table->n; i++) {
        if (!layout[i].shown)
            continue;
        const Style style = styles ? styles[i] : STYLE_PLAIN;
        g_autofree char *cell = table_shorten(cells[i], (unsigned)layout[i].width);
        g_string_append(line, gap);
        append_padded(line, cell, layout[i].width, table->columns[i].right,
                      style_begin(view->colour && cell[0] ? style : STYLE_PLAIN));
        gap = "  ";
    }
    while (line->len > 0 && line->str[line->len - 1] == ' ')
        g_string_truncate(line, line->len - 1);
    return view->columns ? style_cut(line->str, view->columns) : g_strdup(line->str);
}

char **table_lines(const Table *table, const View *view)
{
    g_autofree Layout *layout = g_new0(Layout, table->n);
    g_autofree char **headers = g_new0(char *, table->n + 1);
    char **lines = g_new0(char *, table->rows->len + 2);
    for (guint i = 0; i < table->n; i++)
        headers[i] = (char *)table->columns[i].header;
    measure(table, layout);
    fit(table, layout, view->columns);
    lines[0] = make_line(table, headers, NULL, layout, view);
    for (guint r = 0; r < table->rows->len; r++) {
        const Row *row = table->rows->pdata[r];
        lines[r + 1] = make_line(table, row->cells, row->styles, layout, view);
    }
    return lines;
}
