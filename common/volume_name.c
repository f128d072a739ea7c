/* SPDX-License-Identifier: Apache-2.0 */
#include "common/volume_name.h"
#include <string.h>
#include "common/dataset_key.h"

#define OBJECT_MAX 253
#define NAMESPACE_MAX 63
#define TITLE_MAX 255

static gboolean is_object(const char *text, gsize length, gsize max)
{
    if (length == 0 || length > max || !g_ascii_isalnum(text[0]) ||
        !g_ascii_isalnum(text[length - 1]))
        return FALSE;
    for (gsize i = 0; i < length; i++)
        if (!g_ascii_islower(text[i]) && !g_ascii_isdigit(text[i]) && text[i] != '-' &&
            text[i] != '.')
            return FALSE;
    return TRUE;
}

gboolean volume_name_is_object(const char *text)
{
    return is_object(text, strlen(text), OBJECT_MAX);
}

gboolean volume_name_is_claim(const char *text)
{
    const char *slash = strchr(text, '/');
    return slash && is_object(text, (gsize)(slash - text), NAMESPACE_MAX) &&
           volume_name_is_object(slash + 1);
}

static gboolean is_title(const char *text)
{
    if (strlen(text) > TITLE_MAX || !g_utf8_validate(text, -1, NULL))
        return FALSE;
    for (const char *p = text; *p; p = g_utf8_next_char(p))
        if (!g_unichar_isgraph(g_utf8_get_char(p)))
            return FALSE;
    return TRUE;
}

char *volume_name(const VolumeNames *names)
{
    if (*names->claim)
        return g_strdup(names->claim);
    g_autofree char *title = dataset_key_title(names->root_path);
    if (strcmp(title, names->root_path) != 0 && is_title(title))
        return g_steal_pointer(&title);
    if (*names->pv)
        return g_strdup(names->pv);
    char *label = dataset_key(names->cluster_id, names->fs_name, names->root_path);
    return label ? label : g_strdup(names->id);
}
