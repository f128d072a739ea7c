/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/affinity/hint.h"
#include <string.h>
#include "common/field.h"
#include "driver/warmth/dataset_origin.h"
#include "driver/warmth/labels.h"
#include "driver/warmth/node_cache.h"

void hint_clear(Hint *hint)
{
    g_clear_pointer(&hint->namespace, g_free);
    g_clear_pointer(&hint->claim, g_free);
    g_clear_pointer(&hint->claim_uid, g_free);
    g_clear_pointer(&hint->title, g_free);
}

gboolean hint_of_volume(const json_t *volume, const char *driver_name, const char *cluster_config,
                        Hint *hint)
{
    const json_t *spec = json_object_get(volume, "spec"), *csi = json_object_get(spec, "csi");
    const json_t *claim = json_object_get(spec, "claimRef");
    *hint = (Hint){.namespace = NULL};
    /* A released volume still names the claim it had. */
    if (!g_str_equal(field_text(csi, "driver"), driver_name) ||
        !g_str_equal(field_text(json_object_get(volume, "status"), "phase"), "Bound") ||
        !*field_text(claim, "namespace") || !*field_text(claim, "name") ||
        !*field_text(claim, "uid"))
        return FALSE;
    g_auto(DatasetOrigin) origin = {.cluster_id = NULL};
    if (!dataset_origin_of(json_object_get(csi, "volumeAttributes"), cluster_config, &origin))
        return FALSE;
    hint->namespace = g_strdup(field_text(claim, "namespace"));
    hint->claim = g_strdup(field_text(claim, "name"));
    hint->claim_uid = g_strdup(field_text(claim, "uid"));
    g_strlcpy(hint->dataset, origin.id, sizeof(hint->dataset));
    hint->title = dataset_key_title(origin.root_path);
    return TRUE;
}

static const char *owner_uid(const json_t *metadata)
{
    const json_t *owner;
    size_t i;
    json_array_foreach (json_object_get(metadata, "ownerReferences"), i, owner) {
        if (g_str_equal(field_text(owner, "kind"), "PersistentVolumeClaim"))
            return field_text(owner, "uid");
    }
    return "";
}

gboolean hint_read(const json_t *object, Hint *hint)
{
    const json_t *metadata = json_object_get(object, "metadata");
    const json_t *spec = json_object_get(object, "spec");
    const char *dataset = field_text(spec, "dataset");
    g_autofree char *label = g_strconcat(WARM_LABEL_PREFIX, dataset, NULL);
    *hint = (Hint){.namespace = NULL};
    if (!*field_text(metadata, "name"))
        return FALSE;
    hint->namespace = g_strdup(field_text(metadata, "namespace"));
    hint->claim = g_strdup(field_text(metadata, "name"));
    hint->claim_uid = g_strdup(owner_uid(metadata));
    if (strlen(dataset) == DATASET_KEY_DIGITS && g_str_equal(field_text(spec, "label"), label))
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
