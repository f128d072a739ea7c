/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/mount/selinux.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "driver/node/mount/mount_words.h"

#define OPTION "context"
/* fsconfig(2) takes no longer strings. */
#define CONTEXT_MAX 255
#define CATEGORIES 1024

gboolean selinux_is_enabled(void)
{
    g_autofree char *text = NULL;
    /* Registered only when SELinux runs, and seen in every container, as its files are not. */
    return g_file_get_contents("/proc/filesystems", &text, NULL, NULL) &&
           strstr(text, "\tselinuxfs\n");
}

gboolean selinux_is_option(const char *word)
{
    g_autofree char *value = mount_word_value(word, OPTION);
    return value != NULL;
}

/* user:role:type or user:role:type:level */
static gboolean is_context(const char *text)
{
    static const char others[] = "_-.:,";
    unsigned colons = 0;
    gsize n = 0; /* of the field */
    if (strlen(text) > CONTEXT_MAX)
        return FALSE;
    for (const char *c = text; *c; c++) {
        if (!g_ascii_isalnum(*c) && !strchr(others, *c))
            return FALSE;
        if (*c == ':' && n == 0)
            return FALSE;
        colons += *c == ':';
        n = *c == ':' ? 0 : n + 1;
    }
    return colons >= 2 && n > 0;
}

gboolean selinux_take_option(const char *word, char **context, GError **error)
{
    g_autofree char *value = mount_word_value(word, OPTION);
    if (!value || !is_context(value)) {
        g_autofree char *shown = mount_word_shown(word);
        return hearth_fail(
            error, HEARTH_ERROR_INVALID_ARGUMENT,
            "mount option %s: an SELinux context is user:role:type:level of at most %d "
            "letters, digits and _-.:, as system_u:object_r:container_file_t:s0:c1,c2",
            shown, CONTEXT_MAX);
    }
    if (*context && !selinux_same(*context, value))
        return hearth_fail(
            error, HEARTH_ERROR_INVALID_ARGUMENT,
            "mount options have two SELinux contexts, %s and %s: where kubelet gives one "
            "(seLinuxMount of the CSIDriver), take that of mountOptions out of the "
            "StorageClass or PersistentVolume",
            *context, value);
    if (!*context)
        *context = g_steal_pointer(&value);
    return TRUE;
}

const char *selinux_hint(gboolean labelled)
{
    return labelled ? "; a context with a comma stands in double quotes: "
                      "context=\"system_u:object_r:container_file_t:s0:c1,c2\""
                    : "";
}

char *selinux_shown(const char *context)
{
    return context ? g_strconcat(" with the SELinux context ", context,
                                 " (does the node's policy know it, and let spc_t relabel to it?)",
                                 NULL)
                   : g_strdup("");
}

/* ---- comparing ---- */

/* One end of a range of levels: a sensitivity, and which categories it has. */
typedef struct Level {
    unsigned long sensitivity;
    gboolean has[CATEGORIES];
} Level;

/* The letter and a number below `bound`. */
static gboolean read_number(const char **text, char letter, unsigned long bound,
                            unsigned long *number)
{
    char *rest;
    if (**text != letter || !g_ascii_isdigit((*text)[1]))
        return FALSE;
    errno = 0;
    *number = strtoul(*text + 1, &rest, 10);
    *text = rest;
    return errno == 0 && *number < bound;
}

/* c1,c5.c7 */
static gboolean read_categories(const char **text, Level *level)
{
    do {
        unsigned long first, last;
        (*text)++; /* the colon, or a comma */
        if (!read_number(text, 'c', CATEGORIES, &first))
            return FALSE;
        last = first;
        if (**text == '.') {
            (*text)++;
            if (!read_number(text, 'c', CATEGORIES, &last) || last < first)
                return FALSE;
        }
        for (unsigned long i = first; i <= last; i++)
            level->has[i] = TRUE;
    } while (**text == ',');
    return TRUE;
}

static gboolean read_level(const char **text, Level *level)
{
    return read_number(text, 's', G_MAXUINT, &level->sensitivity) &&
           (**text != ':' || read_categories(text, level));
}

/* s0:c1,c2 or s0-s0:c0.c1023; with one end only, it is both. */
static gboolean read_range(const char *text, Level range[2])
{
    if (!read_level(&text, &range[0]))
        return FALSE;
    if (*text == '-') {
        text++;
        if (!read_level(&text, &range[1]))
            return FALSE;
    } else {
        range[1] = range[0];
    }
    return *text == '\0';
}

static gboolean same_range(const char *a, const char *b)
{
    g_autofree Level *first = g_new0(Level, 2), *second = g_new0(Level, 2);
    if (!read_range(a, first) || !read_range(b, second))
        return strcmp(a, b) == 0;
    for (unsigned i = 0; i < 2; i++)
        if (first[i].sensitivity != second[i].sensitivity ||
            memcmp(first[i].has, second[i].has, sizeof(first[i].has)) != 0)
            return FALSE;
    return TRUE;
}

/* Behind the third colon; NULL: there is none. */
static const char *level_of(const char *context)
{
    const char *at = context;
    for (unsigned i = 0; i < 3 && at; i++) {
        at = strchr(at, ':');
        if (at)
            at++;
    }
    return at;
}

gboolean selinux_same(const char *a, const char *b)
{
    const char *first = level_of(a), *second = level_of(b);
    if (!first || !second)
        return strcmp(a, b) == 0;
    return first - a == second - b && strncmp(a, b, (gsize)(first - a)) == 0 &&
           same_range(first, second);
}
