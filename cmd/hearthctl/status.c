/* SPDX-License-Identifier: Apache-2.0 */
/* hearthctl status: asks for all that cmd/hearthctl/view/status.c shows. */
#include "cmd/hearthctl/client/commands.h"
#include "cmd/hearthctl/client/mounts.h"
#include "cmd/hearthctl/report/lines.h"
#include "cmd/hearthctl/view/view.h"
#include <poll.h>

/* On a terminal, between two samples of hearthd's counters: short for who waits, and long enough
 * for a rate. */
#define SAMPLE_MS 300

static json_t *lost_json(const GPtrArray *lost, char *const *heals)
{
    json_t *list = json_array();
    for (guint i = 0; lost && i < lost->len; i++) {
        const LostMount *one = lost->pdata[i];
        g_autofree char *volume = g_utf8_make_valid(one->volume, -1);
        g_autofree char *point = g_utf8_make_valid(one->point, -1);
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:s*, s:s*}", "volume", volume, "path", point,
                                        "pod", one->pod, "heal", mounts_heal_of(heals, one)));
    }
    return list;
}

static void print_json(const RatesLook *now, const json_t *jobs, const GPtrArray *lost,
                       char *const *heals)
{
    json_auto_t *all =
        json_pack("{s:O, s:O, s:O}", "daemon", json_object_get(now->status, "daemon"), "cache",
                  json_object_get(now->status, "cache"), "volumes", now->volumes);
    if (jobs)
        json_object_set(all, "jobs", (json_t *)jobs);
    json_object_set_new(all, "lostMounts", lost_json(lost, heals));
    lines_print_json(all);
}

static gboolean take_look(Ctl *ctl, RatesLook *look, GError **error)
{
    look->status = ctl_call(ctl, json_pack("{s:s}", "op", "status"), error);
    look->at_us = g_get_monotonic_time();
    if (look->status)
        look->volumes = ctl_pages(ctl, "volumes", "volume", error);
    return look->volumes != NULL;
}

static const CtlHelp help = {
    .usage = "",
    .about = "Shows the cache of this node and the volumes hearthd serves on it.",
    .notes =
        "CACHED is the cached part of a volume and its size, where that is known. HIT% is the\n"
        "share of opens for reading that the cache could serve; \"native\": a dataset (a\n"
        "snapshot with a manifest), which the kernel reads by itself, so that its opens are not\n"
        "counted. PODS is how many of this node have it. INODES is how many the kernel holds. On a "
        "terminal, columns that do not fit\n"
        "are left out; --wide shows all, and hearthd's counters.\n"
        "\n"
        "Examples:\n"
        "  hearthctl status\n"
        "  hearthctl status --json | jq '.volumes[] | {volume, bytesCached}'\n",
};

int ctl_status(Ctl *ctl, int argc, char **argv)
{
    gboolean as_json = FALSE, wide = FALSE;
    g_auto(GStrv) heals = NULL;
    g_autoptr(GError) error = NULL;
    g_auto(RatesLook) before = {0};
    g_auto(RatesLook) now = {0};
    const GOptionEntry entries[] = {
        {"json", 'j', 0, G_OPTION_ARG_NONE, &as_json, "Print one JSON object", NULL},
        {"heal", 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_STRING_ARRAY, &heals, NULL, NULL},
        {"wide", 'w', 0, G_OPTION_ARG_NONE, &wide, CTL_WIDE_HELP, NULL},
        G_OPTION_ENTRY_NULL};
    if (!ctl_parse(ctl, &argc, &argv, entries, &help, &error))
        return ctl_fail(ctl, error);
    if (argc > 1) {
        ctl_usage_error(&error, "status: unexpected argument '%s'; see hearthctl status --help",
                        argv[1]);
        return ctl_fail(ctl, error);
    }
    const View view = view_stdout(ctl, wide);
    if (view.columns && !as_json) {
        if (!take_look(ctl, &before, &error))
            return ctl_fail(ctl, error);
        poll(NULL, 0, SAMPLE_MS);
    }
    if (!take_look(ctl, &now, &error))
        return ctl_fail(ctl, error);
    /* An earlier hearthd cannot list them. */
    json_auto_t *jobs = ctl_jobs(ctl, NULL);
    g_autoptr(GPtrArray) lost = ctl_lost_mounts(now.volumes);
    g_autoptr(GPtrArray) pods = ctl_publications();
    const ViewStatus shown = {.before = &before,
                              .now = &now,
                              .jobs = jobs,
                              .lost = lost,
                              .pods = pods,
                              .heals = heals,
                              .now_ms = g_get_real_time() / 1000};
    if (as_json)
        print_json(&now, jobs, lost, heals);
    else
        lines_print(view_status(&shown, &view));
    return CTL_OK;
}
