/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/volume/incarnation.h"
#include <stdio.h>
#include <string.h>

/* "<uuid> <number of the run> running|ended" */
#define FORMAT "%s %" G_GUINT64_FORMAT " %s\n"

struct Incarnation {
    char *path;
    char *uuid;
    guint64 number;
    gboolean predecessor_died;
};

static void save_state(const Incarnation *i, const char *state)
{
    g_autofree char *text = g_strdup_printf(FORMAT, i->uuid, i->number, state);
    g_autoptr(GError) error = NULL;
    if (!g_file_set_contents_full(i->path, text, -1, G_FILE_SET_CONTENTS_CONSISTENT, 0600, &error))
        g_warning("%s; after a crash, Ceph's sessions will have to time out", error->message);
}

static gboolean load_state(Incarnation *i)
{
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    if (!g_file_get_contents(i->path, &text, NULL, &error)) {
        if (!g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_NOENT))
            g_warning("%s; what an earlier run left at Ceph has to time out", error->message);
        return FALSE;
    }
    g_auto(GStrv) words = g_strsplit_set(g_strchomp(text), " ", -1);
    if (g_strv_length(words) != 3 || !g_uuid_string_is_valid(words[0]) ||
        !g_ascii_string_to_unsigned(words[1], 10, 1, G_MAXUINT64 - 1, &i->number, NULL)) {
        g_warning("%s is damaged; what an earlier run left at Ceph has to time out", i->path);
        return FALSE;
    }
    i->uuid = g_strdup(words[0]);
    i->predecessor_died = strcmp(words[2], "running") == 0;
    return TRUE;
}

Incarnation *incarnation_begin(const char *path)
{
    Incarnation *i = g_new0(Incarnation, 1);
    i->path = g_strdup(path);
    if (!load_state(i)) {
        i->number = 0;
        i->uuid = g_uuid_string_random();
    }
    i->number++;
    save_state(i, "running");
    return i;
}

void incarnation_end(Incarnation *i, gboolean closed)
{
    if (!i)
        return;
    if (closed)
        save_state(i, "ended");
    g_free(i->path);
    g_free(i->uuid);
    g_free(i);
}

static char *client_name(const Incarnation *i, guint64 number, const char *volume)
{
    return g_strdup_printf("hearth-%s-%" G_GUINT64_FORMAT "-%s", i->uuid, number, volume);
}

char *incarnation_client(const Incarnation *i, const char *volume)
{
    return client_name(i, i->number, volume);
}

char *incarnation_dead_client(const Incarnation *i, const char *volume)
{
    return i->predecessor_died ? client_name(i, i->number - 1, volume) : NULL;
}
