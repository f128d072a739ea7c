#include "driver/warm/warmth.h"
#include <pthread.h>
#include <string.h>
#include "driver/kube/error.h"
#include "driver/kube/watch.h"
#include "driver/volume/topology.h"
#include "driver/warm/labels.h"
#include "driver/warm/node_cache.h"

#define ROUND_MS 1000
#define WRITE_MS 10000
/* Of patches taken at a time, so that who asks what is warm never waits for long. */
#define BATCH 64

typedef struct Node {
    char *name;
    WarmLabels *labels;
    GArray *datasets; /* NodeCacheDataset, by id */
    gint64 heartbeat_us, alive_ms;
    char disk[16];
    guint64 bytes, free;        /* of its cache; what may be fetched before something is evicted */
    json_t *orders, *reports;   /* of CacheWarmups; NULL: none */
    gboolean exists, has_cache; /* the Node; its NodeCache */
} Node;

/* Of a dataset that some nodes have reported. */
typedef struct Total {
    guint64 bytes; /* the most that any of them said */
    guint nodes;
} Total;

struct Warmth {
    KubeClient *client;
    gboolean (*may_act)(void *data);
    void *data;
    KubeWatch *caches, *machines;
    GCancellable *stop;
    pthread_t thread;
    pthread_mutex_t lock;
    GHashTable *nodes;      /* lock: value of TOPOLOGY_NODE -> Node */
    GHashTable *totals;     /* lock: dataset -> Total */
    gboolean nodes_synced;  /* lock */
    gboolean caches_synced; /* lock */
    gboolean troubled;      /* of the thread */
};

static const KubeResource node_resource = {"", "v1", "nodes"};

static gint64 now_ms(void)
{
    return g_get_monotonic_time() / 1000;
}

static void node_free(void *data)
{
    Node *n = data;
    warm_labels_free(n->labels);
    g_array_unref(n->datasets);
    json_decref(n->orders);
    json_decref(n->reports);
    g_free(n->name);
    g_free(n);
}

/* ---- what is seen ---- */

static Node *node_locked(Warmth *w, const char *name)
{
    g_autofree char *value = topology_node_value(name);
    Node *n = g_hash_table_lookup(w->nodes, value);
    if (n)
        return n;
    n = g_new0(Node, 1);
    n->name = g_strdup(name);
    n->labels = warm_labels_new(now_ms());
    n->datasets = g_array_new(FALSE, FALSE, sizeof(NodeCacheDataset));
    g_hash_table_insert(w->nodes, g_steal_pointer(&value), n);
    return n;
}

static void drop_if_gone_locked(Warmth *w, const Node *n)
{
    g_autofree char *value = topology_node_value(n->name);
    if (!n->exists && !n->has_cache)
        g_hash_table_remove(w->nodes, value);
}

static gint by_id(gconstpointer a, gconstpointer b)
{
    return strcmp(((const NodeCacheDataset *)a)->id, ((const NodeCacheDataset *)b)->id);
}

static void count_in_locked(Warmth *w, const GArray *datasets)
{
    for (guint i = 0; i < datasets->len; i++) {
        const NodeCacheDataset *d = &g_array_index(datasets, NodeCacheDataset, i);
        Total *total = g_hash_table_lookup(w->totals, d->id);
        if (!total) {
            total = g_new0(Total, 1);
            g_hash_table_insert(w->totals, g_strdup(d->id), total);
        }
        total->bytes = MAX(total->bytes, d->total);
        total->nodes++;
    }
}

static void count_out_locked(Warmth *w, const GArray *datasets)
{
    for (guint i = 0; i < datasets->len; i++) {
        const NodeCacheDataset *d = &g_array_index(datasets, NodeCacheDataset, i);
        Total *total = g_hash_table_lookup(w->totals, d->id);
        if (--total->nodes == 0)
            g_hash_table_remove(w->totals, d->id);
    }
}

/* In this order, for what both have keeps its size. */
static void replace_datasets_locked(Warmth *w, Node *n, GArray *datasets)
{
    count_in_locked(w, datasets);
    count_out_locked(w, n->datasets);
    g_array_unref(n->datasets);
    n->datasets = datasets;
}

