/* SPDX-License-Identifier: Apache-2.0 */
/* hearthctl evict, pin and unpin: remove data from the cache, or protect it from eviction. */
#include "cmd/hearthctl/client/commands.h"
#include "cmd/hearthctl/report/lines.h"
#include "cmd/hearthctl/view/view.h"
#include "common/size.h"
#include <stdio.h>
#include <string.h>

static const char evict_examples[] =
    "Evicted data is fetched from Ceph again when it is read; nothing "
    "is lost. The least recently\n"
    "used data goes first. PATH names the volume mounted there.\n"
    "\n"
    "Examples:\n"
    "  hearthctl evict train/data\n"
    "  hearthctl evict train/data --bytes 50G\n"
    "  hearthctl evict --all\n";
static const CtlHelp evict_help = {
    .usage = "VOLUME|PATH|--all",
    .about = "Drops the cached data of a volume, or of all volumes.",
    .notes = evict_examples,
};

/* The request for what the command line names; NULL with a usage or lookup error. */
static json_t *evict_request(Ctl *ctl, int argc, char **argv, gboolean all, GError **error)
{
    if (all ? argc != 1 : argc != 2) {
        ctl_usage_error(error, "evict: name one volume or path, or give --all; see hearthctl evict "
                               "--help");
        return NULL;
    }
    if (all)
        return json_pack("{s:s}", "op", "evict");
    return ctl_whole_volume(ctl, "evict", argv[1], error);
}

int ctl_evict(Ctl *ctl, int argc, char **argv)
{
    g_autofree char *size = NULL;
    gboolean all = FALSE, pinned = FALSE, as_json = FALSE;
    uint64_t bytes = 0;
    g_autoptr(GError) error = NULL;
    const GOptionEntry entries[] = {
        {"all", 'a', 0, G_OPTION_ARG_NONE, &all, "Everything in the cache", NULL},
        {"pinned", 0, 0, G_OPTION_ARG_NONE, &pinned, "Also pinned data", NULL},
        {"bytes", 'b', 0, G_OPTION_ARG_STRING, &size, "Stop when this much is freed", "SIZE"},
        {"json", 0, 0, G_OPTION_ARG_NONE, &as_json, "Print one JSON object", NULL},
        G_OPTION_ENTRY_NULL};
    if (!ctl_parse(ctl, &argc, &argv, entries, &evict_help, &error))
        return ctl_fail(ctl, error);
    if (size && !size_parse("--bytes", size, &bytes, &error)) {
        ctl_fail(ctl, error);
        return CTL_USAGE;
    }
    json_t *request = evict_request(ctl, argc, argv, all, &error);
    if (!request)
        return ctl_fail(ctl, error);
    json_object_set_new(request, "pinned", json_boolean(pinned));
    if (size)
        json_object_set_new(request, "bytes", json_integer((json_int_t)bytes));
    json_auto_t *reply = ctl_call_long(ctl, request, &error);
    if (!reply)
        return ctl_fail(ctl, error);
    if (as_json) {
        json_object_del(reply, "ok");
        lines_print_json(reply);
        return CTL_OK;
    }
    const View view = view_stdout(ctl, FALSE);
    lines_print(view_evicted(reply, &view));
    return CTL_OK;
}

static const char pin_examples[] =
    "The data of a pinned volume is not evicted to make room for other volumes. It can be evicted\n"
    "by name, and to keep a cacheQuota of its own. A pin outlives restarts, until --off. Pinning\n"
    "fetches nothing; hearthctl warm does. PATH names the volume mounted there.\n"
    "\n"
    "Examples:\n"
    "  hearthctl pin imagenet@2026-11\n"
    "  hearthctl pin /mnt/imagenet --off\n";
static const CtlHelp pin_help = {
    .usage = "VOLUME|PATH",
    .about = "Protects the cached data of a volume from eviction, now and later.",
    .notes = pin_examples,
};

static const CtlHelp unpin_help = {
    .usage = "VOLUME|PATH",
    .about = "Removes the pin of a volume: its cached data may be evicted again.",
    .notes = "Examples:\n  hearthctl unpin imagenet@2026-11\n",
};

/* Of a pinned volume, which hearthd lists in its status; 0 when that is not known. */
static uint64_t pinned_bytes(Ctl *ctl, const char *volume)
{
    json_auto_t *status = ctl_call(ctl, json_pack("{s:s}", "op", "status"), NULL);
    const json_t *pins = json_object_get(json_object_get(status, "cache"), "pins");
    for (size_t i = 0; i < json_array_size(pins); i++)
        if (strcmp(ctl_string(json_array_get(pins, i), "volume"), volume) == 0)
            return ctl_number(json_array_get(pins, i), "bytes");
    return 0;
}

static int set_pin(Ctl *ctl, const char *argument, gboolean on, gboolean as_json, GError **error)
{
    json_auto_t *request = ctl_whole_volume(ctl, "pin", argument, error);
    if (!request)
        return CTL_FAILED;
    json_object_set_new(request, "on", json_boolean(on));
    const char *volume = ctl_string(request, "volume");
    json_auto_t *reply = ctl_call(ctl, json_incref(request), error);
    if (!reply)
        return CTL_FAILED;
    g_autofree char *name = ctl_title(ctl, volume);
    json_auto_t *json = json_pack("{s:s, s:s, s:b, s:I}", "volume", volume, "name", name, "pinned",
                                  on, "bytes", (json_int_t)(on ? pinned_bytes(ctl, volume) : 0));
    const View view = view_stdout(ctl, FALSE);
    if (as_json)
        lines_print_json(json);
    else
        lines_print(view_pinned(json, &view));
    return CTL_OK;
}

static int run_pin(Ctl *ctl, int argc, char **argv, gboolean on, const CtlHelp *help)
{
    gboolean off = FALSE, as_json = FALSE;
    const char *command = argv[0];
    g_autoptr(GError) error = NULL;
    const GOptionEntry json = {"json", 0, 0, G_OPTION_ARG_NONE, &as_json, "Print one JSON object",
                               NULL};
    const GOptionEntry with_off[] = {
        {"off", 0, 0, G_OPTION_ARG_NONE, &off, "Remove the pin", NULL}, json, G_OPTION_ENTRY_NULL};
    if (!ctl_parse(ctl, &argc, &argv, on ? with_off : with_off + 1, help, &error))
        return ctl_fail(ctl, error);
    if (argc != 2) {
        ctl_usage_error(&error, "%s: name one volume or path; see hearthctl %s --help", command,
                        command);
        return ctl_fail(ctl, error);
    }
    const int code = set_pin(ctl, argv[1], on && !off, as_json, &error);
    return error ? ctl_fail(ctl, error) : code;
}

int ctl_pin(Ctl *ctl, int argc, char **argv)
{
    return run_pin(ctl, argc, argv, TRUE, &pin_help);
}

int ctl_unpin(Ctl *ctl, int argc, char **argv)
{
    return run_pin(ctl, argc, argv, FALSE, &unpin_help);
}
