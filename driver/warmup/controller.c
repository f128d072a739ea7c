/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmup/controller.h"
#include <pthread.h>
#include <stdatomic.h>
#include "common/error.h"
#include "common/field.h"
#include "driver/kube/error.h"
#include "driver/kube/event.h"
#include "driver/kube/watch/watch.h"
#include "driver/warmth/resources.h"
#include "driver/warmup/begin.h"
#include "driver/warmup/events.h"
#include "driver/warmup/orders.h"
#include "driver/warmup/status.h"

#define ROUND_MS 1000
#define WRITE_MS 15000
#define RETRY_MS 10000

/* What a watch saw, which does not change any more. */
typedef struct Seen {
    Warmup warmup;
    GError *bad; /* NULL: its spec can be done */
    json_t *status;
    atomic_int holders;
} Seen;

/* What this controller has done of it, as long as it has the lease. */
typedef struct Act {
    /* As it was written last, and beside that "origin", where the dataset of the run is, which no
     * namespace is told: recovered from the orders, or found again. NULL: none. */
    json_t *status;
    gint64 written_ms, retry_ms, generation;
} Act;

struct Warmups {
    KubeClient *client;
    Warmth *warmth;
    WarmupsOps ops; /* its strings are ours */
    void *data;
    GCancellable *stop;
    KubeWatch *watch;
    pthread_t thread;
    pthread_mutex_t lock;
    GHashTable *seen; /* lock: "namespace/name" -> Seen */
    gboolean synced;  /* lock */
    GHashTable *acts; /* of the thread, like the fields below: uid -> Act */
    gboolean troubled;
};

static gint64 now_ms(void)
{
    return g_get_monotonic_time() / 1000;
}

static void seen_unref(void *data)
{
    Seen *seen = data;
    if (atomic_fetch_sub(&seen->holders, 1) > 1)
        return;
    warmup_clear(&seen->warmup);
    g_clear_error(&seen->bad);
    g_clear_pointer(&seen->status, json_decref);
    g_free(seen);
}

static void act_free(void *data)
{
    Act *act = data;
    g_clear_pointer(&act->status, json_decref);
    g_free(act);
}

/* ---- the watch ---- */

static void on_change(KubeChange change, const json_t *object, void *data)
{
    Warmups *w = data;
    Seen *seen = g_new0(Seen, 1);
    atomic_init(&seen->holders, 1);
    warmup_read(object, &seen->warmup, &seen->bad);
    seen->status = json_deep_copy(json_object_get(object, "status"));
    char *key = g_strdup_printf("%s/%s", seen->warmup.namespace, seen->warmup.name);
    pthread_mutex_lock(&w->lock);
    if (change == KUBE_DELETED) {
        g_hash_table_remove(w->seen, key);
        seen_unref(seen);
        g_free(key);
    } else {
        g_hash_table_replace(w->seen, key, seen);
    }
    pthread_mutex_unlock(&w->lock);
}

static void on_synced(void *data)
{
    Warmups *w = data;
    pthread_mutex_lock(&w->lock);
    w->synced = TRUE;
    pthread_mutex_unlock(&w->lock);
}

static void on_trouble(const GError *error, void *data)
{
    (void)data;
    if (error)
        g_warning("CacheWarmups cannot be watched: %s", error->message);
    else
        g_message("CacheWarmups are watched again");
}

static gint by_name(gconstpointer a, gconstpointer b)
{
    const Warmup *x = &(*(Seen *const *)a)->warmup, *y = &(*(Seen *const *)b)->warmup;
    const int order = g_strcmp0(x->namespace, y->namespace);
    return order ? order : g_strcmp0(x->name, y->name);
}

/* All there are, by name, the caller's; NULL: not all have been seen yet. */
static GPtrArray *look(Warmups *w)
{
    GPtrArray *all = NULL;
    GHashTableIter iter;
    gpointer value;
    pthread_mutex_lock(&w->lock);
    if (w->synced) {
        all = g_ptr_array_new_with_free_func(seen_unref);
        g_hash_table_iter_init(&iter, w->seen);
        while (g_hash_table_iter_next(&iter, NULL, &value)) {
            atomic_fetch_add(&((Seen *)value)->holders, 1);
            g_ptr_array_add(all, value);
        }
    }
    pthread_mutex_unlock(&w->lock);
    if (all)
        g_ptr_array_sort(all, by_name);
    return all;
}

/* ---- one of them ---- */

static gboolean may_act(const Warmups *w)
{
    return !g_cancellable_is_cancelled(w->stop) && w->ops.may_act(w->data);
}

