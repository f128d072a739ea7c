/* SPDX-License-Identifier: Apache-2.0 */
/* hearthctl evict and pin: what leaves the cache, and what does not. */
#include "cmd/hearthctl/command.h"
#include "common/size.h"
#include <stdio.h>

static const char evict_examples[] = "What is evicted is fetched from Ceph again when it is read; "
                                     "nothing is lost. The least recently\n"
                                     "used goes first. PATH names the volume mounted there.\n"
                                     "\n"
                                     "Examples:\n"
                                     "  hearthctl evict pvc-0a1b2c\n"
                                     "  hearthctl evict pvc-0a1b2c --bytes 50G\n"
                                     "  hearthctl evict --all\n";

json_t *ctl_whole_volume(const char *op, const char *argument, GError **error)
{
    g_autofree char *volume = NULL, *inside = NULL;
    if (!ctl_find_volume(argument, &volume, &inside, error))
        return NULL;
    if (inside[0]) {
        ctl_usage_error(
            error, "%s: %s is '%s' in volume %s, and takes a volume as a whole: hearthctl %s %s",
            op, argument, inside, volume, op, volume);
        return NULL;
    }
    json_t *request = json_pack("{s:s, s:s}", "op", op, "volume", volume);
    if (!request)
        ctl_usage_error(error, "%s: the volume must be UTF-8", op);
    return request;
}

/* The request for what the command line names; NULL with a usage or lookup error. */
static json_t *evict_request(int argc, char **argv, gboolean all, GError **error)
{
    if (all ? argc != 1 : argc != 2) {
        ctl_usage_error(error, "evict: name one volume or path, or give --all; see hearthctl evict "
                               "--help");
        return NULL;
    }
    if (all)
        return json_pack("{s:s}", "op", "evict");
    return ctl_whole_volume("evict", argv[1], error);
}

int ctl_evict(Ctl *ctl, int argc, char **argv)
{
    g_autofree char *size = NULL;
    gboolean all = FALSE, pinned = FALSE;
    uint64_t bytes = 0;
    g_autoptr(GError) error = NULL;
    const GOptionEntry entries[] = {
        {"all", 'a', 0, G_OPTION_ARG_NONE, &all, "Everything in the cache", NULL},
        {"pinned", 0, 0, G_OPTION_ARG_NONE, &pinned, "Also what is pinned", NULL},
        {"bytes", 'b', 0, G_OPTION_ARG_STRING, &size, "Stop when so much is freed", "SIZE"},
        G_OPTION_ENTRY_NULL};
    if (!ctl_parse(ctl, &argc, &argv, entries, "VOLUME|PATH|--all",
                   "Drops what the cache holds of a volume, or of all.", evict_examples, &error))
        return ctl_fail(error);
    if (size && !size_parse("--bytes", size, &bytes, &error)) {
        ctl_fail(error);
        return CTL_USAGE;
    }
    json_t *request = evict_request(argc, argv, all, &error);
    if (!request)
        return ctl_fail(error);
    json_object_set_new(request, "pinned", json_boolean(pinned));
    if (size)
        json_object_set_new(request, "bytes", json_integer((json_int_t)bytes));
    json_t *reply = ctl_call(ctl, request, &error);
    if (!reply)
        return ctl_fail(error);
    g_autofree char *freed = size_format(ctl_number(reply, "freedBytes"));
    g_autofree char *kept = size_format(ctl_number(reply, "pinnedBytes"));
    printf("%s freed\n", freed);
    if (ctl_number(reply, "pinnedBytes"))
        printf("%s are pinned and were passed over; --pinned drops them too\n", kept);
    json_decref(reply);
    return CTL_OK;
}

static const char pin_examples[] =
    "A pinned volume is evicted neither when the cache is full nor for another's files; only by\n"
    "name, or by a cacheQuota of its own. It stays pinned over restarts, until --off. Pinning\n"
    "fetches nothing: hearthctl warm does. PATH names the volume mounted there.\n"
    "\n"
    "Examples:\n"
    "  hearthctl pin pvc-0a1b2c\n"
    "  hearthctl pin /mnt/imagenet --off\n";

int ctl_pin(Ctl *ctl, int argc, char **argv)
{
    gboolean off = FALSE;
    g_autoptr(GError) error = NULL;
    const GOptionEntry entries[] = {
        {"off", 0, 0, G_OPTION_ARG_NONE, &off, "It may be evicted again", NULL},
        G_OPTION_ENTRY_NULL};
    if (!ctl_parse(ctl, &argc, &argv, entries, "VOLUME|PATH",
                   "Keeps what the cache holds of a volume, now and later.", pin_examples, &error))
        return ctl_fail(error);
    if (argc != 2) {
        ctl_usage_error(&error, "pin: name one volume or path; see hearthctl pin --help");
        return ctl_fail(error);
    }
    json_t *request = ctl_whole_volume("pin", argv[1], &error);
    if (!request)
        return ctl_fail(error);
    json_object_set_new(request, "on", json_boolean(!off));
    json_t *reply = ctl_call(ctl, request, &error);
    if (!reply)
        return ctl_fail(error);
    json_decref(reply);
    return CTL_OK;
}
