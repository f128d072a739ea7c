/* SPDX-License-Identifier: Apache-2.0 */
/* How much of each dataset known to this node is cached, mounted or not. */
#include "cmd/hearthctl/view/view.h"
#include "cmd/hearthctl/client/client.h"
#include "cmd/hearthctl/report/lines.h"
#include "cmd/hearthctl/report/words.h"
#include "common/size.h"

enum { NAME, LABEL, CACHED, TOTAL, WARM, FILES, PINNED, PLACE, ID };

static const TableColumn columns[] = {
    [NAME] = {"NAME", FALSE, 0, 0, 12},    [LABEL] = {"LABEL", FALSE, 0, 3, 0},
    [CACHED] = {"CACHED", TRUE, 0, 6, 0},  [TOTAL] = {"TOTAL", TRUE, 0, 7, 0},
    [WARM] = {"WARM%", TRUE, 0, 0, 0},     [FILES] = {"FILES", TRUE, 0, 2, 0},
    [PINNED] = {"PINNED", FALSE, 0, 4, 0}, [PLACE] = {"PLACE", FALSE, 0, 1, 16},
    [ID] = {"MANIFEST", FALSE, 0, 0, 0},
};

static void add_row(Table *table, const json_t *d, gboolean details)
{
    const json_t *place = json_array_get(json_object_get(d, "places"), 0);
    const uint64_t total = ctl_number(d, "bytesTotal"), cached = ctl_number(d, "bytesCached");
    const char *label = ctl_string(d, "label");
    table_row(table);
    table_set(table, NAME, ctl_name(d, "dataset"));
    table_set(table, LABEL, label[0] ? label : NULL);
    table_take(table, CACHED, size_format(cached));
    table_take(table, TOTAL, size_format(total));
    table_take(table, WARM, words_percent(cached, total));
    table_take(table, FILES, g_strdup_printf("%" G_GUINT64_FORMAT, ctl_number(d, "filesTotal")));
    table_set(table, PINNED, json_is_true(json_object_get(d, "pinned")) ? "pinned" : "");
    table_take(
        table, PLACE,
        g_strdup_printf("%s:%s", ctl_string(place, "fsName"), ctl_string(place, "rootPath")));
    if (details)
        table_set(table, ID, ctl_string(d, "dataset"));
}

char **view_datasets(const json_t *datasets, const View *view)
{
    Lines *lines = lines_new();
    g_autoptr(Table) table = table_new(columns, G_N_ELEMENTS(columns) - !view->details);
    for (size_t i = 0; i < json_array_size(datasets); i++)
        add_row(table, json_array_get(datasets, i), view->details);
    if (json_array_size(datasets))
        lines_add_table(lines, view, table);
    else
        lines_add(lines, view, "No datasets are known on this node.");
    return lines_end(lines);
}
