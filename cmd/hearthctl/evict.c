/* SPDX-License-Identifier: Apache-2.0 */
/* hearthctl evict and pin: remove data from the cache, or protect it from eviction. */
#include "cmd/hearthctl/client/commands.h"
#include "common/size.h"
#include <stdio.h>

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
    gboolean all = FALSE, pinned = FALSE;
    uint64_t bytes = 0;
    g_autoptr(GError) error = NULL;
    const GOptionEntry entries[] = {
        {"all", 'a', 0, G_OPTION_ARG_NONE, &all, "Everything in the cache", NULL},
        {"pinned", 0, 0, G_OPTION_ARG_NONE, &pinned, "Also pinned data", NULL},
        {"bytes", 'b', 0, G_OPTION_ARG_STRING, &size, "Stop when this much is freed", "SIZE"},
        G_OPTION_ENTRY_NULL};
    if (!ctl_parse(ctl, &argc, &argv, entries, &evict_help, &error))
        return ctl_fail(error);
    if (size && !size_parse("--bytes", size, &bytes, &error)) {
        ctl_fail(error);
        return CTL_USAGE;
    }
    json_t *request = evict_request(ctl, argc, argv, all, &error);
    if (!request)
        return ctl_fail(error);
    json_object_set_new(request, "pinned", json_boolean(pinned));
    if (size)
        json_object_set_new(request, "bytes", json_integer((json_int_t)bytes));
    json_auto_t *reply = ctl_call(ctl, request, &error);
    if (!reply)
        return ctl_fail(error);
    g_autofree char *freed = size_format(ctl_number(reply, "freedBytes"));
    g_autofree char *kept = size_format(ctl_number(reply, "pinnedBytes"));
    printf("%s freed\n", freed);
    if (ctl_number(reply, "pinnedBytes"))
        printf("%s are pinned and were skipped; --pinned drops them too\n", kept);
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

int ctl_pin(Ctl *ctl, int argc, char **argv)
{
    gboolean off = FALSE;
    g_autoptr(GError) error = NULL;
    const GOptionEntry entries[] = {{"off", 0, 0, G_OPTION_ARG_NONE, &off, "Remove the pin", NULL},
                                    G_OPTION_ENTRY_NULL};
    if (!ctl_parse(ctl, &argc, &argv, entries, &pin_help, &error))
        return ctl_fail(error);
    if (argc != 2) {
        ctl_usage_error(&error, "pin: name one volume or path; see hearthctl pin --help");
        return ctl_fail(error);
    }
    json_t *request = ctl_whole_volume(ctl, "pin", argv[1], &error);
    if (!request)
        return ctl_fail(error);
    json_object_set_new(request, "on", json_boolean(!off));
    json_auto_t *reply = ctl_call(ctl, request, &error);
    if (!reply)
        return ctl_fail(error);
    return CTL_OK;
}
