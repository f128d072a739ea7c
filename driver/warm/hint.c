#include "driver/warm/hint.h"
#include <string.h>
#include "driver/volume/attributes.h"
#include "driver/volume/config.h"
#include "driver/volume/dataset_name.h"
#include "driver/warm/labels.h"
#include "driver/warm/node_cache.h"

const KubeResource hint_resource = {"csi.hearth.dev", "v1alpha1", "datasethints"};

static const char *string(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

void hint_clear(Hint *hint)
{
    g_clear_pointer(&hint->namespace, g_free);
    g_clear_pointer(&hint->claim, g_free);
    g_clear_pointer(&hint->claim_uid, g_free);
}

static GHashTable *table_of(const json_t *object)
{
    GHashTable *map = g_hash_table_new(g_str_hash, g_str_equal);
    const char *name;
    json_t *value;
    /* The cast is the macro's: it does not change the object. */
    json_object_foreach((json_t *)object, name, value)
    {
        if (json_is_string(value))
            g_hash_table_insert(map, (gpointer)name, (gpointer)json_string_value(value));
    }
    return map;
}

/* Where the volume's content is in its file system; the caller's. NULL: it does not tell. */
static char *root_of(GHashTable *context, const char *cluster_config)
{
    const char *path = attributes_root_path(context);
    const char *text = attributes_get(context, "dataset");
    const char *cluster_id = attributes_get(context, "clusterID");
    g_autoptr(DatasetName) name = path || !text ? NULL : dataset_name_parse(text, NULL);
    if (!name)
        return g_strdup(path);
    g_autoptr(ClusterConfig) cluster =
        cluster_config && cluster_id ? config_find(cluster_config, cluster_id, NULL) : NULL;
    return dataset_name_parent(name, cluster ? cluster->subvolume_group : CONFIG_DEFAULT_GROUP);
}

gboolean hint_of_volume(const json_t *volume, const char *driver_name, const char *cluster_config,
                        Hint *hint)
{
    const json_t *spec = json_object_get(volume, "spec"), *csi = json_object_get(spec, "csi");
    const json_t *claim = json_object_get(spec, "claimRef");
    *hint = (Hint){.namespace = NULL};
    /* One that was released still names the claim it had. */
    if (!g_str_equal(string(csi, "driver"), driver_name) ||
        !g_str_equal(string(json_object_get(volume, "status"), "phase"), "Bound") ||
        !*string(claim, "namespace") || !*string(claim, "name") || !*string(claim, "uid"))
        return FALSE;
    g_autoptr(GHashTable) context = table_of(json_object_get(csi, "volumeAttributes"));
    g_autofree char *root = root_of(context, cluster_config);
    g_autofree char *dataset =
        dataset_key(attributes_get(context, "clusterID"), attributes_get(context, "fsName"), root);
    if (!dataset)
        return FALSE;
    hint->namespace = g_strdup(string(claim, "namespace"));
    hint->claim = g_strdup(string(claim, "name"));
    hint->claim_uid = g_strdup(string(claim, "uid"));
    g_strlcpy(hint->dataset, dataset, sizeof(hint->dataset));
    return TRUE;
}

static const char *owner_uid(const json_t *metadata)
{
    const json_t *owner;
    size_t i;
    json_array_foreach(json_object_get(metadata, "ownerReferences"), i, owner)
    {
        if (g_str_equal(string(owner, "kind"), "PersistentVolumeClaim"))
            return string(owner, "uid");
    }
    return "";
}

gboolean hint_read(const json_t *object, Hint *hint)
{
    const json_t *metadata = json_object_get(object, "metadata");
    const json_t *spec = json_object_get(object, "spec");
    const char *dataset = string(spec, "dataset");
    g_autofree char *label = g_strconcat(WARM_LABEL_PREFIX, dataset, NULL);
    *hint = (Hint){.namespace = NULL};
    if (!*string(metadata, "name"))
        return FALSE;
    hint->namespace = g_strdup(string(metadata, "namespace"));
    hint->claim = g_strdup(string(metadata, "name"));
    hint->claim_uid = g_strdup(owner_uid(metadata));
    if (strlen(dataset) == DATASET_KEY_DIGITS && g_str_equal(string(spec, "label"), label))
        g_strlcpy(hint->dataset, dataset, sizeof(hint->dataset));
    return TRUE;
}

json_t *hint_object(const Hint *hint)
{
    g_autofree char *label = g_strconcat(WARM_LABEL_PREFIX, hint->dataset, NULL);
    return json_pack("{s:s, s:s, s:{s:s, s:s, s:{s:s}, s:[{s:s, s:s, s:s, s:s}]}, s:{s:s, s:s}}",
                     "apiVersion", WARM_API_VERSION, "kind", "DatasetHint", "metadata", "namespace",
                     hint->namespace, "name", hint->claim, "labels", "app.kubernetes.io/managed-by",
                     "hearth-controller", "ownerReferences", "apiVersion", "v1", "kind",
                     "PersistentVolumeClaim", "name", hint->claim, "uid", hint->claim_uid, "spec",
                     "dataset", hint->dataset, "label", label);
}