/* A heartbeat that changed is a sign of life, whatever the node's clock says; of one that is seen
 * for the first time that has to do. */
static gint64 alive_ms(const Node *n, const NodeCacheReport *r)
{
    if (r->heartbeat_us == n->heartbeat_us)
        return n->alive_ms;
    const gint64 age_ms = n->heartbeat_us ? 0 : (g_get_real_time() - r->heartbeat_us) / 1000;
    return now_ms() - MAX(age_ms, 0);
}

static void take_report_locked(Warmth *w, NodeCacheReport *r)
{
    Node *n = node_locked(w, r->node);
    n->has_cache = TRUE;
    if (!r->heartbeat_us)
        return;
    n->alive_ms = alive_ms(n, r);
    n->heartbeat_us = r->heartbeat_us;
    memcpy(n->disk, r->disk, sizeof(n->disk));
    n->bytes = r->bytes;
    n->free = MIN(r->max_bytes - MIN(r->bytes, r->max_bytes), r->free_bytes);
    g_array_sort(r->datasets, by_id);
    replace_datasets_locked(w, n, g_steal_pointer(&r->datasets));
    g_autofree WarmDataset *list = g_new0(WarmDataset, n->datasets->len);
    for (guint i = 0; i < n->datasets->len; i++) {
        const NodeCacheDataset *d = &g_array_index(n->datasets, NodeCacheDataset, i);
        list[i] = (WarmDataset){d->id, d->bytes, d->total};
    }
    warm_labels_report(n->labels, list, n->datasets->len, n->alive_ms, now_ms());
}

static void keep(json_t **place, const json_t *object, const char *part)
{
    json_t *list = json_object_get(json_object_get(object, part), "warmups");
    json_decref(*place);
    *place = json_array_size(list) ? json_incref(list) : NULL;
}

static void on_cache(KubeChange change, const json_t *object, void *data)
{
    Warmth *w = data;
    g_auto(NodeCacheReport) report = {0};
    if (!node_cache_read(object, &report))
        return;
    pthread_mutex_lock(&w->lock);
    if (change == KUBE_DELETED) {
        Node *n = node_locked(w, report.node);
        n->has_cache = FALSE;
        n->heartbeat_us = 0;
        replace_datasets_locked(w, n, g_array_new(FALSE, FALSE, sizeof(NodeCacheDataset)));
        keep(&n->orders, NULL, "spec");
        keep(&n->reports, NULL, "status");
        warm_labels_gone(n->labels);
        drop_if_gone_locked(w, n);
    } else {
        Node *n = node_locked(w, report.node);
        keep(&n->orders, object, "spec");
        keep(&n->reports, object, "status");
        take_report_locked(w, &report);
    }
    pthread_mutex_unlock(&w->lock);
}

static void on_machine(KubeChange change, const json_t *object, void *data)
{
    Warmth *w = data;
    const json_t *meta = json_object_get(object, "metadata");
    const char *name = json_string_value(json_object_get(meta, "name"));
    if (!name || !*name)
        return;
    pthread_mutex_lock(&w->lock);
    Node *n = node_locked(w, name);
    n->exists = change != KUBE_DELETED;
    if (n->exists)
        warm_labels_have(n->labels, json_object_get(meta, "labels"));
    drop_if_gone_locked(w, n);
    pthread_mutex_unlock(&w->lock);
}

static void on_caches_synced(void *data)
{
    Warmth *w = data;
    pthread_mutex_lock(&w->lock);
    w->caches_synced = TRUE;
    pthread_mutex_unlock(&w->lock);
}

static void on_machines_synced(void *data)
{
    Warmth *w = data;
    pthread_mutex_lock(&w->lock);
    w->nodes_synced = TRUE;
    pthread_mutex_unlock(&w->lock);
}

static void tell_caches(const GError *error, void *data)
{
    (void)data;
    if (error)
        g_warning("NodeCaches cannot be watched: %s", error->message);
    else
        g_message("NodeCaches are watched again");
}

