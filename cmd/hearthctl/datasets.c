/* SPDX-License-Identifier: Apache-2.0 */
/* hearthctl datasets: how much of each dataset known to this node is cached, mounted or not. */
#include "cmd/hearthctl/client/commands.h"
#include <stdio.h>
#include <string.h>
#include "common/size.h"

static const char about[] =
    "Shows the datasets (snapshots with a manifest) that this node knows, mounted or not.";
static const char notes[] = "LABEL names the dataset in labels of nodes, NodeCaches and "
                            "CacheWarmups. WARM% is the cached\n"
                            "share, which this node also reports to the scheduler. PLACE is "
                            "the directory in Ceph where\n"
                            "it was last seen.\n"
                            "\n"
                            "Examples:\n"
                            "  hearthctl datasets\n"
                            "  hearthctl datasets --json | jq '.[] | {dataset, bytesCached}'\n";
static const CtlHelp help = {.about = about, .notes = notes};

static void print_one(const json_t *d)
{
    const json_t *places = json_object_get(d, "places"), *place = json_array_get(places, 0);
    const uint64_t total = ctl_number(d, "bytesTotal"), cached = ctl_number(d, "bytesCached");
    g_autofree char *have = size_format(cached), *all = size_format(total);
    g_autofree char *warm =
        total ? g_strdup_printf("%.0f%%", 100.0 * (double)cached / (double)total) : g_strdup("-");
    printf("%-34s %-16s %10s %10s %6s %10" G_GUINT64_FORMAT "  %-7s %s:%s\n",
           ctl_name(d, "dataset"), ctl_string(d, "label"), have, all, warm,
           ctl_number(d, "filesTotal"), json_is_true(json_object_get(d, "pinned")) ? "pinned" : "",
           ctl_string(place, "fsName"), ctl_string(place, "rootPath"));
}

int ctl_datasets(Ctl *ctl, int argc, char **argv)
{
    gboolean as_json = FALSE;
    g_autoptr(GError) error = NULL;
    const GOptionEntry entries[] = {
        {"json", 'j', 0, G_OPTION_ARG_NONE, &as_json, "Print a JSON array", NULL},
        G_OPTION_ENTRY_NULL};
    if (!ctl_parse(ctl, &argc, &argv, entries, &help, &error))
        return ctl_fail(error);
    if (argc > 1) {
        ctl_usage_error(&error, "datasets takes no arguments");
        return ctl_fail(error);
    }
    json_auto_t *all = ctl_pages(ctl, "datasets", "dataset", &error);
    if (!all)
        return ctl_fail(error);
    if (as_json) {
        json_dumpf(all, stdout, JSON_INDENT(2));
        printf("\n");
    } else if (json_array_size(all) == 0) {
        printf("No datasets are known on this node.\n");
    } else {
        printf("%-34s %-16s %10s %10s %6s %10s  %-7s %s\n", "NAME", "LABEL", "CACHED", "TOTAL",
               "WARM%", "FILES", "", "PLACE");
        for (size_t i = 0; i < json_array_size(all); i++)
            print_one(json_array_get(all, i));
    }
    return CTL_OK;
}
