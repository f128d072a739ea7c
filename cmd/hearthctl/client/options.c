/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of a subcommand: GLib parses them; the help, and what an unknown option could mean,
 * are made here.
 */
#include "cmd/hearthctl/client/client.h"
#include "cmd/hearthctl/client/output.h"
#include "cmd/hearthctl/client/text.h"
#include "common/suggest.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTION_WIDTH 26

/* Those for other programs alone are not shown. */
static gboolean is_shown(const GOptionEntry *e)
{
    return !(e->flags & G_OPTION_FLAG_HIDDEN);
}

static void print_option(const GOptionEntry *e)
{
    if (!is_shown(e))
        return;
    g_autoptr(GString) text = g_string_new("  ");
    if (e->short_name)
        g_string_append_printf(text, "-%c, ", e->short_name);
    g_string_append_printf(text, "--%s", e->long_name);
    if (e->arg_description)
        g_string_append_printf(text, "=%s", e->arg_description);
    printf("%-*s  %s\n", OPTION_WIDTH, text->str, e->description);
}

static void print_help(const char *as, const char *name, const GOptionEntry *entries,
                       const GOptionEntry *common, const CtlHelp *help)
{
    const char *usage = help->usage ? help->usage : "";
    g_autofree char *notes = help->notes ? text_typed(help->notes, as) : NULL;
    printf("Usage: %s %s [OPTIONS]%s%s\n\n%s\n\nOptions:\n", as ? as : "hearthctl", name,
           usage[0] ? " " : "", usage, help->about);
    for (const GOptionEntry *e = entries; e && e->long_name; e++)
        print_option(e);
    for (const GOptionEntry *e = common; e->long_name; e++)
        print_option(e);
    if (notes)
        printf("\n%s", notes);
}

static void add_names(GPtrArray *names, const GOptionEntry *entries)
{
    for (const GOptionEntry *e = entries; e && e->long_name; e++)
        if (is_shown(e))
            g_ptr_array_add(names, g_strconcat("--", e->long_name, NULL));
}

/* The word of the command line that GLib's message ends with, without "=VALUE". */
static char *unknown_option(const GError *why)
{
    const char *begin = strrchr(why->message, ' ');
    begin = begin ? begin + 1 : why->message;
    return g_strndup(begin, strcspn(begin, "="));
}

/* The same error, with the help's place and what was perhaps meant. */
static void improve(GError **error, const char *name, const GOptionEntry *entries,
                    const GOptionEntry *common)
{
    g_autoptr(GError) why = *error;
    *error = NULL;
    if (!g_error_matches(why, G_OPTION_ERROR, G_OPTION_ERROR_UNKNOWN_OPTION)) {
        ctl_usage_error(error, "%s: %s; see hearthctl %s --help", name, why->message, name);
        return;
    }
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *word = unknown_option(why);
    add_names(names, entries);
    add_names(names, common);
    g_ptr_array_add(names, NULL);
    const char *meant = suggest(word, (const char *const *)names->pdata);
    if (meant)
        ctl_usage_error(error, "%s: unknown option %s; did you mean %s? See hearthctl %s --help",
                        name, word, meant, name);
    else
        ctl_usage_error(error, "%s: unknown option %s; see hearthctl %s --help", name, word, name);
}

gboolean ctl_parse(Ctl *ctl, int *argc, char ***argv, const GOptionEntry *entries,
                   const CtlHelp *help, GError **error)
{
    g_autofree char *socket_path = NULL;
    gboolean wanted = FALSE;
    const GOptionEntry common[] = {
        {"no-color", 0, 0, G_OPTION_ARG_NONE, &ctl->no_colour,
         "Print without colours, as with NO_COLOR", NULL},
        {"socket", 's', 0, G_OPTION_ARG_FILENAME, &socket_path, "Control socket of hearthd",
         "PATH"},
        {"as", 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_STRING, &ctl->as, NULL, NULL},
        {"help", 'h', 0, G_OPTION_ARG_NONE, &wanted, "Print this", NULL},
        G_OPTION_ENTRY_NULL};
    const char *name = (*argv)[0];
    g_autoptr(GError) why = NULL;
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_option_context_set_help_enabled(context, FALSE);
    if (entries)
        g_option_context_add_main_entries(context, entries, NULL);
    g_option_context_add_main_entries(context, common, NULL);
    const gboolean parsed = g_option_context_parse(context, argc, argv, &why);
    if (parsed && wanted) {
        print_help(ctl->as, name, entries, common, help);
        exit(output_end(CTL_OK));
    }
    if (!parsed) {
        /* GLib takes back all values. */
        for (int i = 1; i + 1 < *argc && !ctl->as; i++)
            if (strcmp((*argv)[i], "--as") == 0)
                ctl->as = g_strdup((*argv)[i + 1]);
        improve(&why, name, entries, common);
        g_propagate_error(error, g_steal_pointer(&why));
        return FALSE;
    }
    if (socket_path) {
        g_free(ctl->socket_path);
        ctl->socket_path = g_steal_pointer(&socket_path);
    }
    return TRUE;
}
