#include "driver/warm/node_cache.h"
#include <string.h>
#include "driver/kube/time.h"

const KubeResource node_cache_resource = {"csi.hearth.dev", "v1alpha1", "nodecaches"};

static guint64 number(const json_t *object, const char *name)
{
    return (guint64)MAX(json_integer_value(json_object_get(object, name)), 0);
}

static const char *string(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

/* ---- writing ---- */

/* Of a hundred, and a hundred only when nothing is missing. */
static int percent(guint64 bytes, guint64 total)
{
    if (total == 0 || bytes >= total)
        return bytes >= total ? 100 : 0;
    return MIN((int)(100.0 * (double)bytes / (double)total), 99);
}

static json_t *describe(const json_t *dataset, const json_t *place)
{
    const char *root = string(place, "rootPath");
    g_autofree char *id = dataset_key(string(place, "clusterID"), string(place, "fsName"), root);
    const guint64 total = number(dataset, "bytesTotal");
    const guint64 bytes = MIN(number(dataset, "bytesCached"), total);
    if (!id)
        return NULL;
    g_autofree char *title = dataset_key_title(root);
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:i}", "id", id, "name", title, "clusterID",
                     string(place, "clusterID"), "fsName", string(place, "fsName"), "bytes",
                     (json_int_t)bytes, "totalBytes", (json_int_t)total, "percent",
                     percent(bytes, total));
}

static int by_bytes(gconstpointer a, gconstpointer b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    const guint64 p = number(x, "bytes"), q = number(y, "bytes");
    return p != q ? (p < q ? 1 : -1) : strcmp(string(x, "id"), string(y, "id"));
}

/* By the names that Kubernetes has for them: each once, the largest first. */
static json_t *describe_all(const json_t *datasets)
{
    g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func((GDestroyNotify)json_decref);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    const json_t *dataset, *place;
    size_t i, k;
    json_array_foreach(datasets, i, dataset)
    {
        json_array_foreach(json_object_get(dataset, "places"), k, place)
        {
            json_t *one = describe(dataset, place);
            if (one && g_hash_table_add(seen, (gpointer)string(one, "id")))
                g_ptr_array_add(list, one);
            else
                json_decref(one);
        }
    }
    g_ptr_array_sort(list, by_bytes);
    json_t *array = json_array();
    for (guint n = 0; n < MIN(list->len, NODE_CACHE_DATASETS_MAX); n++)
        json_array_append(array, list->pdata[n]);
    return array;
}

static char *summary(const json_t *datasets)
{
    guint whole = 0;
    const json_t *dataset;
    size_t i;
    json_array_foreach(datasets, i, dataset) whole += number(dataset, "percent") == 100;
    return g_strdup_printf("%u/%zu", whole, json_array_size(datasets));
}

json_t *node_cache_status(const json_t *status, const json_t *datasets, gint64 now_us)
{
    const json_t *cache = json_object_get(status, "cache");
    json_t *list = describe_all(datasets);
    g_autofree char *warm = summary(list);
    g_autofree char *now = kube_time_format(now_us);
    return json_pack("{s:s, s:s, s:{s:s, s:I, s:I, s:I}, s:s, s:o}", "heartbeatTime", now,
                     "version", string(json_object_get(status, "daemon"), "version"), "cache",
                     "disk", string(cache, "disk"), "bytes", (json_int_t)number(cache, "bytes"),
                     "maxBytes", (json_int_t)number(cache, "maxBytes"), "freeBytes",
                     (json_int_t)number(cache, "freeBytes"), "warm", warm, "datasets", list);
}

static int quarter(const json_t *dataset)
{
    return (int)number(dataset, "percent") / 25;
}

gboolean node_cache_is_news(const json_t *before, const json_t *after)
{
    const json_t *old = json_object_get(before, "datasets"),
                 *new = json_object_get(after, "datasets");
    if (!before ||
        strcmp(string(json_object_get(before, "cache"), "disk"),
               string(json_object_get(after, "cache"), "disk")) != 0 ||
        json_array_size(old) != json_array_size(new))
        return TRUE;
    g_autoptr(GHashTable) quarters = g_hash_table_new(g_str_hash, g_str_equal);
    const json_t *dataset;
    gpointer was;
    size_t i;
    json_array_foreach(old, i, dataset) g_hash_table_insert(
        quarters, (gpointer)string(dataset, "id"), GINT_TO_POINTER(quarter(dataset)));
    json_array_foreach(new, i, dataset) if (!g_hash_table_lookup_extended(
                                                quarters, string(dataset, "id"), NULL, &was) ||
                                            GPOINTER_TO_INT(was) != quarter(dataset)) return TRUE;
    return FALSE;
}

/* ---- reading ---- */

static gboolean is_id(const char *text)
{
    return strlen(text) == DATASET_KEY_DIGITS &&
           strspn(text, "0123456789abcdef") == DATASET_KEY_DIGITS;
}

gboolean node_cache_read(const json_t *object, NodeCacheReport *report)
{
    const char *name = string(json_object_get(object, "metadata"), "name");
    const json_t *status = json_object_get(object, "status"), *dataset;
    size_t i;
    *report = (NodeCacheReport){.node = NULL};
    if (!*name)
        return FALSE;
    report->node = g_strdup(name);
    report->datasets = g_array_new(FALSE, FALSE, sizeof(NodeCacheDataset));
    if (!kube_time_parse(string(status, "heartbeatTime"), &report->heartbeat_us))
        report->heartbeat_us = 0;
    json_array_foreach(json_object_get(status, "datasets"), i, dataset)
    {
        NodeCacheDataset d = {.bytes = number(dataset, "bytes"),
                              .total = number(dataset, "totalBytes")};
        if (!is_id(string(dataset, "id")) || i >= NODE_CACHE_DATASETS_MAX)
            continue;
        memcpy(d.id, string(dataset, "id"), sizeof(d.id));
        g_array_append_val(report->datasets, d);
    }
    return TRUE;
}

void node_cache_report_clear(NodeCacheReport *report)
{
    g_clear_pointer(&report->node, g_free);
    g_clear_pointer(&report->datasets, g_array_unref);
}
