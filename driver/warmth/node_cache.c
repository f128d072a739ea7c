/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmth/node_cache.h"
#include <string.h>
#include "driver/node/mount/publications.h"
#include "driver/warmth/mount_lost.h"
#include "common/field.h"
#include "driver/kube/time.h"
#include "common/quantity.h"

/* In the column for people: so many datasets, and so many bytes of a name. */
#define UID_MAX 64
#define SHOWN_MAX 3
#define SHOWN_NAME_MAX 64

/* ---- writing ---- */

/* 100 only when nothing is missing. */
static int percent(guint64 bytes, guint64 total)
{
    if (total == 0 || bytes >= total)
        return bytes >= total ? 100 : 0;
    return MIN((int)(100.0 * (double)bytes / (double)total), 99);
}

static json_t *describe(const json_t *dataset, const json_t *place)
{
    const char *root = field_text(place, "rootPath");
    g_autofree char *id =
        dataset_key(field_text(place, "clusterID"), field_text(place, "fsName"), root);
    const guint64 total = field_count(dataset, "bytesTotal");
    const guint64 bytes = MIN(field_count(dataset, "bytesCached"), total);
    if (!id)
        return NULL;
    g_autofree char *title = dataset_key_title(root);
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:i}", "id", id, "name", title, "clusterID",
                     field_text(place, "clusterID"), "fsName", field_text(place, "fsName"), "bytes",
                     (json_int_t)bytes, "totalBytes", (json_int_t)total, "percent",
                     percent(bytes, total));
}

static int by_bytes(gconstpointer a, gconstpointer b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    const guint64 p = field_count(x, "bytes"), q = field_count(y, "bytes");
    if (p == q)
        return strcmp(field_text(x, "id"), field_text(y, "id"));
    return p < q ? 1 : -1;
}