static void log_trouble(Warmups *w, const Warmup *warmup, const GError *error)
{
    if (error && !w->troubled)
        g_warning("CacheWarmup %s/%s: %s", warmup->namespace, warmup->name, error->message);
    else if (!error && w->troubled)
        g_message("CacheWarmups are kept up again");
    w->troubled = error != NULL;
}

/* A status counts without them, so one that is refused is only logged. */
static void post_events(Warmups *w, const Warmup *warmup, const json_t *before, const json_t *after)
{
    g_autoptr(GPtrArray) events = warmup_events(warmup, before, after);
    for (guint i = 0; i < events->len && may_act(w); i++) {
        const WarmupEvent *e = events->pdata[i];
        const KubeEvent event = {.name = e->name,
                                 .namespace = warmup->namespace,
                                 .api_version = WARM_API_VERSION,
                                 .kind = "CacheWarmup",
                                 .object = warmup->name,
                                 .uid = warmup->uid,
                                 .warning = e->warning,
                                 .reason = e->reason,
                                 .message = e->message};
        g_autoptr(GError) error = NULL;
        if (kube_event_post(w->client, &event, w->stop, &error))
            continue;
        if (!g_cancellable_is_cancelled(w->stop))
            g_info("CacheWarmup %s/%s has no Event %s: %s", warmup->namespace, warmup->name,
                   e->reason, error->message);
        return;
    }
}

static void write_status(Warmups *w, const Seen *seen, Act *act, json_t *status)
{
    const Warmup *warmup = &seen->warmup;
    g_autofree char *path = kube_path(&warmup_resource, warmup->namespace, warmup->name, "status");
    json_t *told = json_copy(status);
    json_auto_t *body = json_pack("{s:o}", "status", told);
    g_autoptr(GError) error = NULL;
    json_object_del(told, "origin");
    /* Written by a controller of an earlier release. */
    if (json_object_get(seen->status, "origin"))
        json_object_set_new(told, "origin", json_null());
    if (kube_merge_patch(w->client, path, body, WRITE_MS, w->stop, &error)) {
        post_events(w, warmup, act->status, status);
        g_clear_pointer(&act->status, json_decref);
        act->status = json_incref(status);
        act->written_ms = now_ms();
    }
    if (!g_error_matches(error, KUBE_ERROR, KUBE_ERROR_NOT_FOUND) &&
        !g_cancellable_is_cancelled(w->stop))
        log_trouble(w, warmup, error);
}

static void report_free(void *data)
{
    WarmupReport *report = data;
    json_decref((json_t *)report->warmups); /* it is const, for the readers of WarmupReport */
    g_free(report);
}

static json_t *progress(const Warmups *w, const WarmupObject *object, gint64 now_s)
{
    g_autoptr(GHashTable) reports =
        g_hash_table_new_full(g_str_hash, g_str_equal, NULL, report_free);
    const json_t *node;
    size_t i;
    json_array_foreach (json_object_get(object->status, "nodes"), i, node) {
        g_auto(WarmthRuns) runs = {0};
        warmth_runs(w->warmth, field_text(node, "name"), &runs);
        WarmupReport *report = g_new(WarmupReport, 1);
        *report = (WarmupReport){.age_ms = runs.age_ms, .warmups = g_steal_pointer(&runs.reports)};
        g_hash_table_insert(reports, (gpointer)field_text(node, "name"), report);
    }
    return warmup_status_progress(object, reports, now_s);
}

static json_t *wait_for_time(const WarmupObject *object, gint64 now_s)
{
    const gint64 next_s = warmup_next_s(object->warmup, now_s);
    g_autoptr(GDateTime) next = next_s < 0 ? NULL : g_date_time_new_from_unix_utc(next_s);
    g_autofree char *message = next ? g_date_time_format(next, "next at %FT%TZ")
                                    : g_strdup("its schedule has no next time");
    return warmup_status_idle(object, WARMUP_WAITING, message, now_s);
}

static WarmupTargets targets_of(const Warmups *w)
{
    return (WarmupTargets){.client = w->client,
                           .driver_name = w->ops.driver_name,
                           .cluster_config = w->ops.cluster_config,
                           .claim_of = w->ops.claim_of,
                           .claims = w->ops.claims,
                           .cancel = w->stop};
}

