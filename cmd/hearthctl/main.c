/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hearthctl: asks a node's hearthd over its control socket. Each subcommand is a function in the
 * table below; the protocol is in proto/wire.h.
 */
#include "cmd/hearthctl/client/commands.h"
#include "cmd/hearthctl/client/output.h"
#include "common/suggest.h"
#include "cmd/hearthctl/report/lines.h"
#include "cmd/hearthctl/view/view.h"
#include "proto/wire.h"
#include <gio/gio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Command {
    const char *name;
    int (*run)(Ctl *ctl, int argc, char **argv);
    const char *help;
} Command;

static const Command commands[] = {
    {"status", ctl_status, "Show the cache of this node and the volumes it serves"},
    {"datasets", ctl_datasets, "Show how much of each dataset is in the cache"},
    {"top", ctl_top, "Show the current reads and writes of each volume"},
    {"warm", ctl_warm, "Fetch a volume, or a part of it, into the cache"},
    {"jobs", ctl_jobs_command, "List the warm jobs of this node"},
    {"job", ctl_job, "Show, follow or cancel one of them"},
    {"evict", ctl_evict, "Drop the cached data of a volume, or of all volumes"},
    {"pin", ctl_pin, "Protect the cached data of a volume from eviction"},
    {"unpin", ctl_unpin, "End that"},
    {"verify", ctl_verify, "Compare cached data with the checksums taken when it was fetched"},
    {"why", ctl_why, "Say why a job waits for storage"},
    {"doctor", ctl_doctor, "Diagnose this node and suggest fixes"},
    {"bench", ctl_bench, "Measure how fast a path is read, cold and warm"},
    {"version", ctl_version, "Show the versions of hearthctl and hearthd"},
};

static void print_help(void)
{
    printf("Usage: hearthctl [OPTIONS] COMMAND [ARGUMENTS]\n\n"
           "Shows and controls the Hearth cache of this node.\n\n"
           "Commands:\n");
    for (size_t i = 0; i < G_N_ELEMENTS(commands); i++)
        printf("  %-9s %s\n", commands[i].name, commands[i].help);
    printf(
        "\nOptions:\n"
        "  -s, --socket=PATH  Control socket of hearthd\n"
        "  -h, --help         Print this\n"
        "  --version          Print the version of hearthctl\n"
        "\n'hearthctl COMMAND --help' and 'hearthctl help COMMAND' describe each command.\n\n"
        "The control socket of hearthd is --socket, else $HEARTH_SOCKET, else\n" WIRE_DEFAULT_SOCKET
        ". Only root may use it.\n\n"
        "Exit code: 0 done, 1 failed, 2 wrong usage.\n");
}

int ctl_version(Ctl *ctl, int argc, char **argv)
{
    static const CtlHelp help = {.usage = "",
                                 .about = "Shows the versions of hearthctl and hearthd."};
    gboolean as_json = FALSE;
    g_autoptr(GError) error = NULL;
    const GOptionEntry entries[] = {
        {"json", 'j', 0, G_OPTION_ARG_NONE, &as_json, "Print one JSON object", NULL},
        G_OPTION_ENTRY_NULL};
    if (!ctl_parse(ctl, &argc, &argv, entries, &help, &error))
        return ctl_fail(ctl, error);
    if (argc > 1) {
        ctl_usage_error(&error, "version: unexpected argument '%s'; see hearthctl version --help",
                        argv[1]);
        return ctl_fail(ctl, error);
    }
    json_auto_t *hello = ctl_call(ctl, json_pack("{s:s}", "op", "hello"), &error);
    if (!hello) {
        if (!as_json)
            printf("hearthctl %s\n", HEARTH_VERSION);
        return ctl_fail(ctl, error);
    }
    json_auto_t *json =
        json_pack("{s:s, s:s, s:I}", "hearthctl", HEARTH_VERSION, "hearthd",
                  ctl_string(hello, "version"), "pid", (json_int_t)ctl_number(hello, "pid"));
    const View view = view_stdout(ctl, FALSE);
    if (as_json)
        lines_print_json(json);
    else
        lines_print(view_version(json, &view));
    return CTL_OK;
}

static const Command *find_command(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(commands); i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

/* Options before the subcommand: only --socket, --help and --version. */
static gboolean parse_leading(Ctl *ctl, int *argc, char ***argv, gboolean *help, gboolean *version,
                              GError **error)
{
    g_autofree char *socket_path = NULL;
    const GOptionEntry entries[] = {
        {"socket", 's', 0, G_OPTION_ARG_FILENAME, &socket_path, NULL, NULL},
        {"help", 'h', 0, G_OPTION_ARG_NONE, help, NULL, NULL},
        {"version", 0, 0, G_OPTION_ARG_NONE, version, NULL, NULL},
        G_OPTION_ENTRY_NULL};
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_option_context_set_help_enabled(context, FALSE);
    g_option_context_set_strict_posix(context, TRUE);
    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, argc, argv, error))
        return FALSE;
    const char *variable = g_getenv("HEARTH_SOCKET");
    const char *path = variable && variable[0] ? variable : WIRE_DEFAULT_SOCKET;
    ctl->socket_path = g_strdup(socket_path ? socket_path : path);
    return TRUE;
}

static int unknown_command(const char *name)
{
    const char *names[G_N_ELEMENTS(commands) + 1] = {NULL};
    for (size_t i = 0; i < G_N_ELEMENTS(commands); i++)
        names[i] = commands[i].name;
    const char *meant = suggest(name, names);
    if (meant)
        g_printerr("hearthctl: unknown command '%s'; did you mean %s? See hearthctl --help\n", name,
                   meant);
    else
        g_printerr("hearthctl: unknown command '%s'; see hearthctl --help\n", name);
    return CTL_USAGE;
}

static int run_command(Ctl *ctl, int argc, char **argv)
{
    const Command *command = find_command(argv[0]);
    if (!command && strcmp(argv[0], "help") == 0) {
        print_help();
        return CTL_OK;
    }
    return command ? command->run(ctl, argc, argv) : unknown_command(argv[0]);
}

/* "help", or "help COMMAND". */
static int run_help(Ctl *ctl, int argc, char **argv)
{
    if (argc < 2) {
        print_help();
        return CTL_OK;
    }
    char *asked[] = {argv[1], (char *)"--help", NULL};
    return run_command(ctl, 2, asked);
}

static int run(Ctl *ctl, int argc, char **argv, gboolean help, gboolean version)
{
    if (help) {
        print_help();
        return CTL_OK;
    }
    if (version) {
        printf("hearthctl %s\n", HEARTH_VERSION);
        return CTL_OK;
    }
    if (argc < 2) {
        g_printerr("hearthctl: name a command; see hearthctl --help\n");
        return CTL_USAGE;
    }
    if (strcmp(argv[1], "help") == 0)
        return run_help(ctl, argc - 1, argv + 1);
    return run_command(ctl, argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    Ctl ctl = {.socket = -1};
    gboolean help = FALSE, version = FALSE;
    g_autoptr(GError) error = NULL;
    output_begin();
    if (!parse_leading(&ctl, &argc, &argv, &help, &version, &error)) {
        g_printerr("hearthctl: %s; see hearthctl --help\n", error->message);
        return CTL_USAGE;
    }
    const int code = run(&ctl, argc, argv, help, version);
    ctl_disconnect(&ctl);
    g_free(ctl.socket_path);
    g_free(ctl.as);
    return output_end(code);
}