static void tell_machines(const GError *error, void *data)
{
    (void)data;
    if (error)
        g_warning("Nodes cannot be watched: %s", error->message);
    else
        g_message("Nodes are watched again");
}

/* ---- what is asked ---- */

static gint64 age_locked(const Node *n)
{
    return n && n->heartbeat_us ? MAX(now_ms() - n->alive_ms, 0) : -1;
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

gboolean warmth_of(Warmth *w, const char *dataset, const char *node, WarmthOf *of)
{
    pthread_mutex_lock(&w->lock);
    const Total *total = g_hash_table_lookup(w->totals, dataset);
    const Node *n = node ? g_hash_table_lookup(w->nodes, node) : NULL;
    *of = (WarmthOf){.total = total ? total->bytes : 0};
    if (n && now_ms() - n->alive_ms <= WARM_STALE_MS)
        of->bytes = MIN(bytes_of(n, dataset), of->total);
    pthread_mutex_unlock(&w->lock);
    return of->total > 0;
}

/* The one that has this name; NULL: none. */
static const Node *named_locked(Warmth *w, const char *name)
{
    g_autofree char *value = topology_node_value(name);
    return g_hash_table_lookup(w->nodes, value);
}

/* Its own word, which is not ours to keep. */
static const char *disk_literal(const char *disk)
{
    static const char *const known[] = {"ok", "suspect", "bypass", "off"};
    for (gsize i = 0; i < G_N_ELEMENTS(known); i++)
        if (strcmp(disk, known[i]) == 0)
            return known[i];
    return "";
}

void warmth_candidate(Warmth *w, const char *dataset, WarmupCandidate *c)
{
    pthread_mutex_lock(&w->lock);
    const Node *n = named_locked(w, c->name);
    c->age_ms = age_locked(n);
    c->disk = n ? disk_literal(n->disk) : "";
    c->bytes = n ? bytes_of(n, dataset) : 0;
    c->room = n ? n->free + n->bytes - MIN(c->bytes, n->bytes) : 0;
    pthread_mutex_unlock(&w->lock);
}

gboolean warmth_runs(Warmth *w, const char *node, WarmthRuns *runs)
{
    pthread_mutex_lock(&w->lock);
    const Node *n = named_locked(w, node);
    *runs = (WarmthRuns){.orders = n ? json_incref(n->orders) : NULL,
                         .reports = n ? json_incref(n->reports) : NULL,
                         .age_ms = age_locked(n)};
    const gboolean has = n && n->has_cache;
    pthread_mutex_unlock(&w->lock);
    return has;
}

GPtrArray *warmth_ordered(Warmth *w)
{
    GPtrArray *names = NULL;
    GHashTableIter iter;
    gpointer value;
    pthread_mutex_lock(&w->lock);
    if (w->caches_synced) {
        names = g_ptr_array_new_with_free_func(g_free);
        g_hash_table_iter_init(&iter, w->nodes);
        while (g_hash_table_iter_next(&iter, NULL, &value)) {
            const Node *n = value;
            if (n->orders)
                g_ptr_array_add(names, g_strdup(n->name));
        }
    }
    pthread_mutex_unlock(&w->lock);
    return names;
}

/* ---- what is written ---- */

typedef struct Write {
    char *node, *value;
    json_t *patch; /* NULL: its NodeCache goes */
} Write;

static void write_free(void *data)
{
    Write *write = data;
    json_decref(write->patch);
    g_free(write->node);
    g_free(write->value);
    g_free(write);
}

static GPtrArray *due_locked(Warmth *w)
{
    GPtrArray *due = g_ptr_array_new_with_free_func(write_free);
    GHashTableIter iter;
    gpointer value, node;
    const gint64 now = now_ms();
    g_hash_table_iter_init(&iter, w->nodes);
    while (due->len < BATCH && g_hash_table_iter_next(&iter, &value, &node)) {
        Node *n = node;
        const gboolean orphan =
            w->nodes_synced && !n->exists && n->has_cache && now - n->alive_ms > WARM_STALE_MS;
        json_t *patch = n->exists ? warm_labels_patch(n->labels, now) : NULL;
        if (!patch && !orphan)
            continue;
        Write *write = g_new(Write, 1);
        *write = (Write){g_strdup(n->name), g_strdup(value), patch};
        g_ptr_array_add(due, write);
        if (orphan)
            n->alive_ms = now; /* another try later */
    }
    return due;
}

static void tell(Warmth *w, const Write *write, const GError *error)
{
    if (error && !w->troubled)
        g_warning("node %s: its %s cannot be changed: %s", write->node,
                  write->patch ? "labels" : "NodeCache", error->message);
    else if (!error && w->troubled)
        g_message("labels of nodes are written again");
    w->troubled = error != NULL;
}

static void do_write(Warmth *w, const Write *write)
{
    const KubeResource *resource = write->patch ? &node_resource : &node_cache_resource;
    g_autofree char *path = kube_path(resource, NULL, write->node, NULL);
    const KubeRequest request = {.method = write->patch ? "PATCH" : "DELETE",
                                 .path = path,
                                 .body = write->patch,
                                 .body_type = KUBE_BODY_MERGE_PATCH,
                                 .timeout_ms = WRITE_MS,
                                 .cancel = w->stop};
    g_autoptr(GError) error = NULL;
    json_t *answer = NULL;
    gboolean good = kube_request(w->client, &request, &answer, &error);
    if (good && write->patch) {
        pthread_mutex_lock(&w->lock);
        Node *n = g_hash_table_lookup(w->nodes, write->value);
        if (n)
            warm_labels_have(n->labels,
                             json_object_get(json_object_get(answer, "metadata"), "labels"));
        pthread_mutex_unlock(&w->lock);
    }
    json_decref(answer);
    if (!g_error_matches(error, KUBE_ERROR, KUBE_ERROR_NOT_FOUND) &&
        !g_cancellable_is_cancelled(w->stop))
        tell(w, write, error);
}

static void round_of(Warmth *w)
{
    for (guint n = BATCH; n == BATCH && w->may_act(w->data);) {
        pthread_mutex_lock(&w->lock);
        g_autoptr(GPtrArray) due = due_locked(w);
        pthread_mutex_unlock(&w->lock);
        n = due->len;
        for (guint i = 0; i < n && w->may_act(w->data); i++)
            do_write(w, due->pdata[i]);
    }
}

static void *run(void *data)
{
    Warmth *w = data;
    while (kube_pause(ROUND_MS, w->stop, NULL))
        round_of(w);
    return NULL;
}

Warmth *warmth_new(KubeClient *client, gboolean (*may_act)(void *data), void *data)
{
    static const KubeWatchOps cache_ops = {.on_change = on_cache,
                                           .on_synced = on_caches_synced,
                                           .on_trouble = tell_caches},
                              machine_ops = {.on_change = on_machine,
                                             .on_synced = on_machines_synced,
                                             .on_trouble = tell_machines};
    const KubeSelection caches = {.resource = node_cache_resource},
                        machines = {.resource = node_resource, .metadata = TRUE};
    Warmth *w = g_new0(Warmth, 1);
    w->client = client;
    w->may_act = may_act;
    w->data = data;
    w->stop = g_cancellable_new();
    pthread_mutex_init(&w->lock, NULL);
    w->nodes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, node_free);
    w->totals = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    w->machines = kube_watch_new(client, &machines, &machine_ops, w, NULL);
    w->caches = kube_watch_new(client, &caches, &cache_ops, w, NULL);
    int failed = pthread_create(&w->thread, NULL, run, w);
    if (failed)
        g_error("cannot start a thread: %s", g_strerror(failed));
    return w;
}

void warmth_free(Warmth *w)
{
    if (!w)
        return;
    g_cancellable_cancel(w->stop);
    pthread_join(w->thread, NULL);
    kube_watch_free(w->caches);
    kube_watch_free(w->machines);
    g_object_unref(w->stop);
    g_hash_table_unref(w->nodes);
    g_hash_table_unref(w->totals);
    pthread_mutex_destroy(&w->lock);
    g_free(w);
}
