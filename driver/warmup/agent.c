/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmup/agent.h"
#include <pthread.h>
#include <stdatomic.h>
#include "common/field.h"
#include "driver/kube/watch/watch.h"
#include "driver/warmth/node_cache.h"

/* One order. Held by the table while it is ordered, and by its thread. */
typedef struct Duty {
    WarmupAgent *agent;
    WarmupOrder order;
    GCancellable *cancel;
    json_t *entry; /* lock: of status.warmups */
    atomic_int holders;
} Duty;

struct WarmupAgent {
    WarmupConfig config; /* its strings are ours */
    KubeWatch *watch;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a thread has ended */
    GHashTable *duties;     /* lock: run -> Duty */
    guint threads;          /* lock: one each duty */
};

static void duty_unref(void *data)
{
    Duty *duty = data;
    if (atomic_fetch_sub(&duty->holders, 1) > 1)
        return;
    warmup_order_clear(&duty->order);
    g_object_unref(duty->cancel);
    g_clear_pointer(&duty->entry, json_decref);
    g_free(duty);
}

/* ---- running ---- */

static void take_news(const WarmupDoing *doing, void *data)
{
    Duty *duty = data;
    json_t *entry = warmup_doing_json(&duty->order, doing);
    pthread_mutex_lock(&duty->agent->lock);
    g_clear_pointer(&duty->entry, json_decref);
    duty->entry = entry;
    pthread_mutex_unlock(&duty->agent->lock);
}

static void do_duty(Duty *duty)
{
    WarmupAgent *a = duty->agent;
    g_message("warmup %s/%s is ordered: %s", duty->order.namespace, duty->order.name,
              duty->order.origin.root_path);
    warmup_task_run(&duty->order, &a->config, duty->cancel, take_news, duty);
    pthread_mutex_lock(&a->lock);
    g_autofree char *state = g_strdup(field_text(duty->entry, "state"));
    g_autofree char *message = g_strdup(field_text(duty->entry, "message"));
    pthread_mutex_unlock(&a->lock);
    g_message("warmup %s/%s: %s%s%s", duty->order.namespace, duty->order.name, state,
              *message ? ": " : "", message);
}

static void *duty_thread(void *data)
{
    Duty *duty = data;
    WarmupAgent *a = duty->agent;
    do_duty(duty);
    duty_unref(duty);
    pthread_mutex_lock(&a->lock);
    a->threads--;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

/* ---- orders ---- */

static void begin_locked(WarmupAgent *a, WarmupOrder *order)
{
    Duty *duty = g_new0(Duty, 1);
    const WarmupDoing doing = {.state = "Pending"};
    duty->agent = a;
    duty->order = *order;
    *order = (WarmupOrder){.run = NULL};
    duty->cancel = g_cancellable_new();
    duty->entry = warmup_doing_json(&duty->order, &doing);
    atomic_init(&duty->holders, 2);
    g_hash_table_insert(a->duties, duty->order.run, duty);
    pthread_t thread;
    int failed = pthread_create(&thread, NULL, duty_thread, duty);
    if (failed)
        g_error("cannot start a thread: %s", g_strerror(failed));
    pthread_detach(thread);
    a->threads++;
}

static gboolean is_not_ordered(gpointer run, gpointer value, gpointer ordered)
{
    Duty *duty = value;
    if (g_hash_table_contains(ordered, run))
        return FALSE;
    g_cancellable_cancel(duty->cancel);
    return TRUE;
}

static void take_orders(WarmupAgent *a, const json_t *orders)
{
    g_autoptr(GHashTable) ordered = g_hash_table_new(g_str_hash, g_str_equal);
    const json_t *one;
    size_t i;
    pthread_mutex_lock(&a->lock);
    json_array_foreach (orders, i, one) {
        g_auto(WarmupOrder) order = {.run = NULL};
        if (i >= WARMUP_ORDERS_MAX || !warmup_order_read(one, &order))
            continue;
        g_hash_table_add(ordered, (gpointer)field_text(one, "run"));
        if (!g_hash_table_contains(a->duties, order.run))
            begin_locked(a, &order);
    }
    if (g_hash_table_foreach_remove(a->duties, is_not_ordered, ordered))
        warmup_places_wake(a->config.places);
    pthread_mutex_unlock(&a->lock);
}

static void on_change(KubeChange change, const json_t *object, void *data)
{
    take_orders(data, change == KUBE_DELETED
                          ? NULL
                          : json_object_get(json_object_get(object, "spec"), "warmups"));
}

static void on_trouble(const GError *error, void *data)
{
    (void)data;
    if (error)
        g_warning("orders of CacheWarmups cannot be watched: %s", error->message);
    else
        g_message("orders of CacheWarmups are watched again");
}

/* ---- beginning and end ---- */

WarmupAgent *warmup_agent_new(KubeClient *client, const char *node, const WarmupConfig *config)
{
    static const KubeWatchOps ops = {.on_change = on_change, .on_trouble = on_trouble};
    g_autofree char *own = g_strconcat("metadata.name=", node, NULL);
    const KubeSelection selection = {.resource = node_cache_resource, .fields = own};
    WarmupAgent *a = g_new0(WarmupAgent, 1);
    a->config = *config;
    a->config.hearthd_socket = g_strdup(config->hearthd_socket);
    a->config.cluster_config = g_strdup(config->cluster_config);
    a->config.secret_dir = g_strdup(config->secret_dir);
    a->config.places = warmup_places_new(WARMUP_AT_A_TIME, WARMUP_TURN_MS);
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->changed, NULL);
    a->duties = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, duty_unref);
    a->watch = kube_watch_new(client, &selection, &ops, a, NULL);
    return a;
}

void warmup_agent_free(WarmupAgent *a)
{
    if (!a)
        return;
    kube_watch_free(a->watch);
    take_orders(a, NULL);
    pthread_mutex_lock(&a->lock);
    while (a->threads > 0)
        pthread_cond_wait(&a->changed, &a->lock);
    pthread_mutex_unlock(&a->lock);
    g_hash_table_unref(a->duties);
    warmup_places_free(a->config.places);
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
    g_free((char *)a->config.hearthd_socket);
    g_free((char *)a->config.cluster_config);
    g_free((char *)a->config.secret_dir);
    g_free(a);
}

json_t *warmup_agent_report(WarmupAgent *a)
{
    json_t *entries = json_array();
    GHashTableIter iter;
    gpointer value;
    pthread_mutex_lock(&a->lock);
    g_hash_table_iter_init(&iter, a->duties);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        json_array_append_new(entries, json_deep_copy(((Duty *)value)->entry));
    pthread_mutex_unlock(&a->lock);
    return entries;
}
