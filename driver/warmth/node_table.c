/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmth/node_table.h"
#include <string.h>
#include "driver/volume/topology.h"
#include "driver/warmth/labels.h"

typedef struct Node {
    char *name;
    WarmLabels *labels;
    GArray *datasets; /* NodeCacheDataset, by id */
    gint64 heartbeat_us, alive_ms;
    char disk[16];
    guint64 bytes, free;        /* of its cache; free: what can be fetched without an eviction */
    json_t *orders, *reports;   /* of CacheWarmups; NULL: none */
    gboolean exists, has_cache; /* the Node; its NodeCache */
} Node;

/* A dataset that some nodes have reported. */
typedef struct Total {
    guint64 bytes; /* the most that any of them reported */
    guint nodes;
} Total;

struct NodeTable {
    GHashTable *nodes;  /* value of TOPOLOGY_NODE -> Node */
    GHashTable *totals; /* dataset -> Total */
};

static void node_free(void *data)
{
    Node *n = data;
    warm_labels_free(n->labels);
    g_array_unref(n->datasets);
    g_clear_pointer(&n->orders, json_decref);
    g_clear_pointer(&n->reports, json_decref);
    g_free(n->name);
    g_free(n);
}

static Node *node_of(NodeTable *t, const char *name, gint64 now_ms)
{
    g_autofree char *value = topology_node_value(name);
    Node *n = g_hash_table_lookup(t->nodes, value);
    if (n)
        return n;
    n = g_new0(Node, 1);
    n->name = g_strdup(name);
    n->labels = warm_labels_new(now_ms);
    n->datasets = g_array_new(FALSE, FALSE, sizeof(NodeCacheDataset));
    g_hash_table_insert(t->nodes, g_steal_pointer(&value), n);
    return n;
}

static void drop_if_gone(NodeTable *t, const Node *n)
{
    g_autofree char *value = topology_node_value(n->name);
    if (!n->exists && !n->has_cache)
        g_hash_table_remove(t->nodes, value);
}

static gint by_id(gconstpointer a, gconstpointer b)
{
    return strcmp(((const NodeCacheDataset *)a)->id, ((const NodeCacheDataset *)b)->id);
}

static void count_in(NodeTable *t, const GArray *datasets)
{
    for (guint i = 0; i < datasets->len; i++) {
        const NodeCacheDataset *d = &g_array_index(datasets, NodeCacheDataset, i);
        Total *total = g_hash_table_lookup(t->totals, d->id);
        if (!total) {
            total = g_new0(Total, 1);
            g_hash_table_insert(t->totals, g_strdup(d->id), total);
        }
        total->bytes = MAX(total->bytes, d->total);
        total->nodes++;
    }
}

static void count_out(NodeTable *t, const GArray *datasets)
{
    for (guint i = 0; i < datasets->len; i++) {
        const NodeCacheDataset *d = &g_array_index(datasets, NodeCacheDataset, i);
        Total *total = g_hash_table_lookup(t->totals, d->id);
        if (--total->nodes == 0)
            g_hash_table_remove(t->totals, d->id);
    }
}

/* Counts in first, so that a dataset in both lists keeps its size. */
static void replace_datasets(NodeTable *t, Node *n, GArray *datasets)
{
    count_in(t, datasets);
    count_out(t, n->datasets);
    g_array_unref(n->datasets);
    n->datasets = datasets;
}

/* How far a node's clock may be off without costing it its labels. */
#define SKEW_MS (10 * 60000)

/* A changed heartbeat shows that the node is alive, whatever its clock says. So does a heartbeat
 * that is seen for the first time, as after a change of controllers, unless it is too old to be
 * explained by a wrong clock: a node that died meanwhile keeps its labels for WARM_STALE_MS more.
 */
static gint64 alive_ms(const Node *n, const NodeCacheReport *r, gint64 now_ms)
{
    if (r->heartbeat_us == n->heartbeat_us)
        return n->alive_ms;
    const gint64 age_ms = n->heartbeat_us ? 0 : (g_get_real_time() - r->heartbeat_us) / 1000;
    return age_ms > SKEW_MS ? now_ms - age_ms : now_ms;
}

static void keep(json_t **place, const json_t *object, const char *part)
{
    json_t *list = json_object_get(json_object_get(object, part), "warmups");
    g_clear_pointer(place, json_decref);
    if (json_array_size(list))
        *place = json_incref(list);
}

/* Not before its Node was seen: the step of a dataset starts from the Node's label. */
static void label(Node *n, gint64 now_ms)
{
    if (!n->exists || !n->heartbeat_us)
        return;
    g_autofree WarmDataset *list = g_new0(WarmDataset, n->datasets->len);
    for (guint i = 0; i < n->datasets->len; i++) {
        const NodeCacheDataset *d = &g_array_index(n->datasets, NodeCacheDataset, i);
        list[i] = (WarmDataset){d->id, d->bytes, d->total};
    }
    warm_labels_report(n->labels, list, n->datasets->len, n->alive_ms, now_ms);
}

void node_table_report(NodeTable *t, const json_t *object, NodeCacheReport *r, gint64 now_ms)
{
    Node *n = node_of(t, r->node, now_ms);
    n->has_cache = TRUE;
    keep(&n->orders, object, "spec");
    keep(&n->reports, object, "status");
    if (!r->heartbeat_us)
        return;
    n->alive_ms = alive_ms(n, r, now_ms);
    n->heartbeat_us = r->heartbeat_us;
    memcpy(n->disk, r->disk, sizeof(n->disk));
    if (*r->tier)
        warm_labels_place(n->labels, r->tier, *r->zone ? r->zone : NULL);
    n->bytes = r->bytes;
    n->free = MIN(r->max_bytes - MIN(r->bytes, r->max_bytes), r->free_bytes);
    g_array_sort(r->datasets, by_id);
    replace_datasets(t, n, g_steal_pointer(&r->datasets));
    label(n, now_ms);
}

