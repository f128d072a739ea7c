/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmth/warmth.h"
#include <pthread.h>
#include "driver/kube/error.h"
#include "driver/kube/watch/watch.h"
#include "driver/warmth/bypassed.h"
#include "driver/warmth/mount_lost.h"
#include "driver/warmth/node_table.h"

#define ROUND_MS 1000
#define WRITE_MS 10000
/* After a failure. */
#define PAUSE_ROUNDS 30
/* Patches taken at a time, so that questions about warmth never wait for long. */
#define BATCH 64

struct Warmth {
    KubeClient *client;
    gboolean (*may_act)(void *data);
    void *data;
    KubeWatch *caches, *nodes;
    GCancellable *stop;
    pthread_t thread;
    pthread_mutex_t lock;
    NodeTable *table;                                    /* lock */
    Bypassed *bypassed;                                  /* lock */
    MountLost *lost;                                     /* lock */
    gboolean nodes_synced;                               /* lock */
    gboolean caches_synced;                              /* lock */
    void (*on_uncached)(const char *handle, void *data); /* lock */
    void *uncached_data;                                 /* lock */
    gboolean troubled;                                   /* of the thread, as the next */
    unsigned pause;                                      /* rounds until pods are listed again */
};

static const KubeResource node_resource = {"", "v1", "nodes"};

static gint64 now_ms(void)
{
    return g_get_monotonic_time() / 1000;
}

/* ---- NodeCaches and Nodes ---- */

static void on_cache(KubeChange change, const json_t *object, void *data)
{
    Warmth *w = data;
    g_auto(NodeCacheReport) report = {0};
    if (!node_cache_read(object, &report))
        return;
    pthread_mutex_lock(&w->lock);
    if (change == KUBE_DELETED)
        node_table_no_report(w->table, report.node, now_ms());
    else
        node_table_report(w->table, object, &report, now_ms());
    bypassed_report(w->bypassed, report.node, change == KUBE_DELETED ? NULL : report.disk);
    if (change == KUBE_DELETED)
        g_ptr_array_set_size(report.lost, 0);
    mount_lost_report(w->lost, report.node, report.lost);
    void (*on_uncached)(const char *handle, void *data) = w->on_uncached;
    void *uncached_data = w->uncached_data;
    pthread_mutex_unlock(&w->lock);
    for (guint i = 0; on_uncached && change != KUBE_DELETED && i < report.uncached->len; i++)
        on_uncached(report.uncached->pdata[i], uncached_data);
}

static void on_node(KubeChange change, const json_t *object, void *data)
{
    Warmth *w = data;
    const json_t *meta = json_object_get(object, "metadata");
    const char *name = json_string_value(json_object_get(meta, "name"));
    if (!name || !*name)
        return;
    pthread_mutex_lock(&w->lock);
    if (change == KUBE_DELETED)
        node_table_no_node(w->table, name, now_ms());
    else
        node_table_node(w->table, name, json_object_get(meta, "labels"), now_ms());
    pthread_mutex_unlock(&w->lock);
}

static void on_caches_synced(void *data)
{
    Warmth *w = data;
    pthread_mutex_lock(&w->lock);
    w->caches_synced = TRUE;
    pthread_mutex_unlock(&w->lock);
}

static void on_nodes_synced(void *data)
{
    Warmth *w = data;
    pthread_mutex_lock(&w->lock);
    w->nodes_synced = TRUE;
    pthread_mutex_unlock(&w->lock);
}

static void log_caches_trouble(const GError *error, void *data)
{
    (void)data;
    if (error)
        g_warning("NodeCaches cannot be watched: %s", error->message);
    else
        g_message("NodeCaches are watched again");
}

static void log_nodes_trouble(const GError *error, void *data)
{
    (void)data;
    if (error)
        g_warning("Nodes cannot be watched: %s", error->message);
    else
        g_message("Nodes are watched again");
}

void warmth_on_uncached(Warmth *w, void (*on_uncached)(const char *handle, void *data), void *data)
{
    pthread_mutex_lock(&w->lock);
    w->on_uncached = on_uncached;
    w->uncached_data = data;
    pthread_mutex_unlock(&w->lock);
}

/* ---- questions ---- */

gboolean warmth_of(Warmth *w, const char *dataset, const char *node, WarmthOf *of)
{
    pthread_mutex_lock(&w->lock);
    const gboolean known = node_table_of(w->table, dataset, node, of, now_ms());
    pthread_mutex_unlock(&w->lock);
    return known;
}

void warmth_cache(Warmth *w, const char *dataset, const char *node, WarmthCache *cache)
{
    pthread_mutex_lock(&w->lock);
    node_table_cache(w->table, dataset, node, cache, now_ms());
    pthread_mutex_unlock(&w->lock);
}

void warmth_runs_clear(WarmthRuns *runs)
{
    g_clear_pointer(&runs->orders, json_decref);
    g_clear_pointer(&runs->reports, json_decref);
}

gboolean warmth_runs(Warmth *w, const char *node, WarmthRuns *runs)
{
    pthread_mutex_lock(&w->lock);
    const gboolean there = node_table_runs(w->table, node, runs, now_ms());
    pthread_mutex_unlock(&w->lock);
    return there;
}

