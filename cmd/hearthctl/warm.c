/* SPDX-License-Identifier: Apache-2.0 */
/* hearthctl warm: starts a job in hearthd, and follows it unless --no-wait is given. */
#include "cmd/hearthctl/client/commands.h"
#include "cmd/hearthctl/follow.h"
#include "cmd/hearthctl/report/words.h"
#include "common/autofd.h"
#include "common/size.h"
#include "proto/wire.h"
#include <stdio.h>
#include <string.h>

typedef struct WarmOptions {
    char *sub, *rate, *from;
    uint64_t bytes_per_sec;
    gboolean no_wait, check, as_json;
} WarmOptions;

static const char warm_about[] =
    "Fetches the files of a volume, of a part of it, or of a list, that "
    "are not cached yet.";
static const char warm_examples[] =
    "VOLUME is a claim (NAMESPACE/CLAIM), a PersistentVolume, a dataset (SUBVOLUME@SNAPSHOT), an\n"
    "ID, or the first letters of one of these. PATH is a directory or file on a mounted volume;\n"
    "all files below it are fetched. The names in a list are relative to it, one a line;\n"
    "absolute names must be below PATH. Files that readers wait for are fetched first. Ctrl-C\n"
    "cancels the job; the same command continues where it stopped, also after a restart of\n"
    "hearthd. When the terminal is closed, the job goes on: 'hearthctl jobs' lists it. The exit\n"
    "code is 1 when a file could not be fetched, and with --check when not all is cached.\n"
    "\n"
    "Examples:\n"
    "  hearthctl warm train/data\n"
    "  hearthctl warm imagenet@2026-11 --path train/shard-000\n"
    "  hearthctl warm /mnt/imagenet/train\n"
    "  hearthctl warm train/data --rate 100M --no-wait\n"
    "  hearthctl warm --check /mnt/imagenet && start-training\n"
    "  find /mnt/imagenet/train -name '*.tar' | hearthctl warm /mnt/imagenet --files-from -\n";
static const CtlHelp warm_help = {
    .usage = "VOLUME|PATH", .about = warm_about, .notes = warm_examples};

static char *join_paths(const char *a, const char *b)
{
    return g_strdup_printf("%s%s%s", a, a[0] && b[0] ? "/" : "", b);
}

/* What was typed, to be typed again. */
static char *command_line(int argc, char **argv)
{
    g_autoptr(GString) line = g_string_new("hearthctl");
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--as") == 0 && i + 1 < argc) {
            i++;
            continue;
        }
        g_autofree char *word = words_shell(argv[i]);
        g_string_append_printf(line, " %s", word);
    }
    return g_strdup(line->str);
}

static void options_clear(WarmOptions *o)
{
    g_free(o->sub);
    g_free(o->rate);
    g_free(o->from);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(WarmOptions, options_clear)

static gboolean parse(Ctl *ctl, WarmOptions *o, int *argc, char ***argv, GError **error)
{
    const GOptionEntry entries[] = {
        {"path", 'p', 0, G_OPTION_ARG_FILENAME, &o->sub, "Only this path inside the volume", "SUB"},
        {"files-from", 'f', 0, G_OPTION_ARG_FILENAME, &o->from,
         "Only these files: their names, one a line; - reads standard input", "FILE"},
        {"rate", 'r', 0, G_OPTION_ARG_STRING, &o->rate, "Maximum bytes per second of the job",
         "SIZE"},
        {"check", 'c', 0, G_OPTION_ARG_NONE, &o->check,
         "Fetch nothing: show how much is cached, and exit with 1 if not all", NULL},
        {"no-wait", 0, 0, G_OPTION_ARG_NONE, &o->no_wait, "Print the job's number and return",
         NULL},
        {"json", 0, 0, G_OPTION_ARG_NONE, &o->as_json, "Print the result as one JSON object", NULL},
        G_OPTION_ENTRY_NULL};
    g_autoptr(GError) bad = NULL;
    if (!ctl_parse(ctl, argc, argv, entries, &warm_help, error))
        return FALSE;
    if (*argc != 2)
        ctl_usage_error(error, "warm: name one volume or path; see hearthctl warm --help");
    else if (o->check && (o->no_wait || o->rate))
        ctl_usage_error(error, "--check: it fetches nothing, so leave out --rate and --no-wait");
    else if (o->rate && !size_parse("--rate", o->rate, &o->bytes_per_sec, &bad))
        ctl_usage_error(error, "%s", bad->message);
    else if (o->rate && !o->bytes_per_sec)
        ctl_usage_error(error, "--rate=%s: give more than 0, or leave it out", o->rate);
    else
        return TRUE;
    return FALSE;
}

static json_t *make_request(Ctl *ctl, const WarmOptions *o, const char *argument, GError **error)
{
    g_autofree char *volume = NULL, *inside = NULL;
    if (!ctl_find_volume(ctl, argument, &volume, &inside, error))
        return NULL;
    g_autofree char *path = join_paths(inside, o->sub ? o->sub : "");
    json_t *request = json_pack("{s:s, s:s, s:s, s:I}", "op", "warm", "volume", volume, "path",
                                path, "rate", (json_int_t)o->bytes_per_sec);
    if (!request)
        ctl_usage_error(error, "warm: the volume and the path must be UTF-8");
    else if (o->check)
        json_object_set_new(request, "check", json_true());
    return request;
}

int ctl_warm(Ctl *ctl, int argc, char **argv)
{
    g_auto(WarmOptions) o = {0};
    g_autoptr(GError) error = NULL;
    g_autofree char *again = command_line(argc, argv);
    if (!parse(ctl, &o, &argc, &argv, &error))
        return ctl_fail(ctl, error);
    json_auto_t *request = make_request(ctl, &o, argv[1], &error);
    if (!request)
        return ctl_fail(ctl, error);
    hearth_autofd int list = o.from ? ctl_list_files(o.from, argv[1], &error) : -1;
    if (o.from && list < 0)
        return ctl_fail(ctl, error);
    json_auto_t *reply = ctl_call_with(ctl, g_steal_pointer(&request), list, &error);
    if (!reply)
        return ctl_fail(ctl, error);
    const Follow follow = {
        .ctl = ctl, .id = ctl_number(reply, "job"), .again = again, .as_json = o.as_json};
    if (!o.no_wait)
        return follow_job(&follow);
    if (o.as_json)
        printf("{\"job\": %" G_GUINT64_FORMAT "}\n", follow.id);
    else
        printf("%" G_GUINT64_FORMAT "\n", follow.id);
    return CTL_OK;
}