/* What the status is to be now; a new reference, NULL: as it is. */
static json_t *next_status(Warmups *w, const Seen *seen, Act *act, const GPtrArray *all)
{
    const Warmup *warmup = &seen->warmup;
    const WarmupObject object = {warmup, act->status};
    const gint64 now_s = g_get_real_time() / G_USEC_PER_SEC;
    const char *phase = field_text(act->status, "phase");
    WarmupDone done;
    WarmupRun run;
    if (seen->bad)
        return warmup_status_idle(&object, WARMUP_REFUSED, seen->bad->message, now_s);
    if (warmup->suspend)
        return warmup_status_idle(&object, WARMUP_SUSPENDED, "", now_s);
    warmup_done_read(warmup, act->status, &done);
    if (warmup_due(warmup, &done, now_s, &run)) {
        if (now_ms() < act->retry_ms)
            return NULL;
        act->retry_ms = now_ms() + (w->ops.retry_ms ? w->ops.retry_ms : RETRY_MS);
        const WarmupBegin begin = {.targets = targets_of(w), .warmth = w->warmth, .under_way = all};
        g_autoptr(GError) error = NULL;
        json_t *status = warmup_begin(&begin, &object, &run, now_s, &error);
        if (!status)
            log_trouble(w, warmup, error);
        return status;
    }
    if (done.under_way)
        return progress(w, &object, now_s);
    if (warmup->scheduled &&
        (!*phase || g_str_equal(phase, "Suspended") ||
         field_count(act->status, "observedGeneration") != (guint64)warmup->generation))
        return wait_for_time(&object, now_s);
    return NULL;
}

static Act *act_of(Warmups *w, const Seen *seen)
{
    Act *act = g_hash_table_lookup(w->acts, seen->warmup.uid);
    if (!act) {
        act = g_new0(Act, 1);
        act->status = json_deep_copy(seen->status);
        json_object_del(act->status, "origin");
        act->written_ms = -1;
        g_hash_table_insert(w->acts, g_strdup(seen->warmup.uid), act);
    }
    if (act->generation != seen->warmup.generation)
        act->retry_ms = 0;
    act->generation = seen->warmup.generation;
    return act;
}

/* Whether its status was written. */
static gboolean step(Warmups *w, const Seen *seen, const GPtrArray *all)
{
    Act *act = act_of(w, seen);
    if (seen->warmup.going)
        return FALSE;
    json_auto_t *next = next_status(w, seen, act, all);
    const gint64 since_ms = act->written_ms < 0 ? -1 : now_ms() - act->written_ms;
    const gboolean writes =
        next && may_act(w) && warmup_status_is_worth(act->status, next, since_ms);
    if (writes)
        write_status(w, seen, act, next);
    return writes;
}

/* ---- all of them ---- */

static gboolean is_not_there(gpointer uid, gpointer act, gpointer there)
{
    (void)act;
    return !g_hash_table_contains(there, uid);
}

static void forget_others(Warmups *w, const GPtrArray *all)
{
    g_autoptr(GHashTable) there = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < all->len; i++)
        g_hash_table_add(there, ((Seen *)all->pdata[i])->warmup.uid);
    g_hash_table_foreach_remove(w->acts, is_not_there, there);
}

/* The runs that nodes have a part in. */
static GPtrArray *under_way(Warmups *w, const GPtrArray *all)
{
    GPtrArray *runs = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < all->len; i++) {
        const Seen *seen = all->pdata[i];
        if (seen->bad)
            continue;
        WarmupObject *one = g_new(WarmupObject, 1);
        *one = (WarmupObject){&seen->warmup, act_of(w, seen)->status};
        g_ptr_array_add(runs, one);
    }
    return runs;
}

/* From an order of that run on one of its nodes, which a controller wrote; and a node plugin could
 * have since, so the dataset has to be the run's. NULL: there is none. */
static json_t *origin_ordered(Warmups *w, const json_t *status)
{
    const json_t *node, *order;
    json_t *found = NULL;
    size_t i, k;
    json_array_foreach (json_object_get(status, "nodes"), i, node) {
        g_auto(WarmthRuns) runs = {0};
        warmth_runs(w->warmth, field_text(node, "name"), &runs);
        json_array_foreach (runs.orders, k, order) {
            g_auto(DatasetOrigin) origin = {.cluster_id = NULL};
            if (!found && g_str_equal(field_text(order, "run"), field_text(status, "run")) &&
                dataset_origin_read(json_object_get(order, "origin"), &origin) &&
                g_str_equal(origin.id, field_text(status, "dataset")))
                found = dataset_origin_json(&origin);
        }
        if (found)
            break;
    }
    return found;
}