GPtrArray *warmth_ordered(Warmth *w)
{
    pthread_mutex_lock(&w->lock);
    GPtrArray *names = w->caches_synced ? node_table_ordered(w->table) : NULL;
    pthread_mutex_unlock(&w->lock);
    return names;
}

/* ---- labels ---- */

static void log_trouble(Warmth *w, const NodeWrite *write, const GError *error)
{
    if (error && !w->troubled)
        g_warning("node %s: its %s cannot be changed: %s", write->node,
                  write->patch ? "labels" : "NodeCache", error->message);
    else if (!error && w->troubled)
        g_message("labels of nodes are written again");
    w->troubled = error != NULL;
}

static void do_write(Warmth *w, const NodeWrite *write)
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
    json_auto_t *answer = NULL;
    gboolean good = kube_request(w->client, &request, &answer, &error);
    if (good && write->patch) {
        pthread_mutex_lock(&w->lock);
        node_table_written(w->table, write->node,
                           json_object_get(json_object_get(answer, "metadata"), "labels"));
        pthread_mutex_unlock(&w->lock);
    }
    if (!g_error_matches(error, KUBE_ERROR, KUBE_ERROR_NOT_FOUND) &&
        !g_cancellable_is_cancelled(w->stop))
        log_trouble(w, write, error);
}

static void write_due(Warmth *w)
{
    for (guint n = BATCH; n == BATCH && w->may_act(w->data);) {
        pthread_mutex_lock(&w->lock);
        g_autoptr(GPtrArray) due = node_table_due(w->table, BATCH, w->nodes_synced, now_ms());
        pthread_mutex_unlock(&w->lock);
        n = due->len;
        for (guint i = 0; i < n && w->may_act(w->data); i++)
            do_write(w, due->pdata[i]);
    }
}

/* ---- Events ---- */

static void post_due(Warmth *w)
{
    if (!w->may_act(w->data))
        return;
    pthread_mutex_lock(&w->lock);
    g_autoptr(GPtrArray) due = bypassed_take(w->bypassed);
    pthread_mutex_unlock(&w->lock);
    for (guint i = 0; i < due->len; i++) {
        const char *node = due->pdata[i];
        g_autoptr(GError) error = NULL;
        if (w->may_act(w->data) && bypassed_post(w->client, node, w->stop, &error))
            continue;
        g_info("node %s has no Event " BYPASSED_REASON " yet: %s", node,
               error ? error->message : "another controller acts");
        pthread_mutex_lock(&w->lock);
        bypassed_again(w->bypassed, node);
        pthread_mutex_unlock(&w->lock);
    }
}

static void post_lost(Warmth *w)
{
    if (w->pause > 0)
        w->pause--;
    if (w->pause > 0 || !w->may_act(w->data))
        return;
    pthread_mutex_lock(&w->lock);
    g_autoptr(GPtrArray) due = mount_lost_take(w->lost);
    pthread_mutex_unlock(&w->lock);
    for (guint i = 0; i < due->len; i++) {
        g_autoptr(GError) error = NULL;
        if (w->may_act(w->data) && mount_lost_post(w->client, due->pdata[i], w->stop, &error))
            continue;
        w->pause = PAUSE_ROUNDS;
        g_info("pods of a node have no Event " MOUNT_LOST_REASON " yet: %s",
               error ? error->message : "another controller acts");
        pthread_mutex_lock(&w->lock);
        mount_lost_again(w->lost, due->pdata[i]);
        pthread_mutex_unlock(&w->lock);
    }
}

static void *warmth_thread(void *data)
{
    Warmth *w = data;
    while (kube_pause(ROUND_MS, w->stop, NULL)) {
        write_due(w);
        post_due(w);
        post_lost(w);
    }
    return NULL;
}

Warmth *warmth_new(KubeClient *client, gboolean (*may_act)(void *data), void *data)
{
    static const KubeWatchOps cache_ops = {.on_change = on_cache,
                                           .on_synced = on_caches_synced,
                                           .on_trouble = log_caches_trouble},
                              node_ops = {.on_change = on_node,
                                          .on_synced = on_nodes_synced,
                                          .on_trouble = log_nodes_trouble};
    const KubeSelection caches = {.resource = node_cache_resource},
                        nodes = {.resource = node_resource, .metadata = TRUE};
    Warmth *w = g_new0(Warmth, 1);
    w->client = client;
    w->may_act = may_act;
    w->data = data;
    w->stop = g_cancellable_new();
    pthread_mutex_init(&w->lock, NULL);
    w->table = node_table_new();
    w->bypassed = bypassed_new();
    w->lost = mount_lost_new();
    w->nodes = kube_watch_new(client, &nodes, &node_ops, w, NULL);
    w->caches = kube_watch_new(client, &caches, &cache_ops, w, NULL);
    int failed = pthread_create(&w->thread, NULL, warmth_thread, w);
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
    kube_watch_free(w->nodes);
    g_object_unref(w->stop);
    node_table_free(w->table);
    bypassed_free(w->bypassed);
    mount_lost_free(w->lost);
    pthread_mutex_destroy(&w->lock);
    g_free(w);
}
