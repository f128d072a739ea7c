/* SPDX-License-Identifier: Apache-2.0 */
#include "common/dataset_key.h"
#include <string.h>

/* Its parts, if it is the snapshot of a whole subvolume. */
static char **subvolume_parts(const char *root_path)
{
    /* "", volumes, GROUP, SUBVOLUME, .snap, NAME and perhaps UUID */
    g_auto(GStrv) parts = g_strsplit(root_path, "/", -1);
    const guint n = g_strv_length(parts);
    if ((n != 6 && n != 7) || *parts[0] || strcmp(parts[1], "volumes") != 0 ||
        strcmp(parts[4], ".snap") != 0 || !*parts[2] || !*parts[3] || !*parts[5])
        return NULL;
    return g_steal_pointer(&parts);
}

/* The caller's; NULL: it is of no snapshot. */
static char *location_of(const char *root_path)
{
    g_auto(GStrv) parts = subvolume_parts(root_path);
    const char *snap = strstr(root_path, "/.snap/");
    if (parts)
        return g_strdup_printf("/volumes/%s/%s/.snap/%s", parts[2], parts[3], parts[5]);
    return snap && snap[strlen("/.snap/")] ? g_strdup(root_path) : NULL;
}

char *dataset_key(const char *cluster_id, const char *fs_name, const char *root_path)
{
    g_autofree char *location = root_path ? location_of(root_path) : NULL;
    if (!location)
        return NULL;
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    const char *const parts[] = {cluster_id, fs_name, location};
    for (gsize i = 0; i < G_N_ELEMENTS(parts); i++) {
        const char *part = parts[i] ? parts[i] : "";
        /* With the NUL, so that no two triples make one text. */
        g_checksum_update(sum, (const guchar *)part, (gssize)strlen(part) + 1);
    }
    return g_strndup(g_checksum_get_string(sum), DATASET_KEY_DIGITS);
}

char *dataset_key_title(const char *root_path)
{
    g_auto(GStrv) parts = subvolume_parts(root_path);
    if (!parts)
        return g_strdup(root_path);
    if (strcmp(parts[2], DATASET_DEFAULT_GROUP) == 0)
        return g_strdup_printf("%s@%s", parts[3], parts[5]);
    return g_strdup_printf("%s/%s@%s", parts[2], parts[3], parts[5]);
}

gboolean dataset_title_is(const char *text)
{
    const char *slash = strchr(text, '/'), *subvolume = slash ? slash + 1 : text;
    const char *at = strchr(subvolume, '@');
    return slash != text && at && at != subvolume && at[1] && !strchr(subvolume, '/') &&
           !strchr(at + 1, '@');
}

gboolean dataset_title_matches(const char *title, const char *text)
{
    const char *slash = strchr(title, '/');
    if (!dataset_title_is(title))
        return FALSE;
    if (strcmp(title, text) == 0 || (slash && strcmp(slash + 1, text) == 0))
        return TRUE;
    return !slash && g_str_has_prefix(text, DATASET_DEFAULT_GROUP "/") &&
           strcmp(text + strlen(DATASET_DEFAULT_GROUP "/"), title) == 0;
}
