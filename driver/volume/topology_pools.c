/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/volume/topology_pools.h"
#include <jansson.h>
#include <string.h>
#include "common/error.h"

#define NAME "topologyConstrainedPools"
#define refuse(error, ...) hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT, __VA_ARGS__)

static void pool_free(gpointer data)
{
    TopologyPool *pool = data;
    g_free(pool->pool);
    g_free(pool->data_pool);
    g_hash_table_unref(pool->segments);
    g_free(pool);
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text && *text ? text : NULL;
}

static gboolean parse_segments(const json_t *entry, gsize i, GHashTable *segments, GError **error)
{
    gsize k;
    json_t *segment;
    json_array_foreach (json_object_get(entry, "domainSegments"), k, segment) {
        const char *label = text_of(segment, "domainLabel"), *value = text_of(segment, "value");
        if (!label || !value)
            return refuse(error,
                          NAME ": domainSegments[%" G_GSIZE_FORMAT "] of entry %" G_GSIZE_FORMAT
                               " has no domainLabel or no value",
                          k, i);
        if (!g_hash_table_insert(segments, g_strdup(label), g_strdup(value)))
            return refuse(error, NAME ": entry %" G_GSIZE_FORMAT " has a domainLabel twice", i);
    }
    return g_hash_table_size(segments) > 0 ||
           refuse(error, NAME ": entry %" G_GSIZE_FORMAT " has no domainSegments", i);
}

static gboolean parse_entry(const json_t *entry, gsize i, GPtrArray *pools, GError **error)
{
    const char *name = text_of(entry, "poolName"), *data_pool = text_of(entry, "dataPool");
    if (!name || strpbrk(name, "/@"))
        return refuse(error,
                      NAME ": entry %" G_GSIZE_FORMAT " needs a poolName without '/' and '@'", i);
    TopologyPool *pool = g_new0(TopologyPool, 1);
    pool->pool = g_strdup(name);
    pool->data_pool = g_strdup(data_pool);
    pool->segments = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_ptr_array_add(pools, pool);
    return parse_segments(entry, i, pool->segments, error);
}

GPtrArray *topology_pools_parse(const char *text, GError **error)
{
    json_error_t at;
    gsize i;
    json_t *entry;
    json_auto_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &at);
    g_autoptr(GPtrArray) pools = g_ptr_array_new_with_free_func(pool_free);
    /* JSON of another kind: the place is its beginning. */
    if (root)
        at.line = at.column = 1;
    gboolean good =
        json_array_size(root) > 0 ||
        refuse(error, NAME " is no JSON array of pools (line %d, column %d)", at.line, at.column);
    json_array_foreach (root, i, entry) {
        good = good && parse_entry(entry, i, pools, error);
    }
    return good ? g_steal_pointer(&pools) : NULL;
}

gboolean topology_pool_fits(const TopologyPool *pool, GHashTable *domains)
{
    GHashTableIter iter;
    gpointer label, value;
    g_hash_table_iter_init(&iter, pool->segments);
    while (g_hash_table_iter_next(&iter, &label, &value)) {
        if (g_strcmp0(g_hash_table_lookup(domains, label), value) != 0)
            return FALSE;
    }
    return TRUE;
}
