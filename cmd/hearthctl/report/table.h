/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of text as hearthctl prints it: columns as wide as their widest cell, numbers aligned
 * right. Where a table is too wide for the terminal, columns become shorter that may, and then
 * whole columns are left out, the one of least worth first; a heading is never cut. Cells come from
 * other machines, so characters that are not printable become '?': no name can control the
 * terminal.
 */
#ifndef HEARTH_CMD_HEARTHCTL_REPORT_TABLE_H
#define HEARTH_CMD_HEARTHCTL_REPORT_TABLE_H

#include <glib.h>
#include "cmd/hearthctl/report/style.h"

typedef struct Table Table;

typedef struct TableColumn {
    const char *header; /* borrowed, for as long as the table */
    gboolean right;     /* a number */
    unsigned max_width; /* in characters; longer cells are cut in the middle. 0: no limit */
    unsigned worth;     /* of two, the one with the smaller is left out first. 0: it always stays */
    unsigned min_width; /* what it may be shortened to, in the middle of its cells. 0: it may not */
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

/* How a cell of the last row is to look where there is colour. */
void table_style(Table *table, guint column, Style style);
/* This column always stays, as a column that the rows are sorted by does. */
void table_keep(Table *table, guint column);

/* The lines, with the header first, without blanks at the end; the caller's. */
char **table_lines(const Table *table, const View *view);

/* `text` in `width` columns at most, without its middle if it is longer; the caller's. */
char *table_shorten(const char *text, unsigned width);

#endif
