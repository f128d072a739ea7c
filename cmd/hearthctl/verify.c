/* SPDX-License-Identifier: Apache-2.0 */
/* hearthctl verify: hearthd verifies one part a call, so ending this program stops the work. */
#include "cmd/hearthctl/client/commands.h"
#include "cmd/hearthctl/report/lines.h"
#include "cmd/hearthctl/view/view.h"
#include "common/size.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct Sums {
    uint64_t objects, bytes, unchecked;
    json_t *list; /* of what is bad; it is also printed as it is found */
} Sums;

static void print_bad(const json_t *list, const View *view)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        lines_print(view_bad_object(json_array_get(list, i), view));
}

/* FALSE with an error when a call fails. */
static gboolean verify_all(Ctl *ctl, const json_t *request, gboolean as_json, Sums *sums,
                           GError **error)
{
    const View view = view_stdout(ctl, FALSE);
    g_autofree char *after = g_strdup("");
    gboolean terminal = isatty(STDERR_FILENO), more = TRUE;
    while (more) {
        json_t *part = json_copy((json_t *)request);
        json_object_set_new(part, "after", json_string(after));
        json_auto_t *reply = ctl_call_long(ctl, part, error);
        if (!reply)
            return FALSE;
        const json_t *bad = json_object_get(reply, "bad");
        sums->objects += ctl_number(reply, "objects");
        sums->bytes += ctl_number(reply, "bytes");
        sums->unchecked += ctl_number(reply, "unchecked");
        json_array_extend(sums->list, (json_t *)bad);
        if (!as_json)
            print_bad(bad, &view);
        more = json_is_true(json_object_get(reply, "more"));
        g_free(after);
        after = g_strdup(ctl_string(reply, "after"));
        if (terminal) {
            g_autofree char *bytes = size_format(sums->bytes);
            fprintf(stderr, more ? "\r\033[K%s" : "\r\033[K", bytes);
        }
    }
    return TRUE;
}

/* The caller's. */
static json_t *sums_json(const Sums *sums, json_t *list)
{
    return json_pack("{s:I, s:I, s:I, s:O}", "objects", (json_int_t)sums->objects, "bytes",
                     (json_int_t)sums->bytes, "unchecked", (json_int_t)sums->unchecked, "bad",
                     list);
}

static const char examples[] =
    "Reads all cached data from the disk, or that of one volume (PATH: the one mounted there).\n"
    "Bad objects are dropped, and fetched again at the next open; a reader that has one open\n"
    "keeps reading the bad data. hearthd does the same in the background (--scrub-rate). The\n"
    "exit code is 1 if a bad object was found.\n"
    "\n"
    "Examples:\n"
    "  hearthctl verify\n"
    "  hearthctl verify imagenet@2026-11\n";
static const CtlHelp help = {
    .usage = "[VOLUME|PATH]",
    .about = "Compares cached data with the checksums taken when it was fetched.",
    .notes = examples,
};

int ctl_verify(Ctl *ctl, int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    Sums sums = {0};
    gboolean as_json = FALSE;
    const GOptionEntry entries[] = {
        {"json", 'j', 0, G_OPTION_ARG_NONE, &as_json, "Print one JSON object", NULL},
        G_OPTION_ENTRY_NULL};
    if (!ctl_parse(ctl, &argc, &argv, entries, &help, &error))
        return ctl_fail(ctl, error);
    if (argc > 2) {
        ctl_usage_error(&error, "verify: name one volume or path; see hearthctl verify --help");
        return ctl_fail(ctl, error);
    }
    json_auto_t *request = argc == 2 ? ctl_whole_volume(ctl, "verify", argv[1], &error)
                                     : json_pack("{s:s}", "op", "verify");
    json_auto_t *list = json_array();
    sums.list = list;
    gboolean done = request && verify_all(ctl, request, as_json, &sums, &error);
    if (!done)
        return ctl_fail(ctl, error);
    json_auto_t *json = sums_json(&sums, list);
    const View view = view_stdout(ctl, FALSE);
    if (as_json)
        lines_print_json(json);
    else
        lines_print(view_verified(json, &view));
    return json_array_size(list) ? CTL_FAILED : CTL_OK;
}
