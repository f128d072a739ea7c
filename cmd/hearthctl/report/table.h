/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of text as hearthctl prints it: columns as wide as their widest cell, numbers aligned
 * right. Cells come from other machines, so characters that are not printable become '?': no name
 * can control the terminal.
 */
#ifndef HEARTH_CMD_HEARTHCTL_REPORT_TABLE_H
#define HEARTH_CMD_HEARTHCTL_REPORT_TABLE_H

#include <glib.h>

typedef struct Table Table;

typedef struct TableColumn {
    const char *header; /* borrowed, for as long as the table */
    gboolean right;     /* a number */
    unsigned max_width; /* in characters; longer cells are cut in the middle. 0: no limit */
} TableColumn;

/* `columns` is borrowed, for as long as the table. */
Table *table_new(const TableColumn *columns, guint n);
void table_free(Table *table);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Table, table_free)

/* Begins a row, whose cells are empty. */
void table_row(Table *table);
/* Sets a cell of the last row; takes `text`, NULL is "-". */
void table_take(Table *table, guint column, char *text);
void table_set(Table *table, guint column, const char *text);

/*
 * The lines, with the header first, each cut to `max_width` characters (0: no bound), without
 * blanks at the end.
 */
char **table_lines(const Table *table, unsigned max_width);

/* `text` in `width` characters at most, without its middle if it is longer; the caller's. */
char *table_shorten(const char *text, unsigned width);

#endif
