/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/service/node/context.h"
#include <string.h>
#include "driver/volume/attributes.h"

static void add(ContextPair *pairs, gsize *n, const char *name, const char *value)
{
    if (!value || !*value)
        return;
    pairs[*n] = (ContextPair){.name = name, .value = g_strdup(value)};
    (*n)++;
}

gsize context_of(const VolumeId *id, const VolumeRecord *record, const BackendVolume *volume,
                 ContextPair *pairs)
{
    gsize n = 0;
    json_int_t quota = json_integer_value(json_object_get(record->params, "cacheQuota"));
    g_autofree char *quota_text =
        quota > 0 ? g_strdup_printf("%" JSON_INTEGER_FORMAT, quota) : NULL;
    json_int_t timeout = json_integer_value(json_object_get(record->params, "readTimeout"));
    g_autofree char *timeout_text =
        timeout > 0 ? g_strdup_printf("%" JSON_INTEGER_FORMAT "s", timeout) : NULL;
    add(pairs, &n, "type", volume_type_name(id->type));
    add(pairs, &n, "clusterID", id->cluster_id);
    add(pairs, &n, "fsName", id->fs_name);
    add(pairs, &n, "rootPath", id->type == VOLUME_RBD ? NULL : volume->path);
    add(pairs, &n, "backingSnapshot", record->backing ? "true" : NULL);
    add(pairs, &n, "pool", id->pool);
    add(pairs, &n, "radosNamespace", id->rados_namespace);
    add(pairs, &n, "imageName", id->type == VOLUME_RBD ? id->name : NULL);
    add(pairs, &n, "mkfsOptions",
        json_string_value(json_object_get(record->params, "mkfsOptions")));
    add(pairs, &n, "cache", json_string_value(json_object_get(record->params, "cache")));
    add(pairs, &n, "cacheQuota", quota_text);
    add(pairs, &n, "readTimeout", timeout_text);
    add(pairs, &n, "warm", json_string_value(json_object_get(record->params, "warm")));
    add(pairs, &n, ATTRIBUTE_PV_NAME, record->pv);
    add(pairs, &n, ATTRIBUTE_PVC_NAME, record->pvc);
    add(pairs, &n, ATTRIBUTE_PVC_NAMESPACE, record->namespace);
    return n;
}

void context_clear(ContextPair *pairs, gsize n)
{
    for (gsize i = 0; i < n; i++)
        g_free(pairs[i].value);
}

const char *context_difference(const ContextPair *pairs, gsize n, GHashTable *given)
{
    for (gsize i = 0; i < n; i++) {
        const char *value = g_hash_table_lookup(given, pairs[i].name);
        if (value && strcmp(value, pairs[i].value) != 0)
            return pairs[i].name;
    }
    return NULL;
}
