/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmth/dataset_origin.h"
#include "common/field.h"
#include "driver/volume/attributes.h"
#include "driver/cluster/config.h"
#include "driver/volume/dataset_name.h"

void dataset_origin_clear(DatasetOrigin *origin)
{
    g_clear_pointer(&origin->cluster_id, g_free);
    g_clear_pointer(&origin->fs_name, g_free);
    g_clear_pointer(&origin->root_path, g_free);
}

static GHashTable *table_of(const json_t *object)
{
    GHashTable *map = g_hash_table_new(g_str_hash, g_str_equal);
    const char *name;
    json_t *value;
    /* The cast is the macro's: it does not change the object. */
    json_object_foreach ((json_t *)object, name, value) {
        if (json_is_string(value))
            g_hash_table_insert(map, (gpointer)name, (gpointer)json_string_value(value));
    }
    return map;
}

/* The caller's; NULL: there is none. The mgr chooses the last component of a dataset's path. */
static char *root_of(const VolumeAttributes *a, const char *cluster_config)
{
    g_autoptr(DatasetName) name =
        a->root_path || !a->dataset ? NULL : dataset_name_parse(a->dataset, NULL);
    if (!name)
        return g_strdup(a->root_path);
    g_autoptr(ClusterConfig) cluster =
        cluster_config && a->cluster_id ? config_find(cluster_config, a->cluster_id, NULL) : NULL;
    g_autofree char *parent =
        dataset_name_parent(name, cluster ? cluster->subvolume_group : CONFIG_DEFAULT_GROUP);
    return g_strconcat(parent, "/*", NULL);
}

static gboolean fill(DatasetOrigin *origin, const char *cluster_id, const char *fs_name,
                     const char *root_path)
{
    g_autofree char *id = cluster_id ? dataset_key(cluster_id, fs_name, root_path) : NULL;
    *origin = (DatasetOrigin){.cluster_id = NULL};
    if (!id)
        return FALSE;
    g_strlcpy(origin->id, id, sizeof(origin->id));
    origin->cluster_id = g_strdup(cluster_id);
    origin->fs_name = g_strdup(fs_name ? fs_name : "");
    origin->root_path = g_strdup(root_path);
    return TRUE;
}

gboolean dataset_origin_of(const json_t *context, const char *cluster_config, DatasetOrigin *origin)
{
    g_autoptr(GHashTable) map = table_of(context);
    VolumeAttributes attributes;
    attributes_take("", map, &attributes);
    g_autofree char *root = root_of(&attributes, cluster_config);
    return fill(origin, attributes.cluster_id, attributes.fs_name, root);
}

json_t *dataset_origin_json(const DatasetOrigin *origin)
{
    return json_pack("{s:s, s:s, s:s}", "clusterID", origin->cluster_id, "fsName", origin->fs_name,
                     "rootPath", origin->root_path);
}

gboolean dataset_origin_read(const json_t *object, DatasetOrigin *origin)
{
    return fill(origin, field_text(object, "clusterID"), field_text(object, "fsName"),
                field_text(object, "rootPath"));
}

gboolean dataset_origin_is(const DatasetOrigin *origin, const char *text)
{
    g_autofree char *title = dataset_key_title(origin->root_path);
    return g_str_equal(origin->id, text) || dataset_title_matches(title, text);
}
