/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmup/orders.h"
#include "common/field.h"
#include "driver/kube/error.h"
#include "driver/warmth/node_cache.h"
#include "driver/warmup/order.h"
#include "driver/warmup/status.h"

#define WRITE_MS 15000

static gint by_age(gconstpointer a, gconstpointer b)
{
    const Warmup *x = (*(const WarmupObject *const *)a)->warmup,
                 *y = (*(const WarmupObject *const *)b)->warmup;
    if (x->created_s != y->created_s)
        return x->created_s < y->created_s ? -1 : 1;
    const int order = g_strcmp0(x->namespace, y->namespace);
    return order ? order : g_strcmp0(x->name, y->name);
}

GPtrArray *warmup_orders_turns(const GPtrArray *under_way)
{
    g_autoptr(GHashTable) had = g_hash_table_new(g_str_hash, g_str_equal); /* namespace -> turns */
    g_autoptr(GPtrArray) sorted = g_ptr_array_new(),
                         turns = g_ptr_array_new_with_free_func((GDestroyNotify)g_ptr_array_unref);
    GPtrArray *runs = g_ptr_array_new();
    g_ptr_array_extend(sorted, (GPtrArray *)under_way, NULL, NULL);
    g_ptr_array_sort(sorted, by_age);
    for (guint i = 0; i < sorted->len; i++) {
        char *namespace = ((WarmupObject *)sorted->pdata[i])->warmup->namespace;
        const guint turn = GPOINTER_TO_UINT(g_hash_table_lookup(had, namespace));
        g_hash_table_insert(had, namespace, GUINT_TO_POINTER(turn + 1));
        if (turn == turns->len)
            g_ptr_array_add(turns, g_ptr_array_new());
        g_ptr_array_add(turns->pdata[turn], sorted->pdata[i]);
    }
    for (guint turn = 0; turn < turns->len; turn++)
        g_ptr_array_extend(runs, turns->pdata[turn], NULL, NULL);
    return runs;
}

static gboolean has_room(const json_t *orders, const char *namespace)
{
    const json_t *order;
    guint n = 0;
    size_t i;
    json_array_foreach (orders, i, order)
        n += g_str_equal(field_text(order, "namespace"), namespace);
    return n < WARMUP_ORDERS_NAMESPACE_MAX && json_array_size(orders) < WARMUP_ORDERS_MAX;
}

/* Those that have a part on some node. */
static GPtrArray *with_parts(const GPtrArray *under_way)
{
    GPtrArray *runs = g_ptr_array_new();
    for (guint i = 0; i < under_way->len; i++) {
        const WarmupObject *run = under_way->pdata[i];
        g_autoptr(GPtrArray) parts = warmup_status_parts(run);
        if (parts->len > 0)
            g_ptr_array_add(runs, under_way->pdata[i]);
    }
    return runs;
}

/* Node -> orders. What one has no room for comes when another has ended. */
static GHashTable *wanted_of(const GPtrArray *under_way)
{
    GHashTable *wanted =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)json_decref);
    g_autoptr(GPtrArray) runs = with_parts(under_way), turns = warmup_orders_turns(runs);
    for (guint i = 0; i < turns->len; i++) {
        const WarmupObject *run = turns->pdata[i];
        g_autoptr(GPtrArray) parts = warmup_status_parts(run);
        json_auto_t *order = parts->len ? warmup_order_json(run->warmup, run->status) : NULL;
        for (guint k = 0; k < parts->len; k++) {
            json_t *orders = g_hash_table_lookup(wanted, parts->pdata[k]);
            if (!orders) {
                orders = json_array();
                g_hash_table_insert(wanted, g_strdup(parts->pdata[k]), orders);
            }
            if (has_room(orders, run->warmup->namespace))
                json_array_append(orders, order);
        }
    }
    return wanted;
}

static gboolean write_orders(KubeClient *client, const char *node, json_t *orders,
                             GCancellable *cancel, GError **error)
{
    g_autofree char *path = kube_path(&node_cache_resource, NULL, node, NULL);
    json_auto_t *none = orders ? NULL : json_array();
    json_auto_t *body = json_pack("{s:{s:O}}", "spec", "warmups", orders ? orders : none);
    g_autoptr(GError) cause = NULL;
    const gboolean good = kube_merge_patch(client, path, body, WRITE_MS, cancel, &cause) ||
                          g_error_matches(cause, KUBE_ERROR, KUBE_ERROR_NOT_FOUND);
    if (!good)
        g_propagate_prefixed_error(error, g_steal_pointer(&cause), "NodeCache %s: ", node);
    return good;
}

static gboolean settle(KubeClient *client, Warmth *warmth, const char *node, json_t *orders,
                       GCancellable *cancel, GError **error)
{
    g_auto(WarmthRuns) runs = {0};
    const gboolean there = warmth_runs(warmth, node, &runs);
    const gboolean right =
        orders ? runs.orders && json_equal(orders, runs.orders) : runs.orders == NULL;
    return !there || right || write_orders(client, node, orders, cancel, error);
}

gboolean warmup_orders_settle(KubeClient *client, Warmth *warmth, const GPtrArray *under_way,
                              const GPtrArray *ordered, GCancellable *cancel, GError **error)
{
    g_autoptr(GHashTable) wanted = wanted_of(under_way);
    g_autoptr(GError) cause = NULL;
    GHashTableIter iter;
    gpointer node, orders;
    g_hash_table_iter_init(&iter, wanted);
    while (g_hash_table_iter_next(&iter, &node, &orders)) {
        g_clear_error(&cause);
        settle(client, warmth, node, orders, cancel, &cause);
    }
    for (guint i = 0; i < ordered->len; i++)
        if (!g_hash_table_contains(wanted, ordered->pdata[i])) {
            g_clear_error(&cause);
            settle(client, warmth, ordered->pdata[i], NULL, cancel, &cause);
        }
    if (!cause)
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&cause));
    return FALSE;
}
