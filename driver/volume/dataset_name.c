/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/volume/dataset_name.h"
#include <string.h>

void dataset_name_free(DatasetName *name)
{
    if (!name)
        return;
    g_free(name->group);
    g_free(name->subvolume);
    g_free(name->snapshot);
    g_free(name);
}

/* One component of a path. */
static gboolean is_component(const char *text)
{
    return *text && strcmp(text, ".") != 0 && strcmp(text, "..") != 0 && !strchr(text, '/') &&
           strlen(text) <= 255;
}

DatasetName *dataset_name_parse(const char *text, GError **error)
{
    g_autoptr(DatasetName) name = g_new0(DatasetName, 1);
    const char *slash = strchr(text, '/');
    const char *subvolume = slash ? slash + 1 : text;
    const char *at = strrchr(subvolume, '@');
    if (at) {
        name->group = slash ? g_strndup(text, (gsize)(slash - text)) : NULL;
        name->subvolume = g_strndup(subvolume, (gsize)(at - subvolume));
        name->snapshot = g_strdup(at + 1);
    }
    if (at && (!name->group || is_component(name->group)) && is_component(name->subvolume) &&
        is_component(name->snapshot))
        return g_steal_pointer(&name);
    g_autofree char *valid = g_utf8_make_valid(text, (gssize)strnlen(text, 200));
    hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                "dataset=\"%s\" names no snapshot: write SUBVOLUME@SNAPSHOT, or "
                "GROUP/SUBVOLUME@SNAPSHOT for another subvolume group",
                valid);
    return NULL;
}

char *dataset_name_text(const DatasetName *name)
{
    if (!name->group)
        return g_strdup_printf("%s@%s", name->subvolume, name->snapshot);
    return g_strdup_printf("%s/%s@%s", name->group, name->subvolume, name->snapshot);
}

char *dataset_name_parent(const DatasetName *name, const char *default_group)
{
    return g_strdup_printf("/volumes/%s/%s/.snap/%s", name->group ? name->group : default_group,
                           name->subvolume, name->snapshot);
}