/* Datasets by their names in Kubernetes: each once, the largest first. */
static json_t *describe_all(const json_t *datasets)
{
    g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func((GDestroyNotify)json_decref);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    const json_t *dataset, *place;
    size_t i, k;
    json_array_foreach (datasets, i, dataset) {
        json_array_foreach (json_object_get(dataset, "places"), k, place) {
            json_auto_t *one = describe(dataset, place);
            const char *id = field_text(one, "id"); /* the list's member keeps it alive */
            if (!one || g_hash_table_contains(seen, id))
                continue;
            g_hash_table_add(seen, (gpointer)id);
            g_ptr_array_add(list, g_steal_pointer(&one));
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
    json_array_foreach (datasets, i, dataset)
        whole += field_count(dataset, "percent") == 100;
    return g_strdup_printf("%u/%zu", whole, json_array_size(datasets));
}

/* "imagenet@2026-11 100%, laion@v3 10%, 3 more": those with most bytes, which are first. */
static char *datasets_text(const json_t *datasets)
{
    const size_t n = json_array_size(datasets);
    g_autoptr(GString) text = g_string_new(NULL);
    for (size_t i = 0; i < MIN(n, SHOWN_MAX); i++) {
        const json_t *one = json_array_get(datasets, i);
        const char *name = field_text(one, "name");
        g_string_append_printf(text, "%s%.*s %" G_GUINT64_FORMAT "%%", i > 0 ? ", " : "",
                               SHOWN_NAME_MAX, *name ? name : field_text(one, "id"),
                               field_count(one, "percent"));
    }
    if (n > SHOWN_MAX)
        g_string_append_printf(text, ", %zu more", n - SHOWN_MAX);
    return g_utf8_make_valid(text->str, -1);
}

/* With texts for people, because kubectl shows numbers unformatted. */
static json_t *describe_cache(const json_t *cache)
{
    const guint64 bytes = field_count(cache, "bytes"), most = field_count(cache, "maxBytes"),
                  unused = field_count(cache, "freeBytes");
    g_autofree char *held = quantity_text(bytes), *limit = quantity_text(most),
                    *room = quantity_text(unused), *used = g_strconcat(held, "/", limit, NULL);
    return json_pack("{s:s, s:I, s:I, s:I, s:s, s:s}", "disk", field_text(cache, "disk"), "bytes",
                     (json_int_t)bytes, "maxBytes", (json_int_t)most, "freeBytes",
                     (json_int_t)unused, "used", used, "free", room);
}

static int by_handle(gconstpointer a, gconstpointer b)
{
    return strcmp(field_text(*(json_t *const *)a, "volumeHandle"),
                  field_text(*(json_t *const *)b, "volumeHandle"));
}

/* Sorted by handle, so that the same volumes make the same list. */
static json_t *describe_uncached(const json_t *volumes)
{
    g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func((GDestroyNotify)json_decref);
    const json_t *volume;
    size_t i;
    json_array_foreach (volumes, i, volume) {
        if (*field_text(volume, "uncached") && *field_text(volume, "volume"))
            g_ptr_array_add(list,
                            json_pack("{s:s, s:s}", "volumeHandle", field_text(volume, "volume"),
                                      "message", field_text(volume, "uncached")));
    }
    g_ptr_array_sort(list, by_handle);
    json_t *array = json_array();
    for (guint n = 0; n < MIN(list->len, NODE_CACHE_UNCACHED_MAX); n++)
        json_array_append(array, list->pdata[n]);
    return array;
}

json_t *node_cache_status(const json_t *status, const json_t *datasets, gint64 now_us)
{
    json_t *list = describe_all(datasets);
    g_autofree char *warm = summary(list);
    g_autofree char *now = kube_time_format(now_us), *shown = datasets_text(list);
    return json_pack("{s:s, s:s, s:o, s:s, s:s, s:o, s:o}", "heartbeatTime", now, "version",
                     field_text(json_object_get(status, "daemon"), "version"), "cache",
                     describe_cache(json_object_get(status, "cache")), "warm", warm, "shown", shown,
                     "datasets", list, "uncached",
                     describe_uncached(json_object_get(status, "uncached")));
}

void node_cache_place(json_t *status, const char *tier, const char *zone)
{
    json_object_set_new(status, "tier", json_string(tier));
    json_object_set_new(status, "zone", json_string(zone ? zone : ""));
}

static int by_text(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorted, and each pod once, so that the same pods make the same list. */
void node_cache_lost(json_t *status, const GPtrArray *publications)
{
    g_autoptr(GPtrArray) uids = g_ptr_array_new();
    for (guint i = 0; i < publications->len; i++) {
        char *uid = ((const Publication *)publications->pdata[i])->pod;
        if (strlen(uid) <= UID_MAX &&
            !g_ptr_array_find_with_equal_func(uids, uid, g_str_equal, NULL))
            g_ptr_array_add(uids, uid);
    }
    g_ptr_array_sort(uids, by_text);
    json_t *list = json_array();
    for (guint i = 0; i < MIN(uids->len, MOUNT_LOST_MAX); i++)
        json_array_append_new(list, json_pack("{s:s}", "podUID", uids->pdata[i]));
    json_object_set_new(status, "lost", list);
}

static int quarter(const json_t *dataset)
{
    return (int)field_count(dataset, "percent") / 25;
}

static gboolean is_run_as_before(const json_t *now, const json_t *before)
{
    const json_t *was;
    size_t i;
    json_array_foreach (before, i, was) {
        if (g_str_equal(field_text(was, "run"), field_text(now, "run")))
            return g_str_equal(field_text(was, "state"), field_text(now, "state")) &&
                   field_count(was, "percent") / 5 == field_count(now, "percent") / 5;
    }
    return FALSE;
}

static gboolean are_runs_as_before(const json_t *now, const json_t *before)
{
    const json_t *one;
    size_t i;
    json_array_foreach (now, i, one) {
        if (!is_run_as_before(one, before))
            return FALSE;
    }
    return json_array_size(now) == json_array_size(before);
}

/* Without a list it is not known. */
static gboolean are_lost_as_before(const json_t *before, const json_t *now)
{
    return (!before && !now) || json_equal(before, now);
}

gboolean node_cache_is_news(const json_t *before, const json_t *after)
{
    const json_t *old = json_object_get(before, "datasets"),
                 *new = json_object_get(after, "datasets");
    if (!before ||
        strcmp(field_text(json_object_get(before, "cache"), "disk"),
               field_text(json_object_get(after, "cache"), "disk")) != 0 ||
        json_array_size(old) != json_array_size(new) ||
        !json_equal(json_object_get(before, "uncached"), json_object_get(after, "uncached")) ||
        !are_lost_as_before(json_object_get(before, "lost"), json_object_get(after, "lost")) ||
        !are_runs_as_before(json_object_get(after, "warmups"), json_object_get(before, "warmups")))
        return TRUE;
    g_autoptr(GHashTable) quarters = g_hash_table_new(g_str_hash, g_str_equal);
    const json_t *dataset;
    gpointer was;
    size_t i;
    json_array_foreach (old, i, dataset)
        g_hash_table_insert(quarters, (gpointer)field_text(dataset, "id"),
                            GINT_TO_POINTER(quarter(dataset)));
    json_array_foreach (new, i, dataset)
        if (!g_hash_table_lookup_extended(quarters, field_text(dataset, "id"), NULL, &was) ||
            GPOINTER_TO_INT(was) != quarter(dataset))
            return TRUE;
    return FALSE;
}

/* ---- reading ---- */

static gboolean is_id(const char *text)
{
    return strlen(text) == DATASET_KEY_DIGITS &&
           strspn(text, "0123456789abcdef") == DATASET_KEY_DIGITS;
}

/* A label value as Kubernetes accepts it, else "". */
static void read_label(const json_t *status, const char *name, char value[64])
{
    const char *text = field_text(status, name);
    const gsize length = strlen(text);
    const gboolean good = length > 0 && length < 64 &&
                          strspn(text, "-_." G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS) == length &&
                          g_ascii_isalnum(text[0]) && g_ascii_isalnum(text[length - 1]);
    g_strlcpy(value, good ? text : "", 64);
}

gboolean node_cache_read(const json_t *object, NodeCacheReport *report)
{
    const char *name = field_text(json_object_get(object, "metadata"), "name");
    const json_t *status = json_object_get(object, "status"), *dataset, *volume;
    size_t i;
    *report = (NodeCacheReport){.node = NULL};
    if (!*name)
        return FALSE;
    report->node = g_strdup(name);
    report->datasets = g_array_new(FALSE, FALSE, sizeof(NodeCacheDataset));
    report->uncached = g_ptr_array_new_with_free_func(g_free);
    report->lost = g_ptr_array_new_with_free_func(g_free);
    if (!kube_time_parse(field_text(status, "heartbeatTime"), &report->heartbeat_us))
        report->heartbeat_us = 0;
    const json_t *cache = json_object_get(status, "cache");
    g_strlcpy(report->disk, field_text(cache, "disk"), sizeof(report->disk));
    read_label(status, "tier", report->tier);
    read_label(status, "zone", report->zone);
    report->bytes = field_count(cache, "bytes");
    report->max_bytes = field_count(cache, "maxBytes");
    report->free_bytes = field_count(cache, "freeBytes");
    json_array_foreach (json_object_get(status, "datasets"), i, dataset) {
        NodeCacheDataset d = {.bytes = field_count(dataset, "bytes"),
                              .total = field_count(dataset, "totalBytes")};
        if (!is_id(field_text(dataset, "id")) || i >= NODE_CACHE_DATASETS_MAX)
            continue;
        memcpy(d.id, field_text(dataset, "id"), sizeof(d.id));
        g_array_append_val(report->datasets, d);
    }
    json_array_foreach (json_object_get(status, "uncached"), i, volume) {
        if (*field_text(volume, "volumeHandle") && i < NODE_CACHE_UNCACHED_MAX)
            g_ptr_array_add(report->uncached, g_strdup(field_text(volume, "volumeHandle")));
    }
    json_array_foreach (json_object_get(status, "lost"), i, volume) {
        if (*field_text(volume, "podUID") && i < MOUNT_LOST_MAX)
            g_ptr_array_add(report->lost, g_strdup(field_text(volume, "podUID")));
    }
    return TRUE;
}

void node_cache_report_clear(NodeCacheReport *report)
{
    g_clear_pointer(&report->node, g_free);
    g_clear_pointer(&report->datasets, g_array_unref);
    g_clear_pointer(&report->uncached, g_ptr_array_unref);
    g_clear_pointer(&report->lost, g_ptr_array_unref);
}