void node_table_no_report(NodeTable *t, const char *node, gint64 now_ms)
{
    Node *n = node_of(t, node, now_ms);
    n->has_cache = FALSE;
    n->heartbeat_us = 0;
    replace_datasets(t, n, g_array_new(FALSE, FALSE, sizeof(NodeCacheDataset)));
    keep(&n->orders, NULL, "spec");
    keep(&n->reports, NULL, "status");
    warm_labels_gone(n->labels);
    drop_if_gone(t, n);
}

void node_table_node(NodeTable *t, const char *node, const json_t *labels, gint64 now_ms)
{
    Node *n = node_of(t, node, now_ms);
    const gboolean is_new = !n->exists;
    n->exists = TRUE;
    warm_labels_have(n->labels, labels);
    if (is_new)
        label(n, now_ms);
}

void node_table_no_node(NodeTable *t, const char *node, gint64 now_ms)
{
    Node *n = node_of(t, node, now_ms);
    n->exists = FALSE;
    drop_if_gone(t, n);
}

/* ---- questions ---- */

static gint64 age(const Node *n, gint64 now_ms)
{
    return n && n->heartbeat_us ? MAX(now_ms - n->alive_ms, 0) : -1;
}

static guint64 bytes_of(const Node *n, const char *dataset)
{
    NodeCacheDataset key = {.bytes = 0};
    guint at;
    g_strlcpy(key.id, dataset, sizeof(key.id));
    return g_array_binary_search(n->datasets, &key, by_id, &at)
               ? g_array_index(n->datasets, NodeCacheDataset, at).bytes
               : 0;
}

gboolean node_table_of(const NodeTable *t, const char *dataset, const char *node, WarmthOf *of,
                       gint64 now_ms)
{
    const Total *total = g_hash_table_lookup(t->totals, dataset);
    const Node *n = node ? g_hash_table_lookup(t->nodes, node) : NULL;
    *of = (WarmthOf){.total = total ? total->bytes : 0};
    if (n && now_ms - n->alive_ms <= WARM_STALE_MS)
        of->bytes = MIN(bytes_of(n, dataset), of->total);
    return of->total > 0;
}

/* The one that has this name; NULL: none. */
static const Node *named(const NodeTable *t, const char *name)
{
    g_autofree char *value = topology_node_value(name);
    return g_hash_table_lookup(t->nodes, value);
}

/* The same text as a literal: the node's own may be freed. */
static const char *disk_literal(const char *disk)
{
    static const char *const known[] = {"ok", "suspect", "bypass", "off"};
    for (gsize i = 0; i < G_N_ELEMENTS(known); i++)
        if (strcmp(disk, known[i]) == 0)
            return known[i];
    return "";
}

void node_table_cache(const NodeTable *t, const char *dataset, const char *node, WarmthCache *c,
                      gint64 now_ms)
{
    const Node *n = named(t, node);
    c->age_ms = age(n, now_ms);
    c->disk = n ? disk_literal(n->disk) : "";
    c->bytes = n ? bytes_of(n, dataset) : 0;
    c->room = n ? n->free + n->bytes - MIN(c->bytes, n->bytes) : 0;
}

gboolean node_table_runs(const NodeTable *t, const char *node, WarmthRuns *runs, gint64 now_ms)
{
    const Node *n = named(t, node);
    *runs = (WarmthRuns){.age_ms = age(n, now_ms)};
    if (!n)
        return FALSE;
    runs->orders = json_deep_copy(n->orders);
    runs->reports = json_deep_copy(n->reports);
    return n->has_cache;
}

GPtrArray *node_table_ordered(const NodeTable *t)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, t->nodes);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const Node *n = value;
        if (n->orders)
            g_ptr_array_add(names, g_strdup(n->name));
    }
    return names;
}

/* ---- writes ---- */

static void write_free(void *data)
{
    NodeWrite *write = data;
    g_clear_pointer(&write->patch, json_decref);
    g_free(write->node);
    g_free(write);
}

GPtrArray *node_table_due(NodeTable *t, guint most, gboolean all, gint64 now_ms)
{
    GPtrArray *due = g_ptr_array_new_with_free_func(write_free);
    GHashTableIter iter;
    gpointer node;
    g_hash_table_iter_init(&iter, t->nodes);
    while (due->len < most && g_hash_table_iter_next(&iter, NULL, &node)) {
        Node *n = node;
        const gboolean orphan =
            all && !n->exists && n->has_cache && now_ms - n->alive_ms > WARM_STALE_MS;
        json_t *patch = n->exists ? warm_labels_patch(n->labels, now_ms) : NULL;
        if (!patch && !orphan)
            continue;
        NodeWrite *write = g_new(NodeWrite, 1);
        *write = (NodeWrite){g_strdup(n->name), patch};
        g_ptr_array_add(due, write);
        if (orphan)
            n->alive_ms = now_ms; /* another try later */
    }
    return due;
}

void node_table_written(NodeTable *t, const char *node, const json_t *labels)
{
    const Node *n = named(t, node);
    if (n)
        warm_labels_have(n->labels, labels);
}

/* ---- beginning and end ---- */

NodeTable *node_table_new(void)
{
    NodeTable *t = g_new0(NodeTable, 1);
    t->nodes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, node_free);
    t->totals = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return t;
}

void node_table_free(NodeTable *t)
{
    g_hash_table_unref(t->nodes);
    g_hash_table_unref(t->totals);
    g_free(t);
}