/* As when the run began; it may be that no order was written by then. */
static json_t *origin_found(Warmups *w, const Warmup *warmup, const json_t *status, GError **error)
{
    const WarmupTargets targets = targets_of(w);
    g_auto(DatasetOrigin) origin = {.cluster_id = NULL};
    if (!warmup_target_find(&targets, warmup, &origin, error))
        return NULL;
    if (g_str_equal(origin.id, field_text(status, "dataset")))
        return dataset_origin_json(&origin);
    hearth_fail(error, HEARTH_ERROR_NOT_FOUND, "what it names is dataset %s by now", origin.id);
    return NULL;
}

/* Has the status of a run under way say where its dataset is. FALSE: it cannot be known yet. */
static gboolean recover(Warmups *w, const Seen *seen, Act *act)
{
    const WarmupObject object = {&seen->warmup, act->status};
    g_autoptr(GPtrArray) parts = warmup_status_parts(&object);
    g_autoptr(GError) error = NULL;
    if (parts->len == 0 || json_object_get(act->status, "origin"))
        return TRUE;
    json_t *origin = origin_ordered(w, act->status);
    if (!origin)
        origin = origin_found(w, &seen->warmup, act->status, &error);
    if (origin) {
        json_object_set_new(act->status, "origin", origin);
        return TRUE;
    }
    if (error->domain == HEARTH_ERROR) {
        json_auto_t *lost = warmup_status_idle(&object, WARMUP_LOST, error->message,
                                               g_get_real_time() / G_USEC_PER_SEC);
        write_status(w, seen, act, lost);
    } else {
        log_trouble(w, &seen->warmup, error);
    }
    return FALSE;
}

static gboolean recover_all(Warmups *w, const GPtrArray *all)
{
    gboolean known = TRUE;
    for (guint i = 0; i < all->len && may_act(w); i++) {
        const Seen *seen = all->pdata[i];
        if (!seen->bad && !recover(w, seen, act_of(w, seen)))
            known = FALSE;
    }
    return known;
}

static void round_of(Warmups *w)
{
    g_autoptr(GPtrArray) all = look(w), ordered = warmth_ordered(w->warmth);
    if (!all || !ordered)
        return;
    if (!may_act(w)) {
        g_hash_table_remove_all(w->acts);
        return;
    }
    forget_others(w, all);
    const gboolean known = recover_all(w, all);
    g_autoptr(GPtrArray) runs = under_way(w, all);
    for (guint i = 0; i < all->len && may_act(w); i++)
        if (step(w, all->pdata[i], runs)) { /* `runs` borrows from the old status, which is gone */
            g_ptr_array_unref(runs);
            runs = under_way(w, all);
        }
    g_autoptr(GError) error = NULL;
    /* Else orders of runs that go on would be taken back. */
    if (known && may_act(w) &&
        !warmup_orders_settle(w->client, w->warmth, runs, ordered, w->stop, &error) &&
        !g_cancellable_is_cancelled(w->stop) && !w->troubled) {
        w->troubled = TRUE;
        g_warning("orders of CacheWarmups are not written: %s", error->message);
    }
}

static void *run(void *data)
{
    Warmups *w = data;
    while (kube_pause(w->ops.round_ms ? w->ops.round_ms : ROUND_MS, w->stop, NULL))
        round_of(w);
    return NULL;
}

Warmups *warmups_new(KubeClient *client, Warmth *warmth, const WarmupsOps *ops, void *data)
{
    static const KubeWatchOps watch_ops = {
        .on_change = on_change, .on_synced = on_synced, .on_trouble = on_trouble};
    const KubeSelection selection = {.resource = warmup_resource};
    Warmups *w = g_new0(Warmups, 1);
    w->client = client;
    w->warmth = warmth;
    w->ops = *ops;
    w->ops.driver_name = g_strdup(ops->driver_name);
    w->ops.cluster_config = g_strdup(ops->cluster_config);
    w->data = data;
    w->stop = g_cancellable_new();
    pthread_mutex_init(&w->lock, NULL);
    w->seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, seen_unref);
    w->acts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, act_free);
    w->watch = kube_watch_new(client, &selection, &watch_ops, w, NULL);
    int failed = pthread_create(&w->thread, NULL, run, w);
    if (failed)
        g_error("cannot start a thread: %s", g_strerror(failed));
    return w;
}

void warmups_free(Warmups *w)
{
    if (!w)
        return;
    g_cancellable_cancel(w->stop);
    pthread_join(w->thread, NULL);
    kube_watch_free(w->watch);
    g_object_unref(w->stop);
    g_hash_table_unref(w->seen);
    g_hash_table_unref(w->acts);
    pthread_mutex_destroy(&w->lock);
    g_free((char *)w->ops.driver_name);
    g_free((char *)w->ops.cluster_config);
    g_free(w);
}
