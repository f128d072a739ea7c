/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hearthctl: asks a node's hearthd over its control socket. Each subcommand is a function in the
 * table below; the protocol is in proto/wire.h.
 */
#include "cmd/hearthctl/command.h"
#include "cmd/hearthctl/mounts.h"
#include "proto/wire.h"
#include <errno.h>
#include <gio/gio.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <string.h>

typedef struct Command {
    const char *name;
    int (*run)(Ctl *ctl, int argc, char **argv);
    const char *help;
} Command;

static const Command commands[] = {
    {"status", ctl_status, "Show the cache of this node and the volumes it serves"},
    {"datasets", ctl_datasets, "Show how much of each dataset this node has"},
    {"top", ctl_top, "Show what the volumes of this node do now"},
    {"warm", ctl_warm, "Bring a volume, or a part of it, into the cache"},
    {"job", ctl_job, "Show a warm job that was started with --no-wait, or cancel it"},
    {"evict", ctl_evict, "Drop what is cached of a volume, or of all"},
    {"pin", ctl_pin, "Keep what is cached of a volume from being evicted"},
    {"verify", ctl_verify, "Compare what is cached with the checksums taken when it was fetched"},
    {"doctor", ctl_doctor, "Find what is wrong with this node, and how to mend it"},
    {"bench", ctl_bench, "Measure how fast a path is read, cold and warm"},
    {"version", ctl_version, "Show the versions of hearthctl and hearthd"},
};

static void print_help(void)
{
    printf("Usage: hearthctl [--socket PATH] COMMAND [ARGUMENTS]\n\n"
           "Shows and steers the Hearth cache of this node.\n\n"
           "Commands:\n");
    for (size_t i = 0; i < G_N_ELEMENTS(commands); i++)
        printf("  %-9s %s\n", commands[i].name, commands[i].help);
    printf(
        "\n'hearthctl COMMAND --help' tells more of each.\n\n"
        "The control socket of hearthd is --socket, else $HEARTH_SOCKET, else\n" WIRE_DEFAULT_SOCKET
        ". Only root may use it.\n\n"
        "Exit code: 0 done, 1 failed, 2 wrong usage.\n");
}

int ctl_fail(const GError *error)
{
    fprintf(stderr, "hearthctl: %s\n", error->message);
    return error->domain == G_OPTION_ERROR ? CTL_USAGE : CTL_FAILED;
}

void ctl_usage_error(GError **error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (error)
        *error = g_error_new_valist(G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, format, args);
    va_end(args);
}

gboolean ctl_parse(Ctl *ctl, int *argc, char ***argv, const GOptionEntry *entries,
                   const char *usage, const char *about, const char *examples, GError **error)
{
    g_autofree char *socket_path = NULL;
    const GOptionEntry common[] = {{"socket", 's', 0, G_OPTION_ARG_FILENAME, &socket_path,
                                    "Control socket of hearthd", "PATH"},
                                   G_OPTION_ENTRY_NULL};
    g_autofree char *program = g_strdup_printf("hearthctl %s", (*argv)[0]);
    g_set_prgname(program);
    g_autoptr(GOptionContext) context = g_option_context_new(usage);
    g_option_context_set_summary(context, about);
    g_option_context_set_description(context, examples);
    if (entries)
        g_option_context_add_main_entries(context, entries, NULL);
    g_option_context_add_main_entries(context, common, NULL);
    if (!g_option_context_parse(context, argc, argv, error))
        return FALSE;
    if (socket_path) {
        g_free(ctl->socket_path);
        ctl->socket_path = g_steal_pointer(&socket_path);
    }
    return TRUE;
}

static gboolean connect_once(Ctl *ctl, GError **error)
{
    if (ctl->socket >= 0)
        return TRUE;
    g_autoptr(GError) why = NULL;
    ctl->socket = wire_connect(ctl->socket_path, &why);
    if (ctl->socket >= 0)
        return TRUE;
    const char *mend = g_error_matches(why, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED)
                           ? "run hearthctl as root"
                           : "is hearthd running on this node? Another socket is named by "
                             "--socket or HEARTH_SOCKET";
    g_set_error(error, why->domain, why->code, "%s; %s", why->message, mend);
    return FALSE;
}

json_t *ctl_call(Ctl *ctl, json_t *request, GError **error)
{
    return ctl_call_with(ctl, request, -1, error);
}

