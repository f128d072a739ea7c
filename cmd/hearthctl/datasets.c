/* SPDX-License-Identifier: Apache-2.0 */
/* hearthctl datasets: how much of each dataset known to this node is cached, mounted or not. */
#include "cmd/hearthctl/client/commands.h"
#include "cmd/hearthctl/report/lines.h"
#include "cmd/hearthctl/view/view.h"

static const char about[] =
    "Shows the datasets (snapshots with a manifest) that this node knows, mounted or not.";
static const char notes[] =
    "LABEL names the dataset in labels of nodes, NodeCaches and "
    "CacheWarmups. WARM% is the cached\n"
    "share, which this node also reports to the scheduler. PLACE is "
    "the directory in Ceph where\n"
    "it was last seen. On a terminal, columns that do not fit are left out; --wide\n"
    "shows all.\n"
    "\n"
    "Examples:\n"
    "  hearthctl datasets\n"
    "  hearthctl datasets --json | jq '.[] | {dataset, bytesCached}'\n";
static const CtlHelp help = {.about = about, .notes = notes};

int ctl_datasets(Ctl *ctl, int argc, char **argv)
{
    gboolean as_json = FALSE, wide = FALSE;
    g_autoptr(GError) error = NULL;
    const GOptionEntry entries[] = {
        {"json", 'j', 0, G_OPTION_ARG_NONE, &as_json, "Print a JSON array", NULL},
        {"wide", 'w', 0, G_OPTION_ARG_NONE, &wide, CTL_WIDE_HELP, NULL},
        G_OPTION_ENTRY_NULL};
    if (!ctl_parse(ctl, &argc, &argv, entries, &help, &error))
        return ctl_fail(ctl, error);
    if (argc > 1) {
        ctl_usage_error(&error, "datasets: it takes no arguments; see hearthctl datasets --help");
        return ctl_fail(ctl, error);
    }
    json_auto_t *all = ctl_pages(ctl, "datasets", "dataset", &error);
    if (!all)
        return ctl_fail(ctl, error);
    const View view = view_stdout(ctl, wide);
    if (as_json)
        lines_print_json(all);
    else
        lines_print(view_datasets(all, &view));
    return CTL_OK;
}
