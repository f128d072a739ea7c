/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a screen, while it is made. */
#ifndef HEARTH_CMD_HEARTHCTL_REPORT_LINES_H
#define HEARTH_CMD_HEARTHCTL_REPORT_LINES_H

#include <glib.h>
#include <jansson.h>
#include "cmd/hearthctl/report/table.h"

typedef GPtrArray Lines; /* char * */

Lines *lines_new(void);
/* A line; one that is too wide for the view goes on below, between words, indented by two. */
void lines_add(Lines *lines, const View *view, const char *format, ...) G_GNUC_PRINTF(3, 4);
/* The same with all of it indented by `first` and what goes on below by `next` columns. */
void lines_add_text(Lines *lines, const View *view, unsigned first, unsigned next,
                    const char *text);
/* A line that is cut where it is too wide, with "…" for the rest. */
void lines_add_cut(Lines *lines, const View *view, const char *format, ...) G_GNUC_PRINTF(3, 4);
/* The table, as wide as the view. */
void lines_add_table(Lines *lines, const View *view, const Table *table);
/* Takes one line. */
void lines_add_taken(Lines *lines, char *line);
/* Takes the lines, and gives them as a vector that is the caller's. */
char **lines_end(Lines *lines);

/* Takes the vector. FALSE: nobody reads standard output any more. */
gboolean lines_print(char **lines);
/* One JSON value on standard output. */
void lines_print_json(const json_t *json);

#endif