json_t *ctl_call_with(Ctl *ctl, json_t *request, int fd, GError **error)
{
    json_t *reply = NULL;
    if (connect_once(ctl, error))
        reply = wire_call(ctl->socket, request, fd, NULL, ctl->timeout_ms ? ctl->timeout_ms : -1,
                          error);
    json_decref(request);
    if (!reply && ctl->socket >= 0 && error &&
        g_error_matches(*error, G_IO_ERROR, G_IO_ERROR_CLOSED))
        g_prefix_error(error, "hearthd has stopped or restarted: ");
    return reply;
}

void ctl_disconnect(Ctl *ctl)
{
    if (ctl->socket >= 0)
        close(ctl->socket);
    ctl->socket = -1;
}

json_t *ctl_pages(Ctl *ctl, const char *op, const char *id, GError **error)
{
    json_t *all = json_array();
    g_autofree char *after = g_strdup("");
    for (gboolean more = TRUE; more;) {
        json_t *page = ctl_call(ctl, json_pack("{s:s, s:s}", "op", op, "after", after), error);
        if (!page) {
            json_decref(all);
            return NULL;
        }
        json_t *list = json_object_get(page, op);
        const size_t n = json_array_size(list);
        more = n && json_is_true(json_object_get(page, "more"));
        json_array_extend(all, list);
        g_free(after);
        after = g_strdup(n ? ctl_string(json_array_get(list, n - 1), id) : "");
        json_decref(page);
    }
    return all;
}

static gboolean is_path(const char *argument)
{
    return argument[0] == '/' || g_str_has_prefix(argument, "./") ||
           g_str_has_prefix(argument, "../") || strcmp(argument, ".") == 0 ||
           strcmp(argument, "..") == 0;
}

gboolean ctl_find_volume(const char *argument, char **volume, char **inside, GError **error)
{
    char path[PATH_MAX];
    g_autofree char *mountinfo = NULL;
    if (!g_file_get_contents("/proc/self/mountinfo", &mountinfo, NULL, error))
        return FALSE;
    if (!is_path(argument)) {
        *volume = mounts_served_volume(mountinfo, argument);
        *inside = g_strdup("");
        return TRUE;
    }
    if (!realpath(argument, path)) {
        g_set_error(error, G_IO_ERROR, g_io_error_from_errno(errno), "%s: %s", argument,
                    g_strerror(errno));
        return FALSE;
    }
    if (mounts_find_volume(mountinfo, path, volume, inside, error))
        return TRUE;
    g_prefix_error(error, "cannot tell the volume: ");
    return FALSE;
}

int ctl_version(Ctl *ctl, int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    if (!ctl_parse(ctl, &argc, &argv, NULL, "", "Shows the versions of hearthctl and hearthd.",
                   NULL, &error))
        return ctl_fail(error);
    printf("hearthctl %s\n", HEARTH_VERSION);
    json_t *hello = ctl_call(ctl, json_pack("{s:s}", "op", "hello"), &error);
    if (!hello)
        return ctl_fail(error);
    printf("hearthd   %s (pid %" G_GUINT64_FORMAT ")\n", ctl_string(hello, "version"),
           ctl_number(hello, "pid"));
    json_decref(hello);
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
    ctl->socket_path = socket_path               ? g_steal_pointer(&socket_path)
                       : variable && variable[0] ? g_strdup(variable)
                                                 : g_strdup(WIRE_DEFAULT_SOCKET);
    return TRUE;
}

int main(int argc, char **argv)
{
    Ctl ctl = {.socket = -1};
    gboolean help = FALSE, version = FALSE;
    g_autoptr(GError) error = NULL;
    if (!parse_leading(&ctl, &argc, &argv, &help, &version, &error)) {
        g_printerr("hearthctl: %s; see hearthctl --help\n", error->message);
        return CTL_USAGE;
    }
    int code = CTL_OK;
    const Command *command = argc > 1 ? find_command(argv[1]) : NULL;
    if (help || (argc > 1 && strcmp(argv[1], "help") == 0)) {
        print_help();
    } else if (version) {
        printf("hearthctl %s\n", HEARTH_VERSION);
    } else if (command) {
        code = command->run(&ctl, argc - 1, argv + 1);
    } else {
        if (argc > 1)
            g_printerr("hearthctl: unknown command '%s'; see hearthctl --help\n", argv[1]);
        else
            g_printerr("hearthctl: name a command; see hearthctl --help\n");
        code = CTL_USAGE;
    }
    ctl_disconnect(&ctl);
    g_free(ctl.socket_path);
    return code;
}
