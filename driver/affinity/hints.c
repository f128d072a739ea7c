/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/affinity/hints.h"
#include <pthread.h>
#include "driver/kube/error.h"
#include "driver/kube/watch/watch.h"
#include "driver/affinity/hint_diff.h"

#define WRITE_MS 15000
/* While there is something to write and this process is not the one to do it. */
#define ASK_S 1

static const KubeResource volumes = {"", "v1", "persistentvolumes"};

enum { VOLUMES, HINTS, WATCHES };

struct DatasetHints {
    KubeClient *client;
    char *driver_name, *cluster_config;
    DatasetHintsOps ops;
    void *data;
    GCancellable *cancel;
    KubeWatch *watches[WATCHES];
    pthread_t thread;

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    HintDiff *diff;
    gboolean synced[WATCHES], ill[WATCHES];
    gboolean failing; /* writes */
    gboolean stop;
};

static gint64 now_ms(void)
{
    return g_get_monotonic_time() / 1000;
}

/* ---- the watches ---- */

static void on_volume(KubeChange change, const json_t *object, void *data)
{
    DatasetHints *h = data;
    g_auto(Hint) hint = {0};
    const char *name =
        json_string_value(json_object_get(json_object_get(object, "metadata"), "name"));
    const gboolean wants =
        change != KUBE_DELETED && hint_of_volume(object, h->driver_name, h->cluster_config, &hint);
    if (!name)
        return;
    if (h->ops.on_volume)
        h->ops.on_volume(change, object, h->ops.volume_data);
    pthread_mutex_lock(&h->lock);
    hint_diff_want(h->diff, name, wants ? &hint : NULL);
    pthread_cond_signal(&h->changed);
    pthread_mutex_unlock(&h->lock);
}

static void on_hint(KubeChange change, const json_t *object, void *data)
{
    DatasetHints *h = data;
    g_auto(Hint) hint = {0};
    if (!hint_read(object, &hint))
        return;
    pthread_mutex_lock(&h->lock);
    if (change == KUBE_DELETED)
        hint_diff_gone(h->diff, &hint, now_ms());
    else
        hint_diff_there(h->diff, &hint);
    pthread_cond_signal(&h->changed);
    pthread_mutex_unlock(&h->lock);
}

static void synced(DatasetHints *h, guint watch)
{
    pthread_mutex_lock(&h->lock);
    h->synced[watch] = TRUE;
    pthread_cond_signal(&h->changed);
    pthread_mutex_unlock(&h->lock);
}

static void on_volumes_synced(void *data)
{
    synced(data, VOLUMES);
}

static void on_hints_synced(void *data)
{
    synced(data, HINTS);
}

/* Told when one of the three begins to fail, and when none does any more. */
static void trouble(DatasetHints *h, gboolean *which, const GError *error)
{
    pthread_mutex_lock(&h->lock);
    const gboolean news = *which != (error != NULL);
    *which = error != NULL;
    const gboolean well = !h->ill[VOLUMES] && !h->ill[HINTS] && !h->failing;
    pthread_mutex_unlock(&h->lock);
    if (news && h->ops.on_trouble && (error || well))
        h->ops.on_trouble(error, h->data);
}

static void on_volumes_trouble(const GError *error, void *data)
{
    DatasetHints *h = data;
    trouble(h, &h->ill[VOLUMES], error);
}

static void on_hints_trouble(const GError *error, void *data)
{
    DatasetHints *h = data;
    trouble(h, &h->ill[HINTS], error);
}

/* ---- the writes ---- */

static gboolean apply(DatasetHints *h, const char *path, const Hint *hint, GError **error)
{
    json_auto_t *object = hint_object(hint);
    if (!object) {
        g_set_error(error, KUBE_ERROR, KUBE_ERROR_MALFORMED, "claim %s/%s has no proper name",
                    hint->namespace, hint->claim);
        return FALSE;
    }
    const KubeRequest r = {
        .path = path, .body = object, .timeout_ms = WRITE_MS, .cancel = h->cancel};
    return kube_apply(h->client, &r, HINT_FIELD_MANAGER, TRUE, NULL, error);
}

static gboolean remove_hint(DatasetHints *h, const char *path, GError **error)
{
    const KubeRequest r = {
        .method = "DELETE", .path = path, .timeout_ms = WRITE_MS, .cancel = h->cancel};
    g_autoptr(GError) cause = NULL;
    /* Kubernetes removes it with the claim, and may have been faster. */
    if (kube_request(h->client, &r, NULL, &cause) || cause->code == KUBE_ERROR_NOT_FOUND)
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&cause));
    return FALSE;
}

/* Makes one right, if it is still wrong. */
static gboolean settle(DatasetHints *h, const char *key, GError **error)
{
    g_auto(Hint) hint = {0};
    pthread_mutex_lock(&h->lock);
    const HintAct act = hint_diff_act(h->diff, key, &hint);
    pthread_mutex_unlock(&h->lock);
    if (act == HINT_RIGHT)
        return TRUE;
    g_autofree char *path = kube_path(&hint_resource, hint.namespace, hint.claim, NULL);
    const gboolean ok =
        act == HINT_APPLY ? apply(h, path, &hint, error) : remove_hint(h, path, error);
    pthread_mutex_lock(&h->lock);
    if (ok)
        hint_diff_done(h->diff, &hint, act);
    else
        hint_diff_failed(h->diff, key, now_ms());
    pthread_mutex_unlock(&h->lock);
    if (!ok)
        g_prefix_error(error, "hint of claim %s: ", key);
    return ok;
}

static gboolean may_act(DatasetHints *h)
{
    return !g_cancellable_is_cancelled(h->cancel) && h->ops.may_act(h->data);
}

/* One that is refused does not keep the others waiting. */
static void settle_all(DatasetHints *h, GPtrArray *keys)
{
    for (guint i = 0; i < keys->len && may_act(h); i++) {
        g_autoptr(GError) error = NULL;
        if (settle(h, keys->pdata[i], &error) || g_cancellable_is_cancelled(h->cancel))
            continue;
        trouble(h, &h->failing, error);
        if (error->code == KUBE_ERROR_UNREACHABLE || error->code == KUBE_ERROR_DEADLINE)
            break;
    }
}

static void wait_locked(DatasetHints *h)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ASK_S;
    /* Something differs, and is not to be written yet. */
    if (hint_diff_count(h->diff) > 0)
        pthread_cond_timedwait(&h->changed, &h->lock, &until);
    else
        pthread_cond_wait(&h->changed, &h->lock);
}

/* Keys of the hints to be written; empty when nothing fails any more; NULL: the thread must stop.
 */
static GPtrArray *await_work(DatasetHints *h)
{
    GPtrArray *keys = NULL;
    pthread_mutex_lock(&h->lock);
    while (!h->stop) {
        if (h->synced[VOLUMES] && h->synced[HINTS]) {
            keys = hint_diff_due(h->diff, now_ms());
            if (keys->len > 0 || (h->failing && !hint_diff_any_failed(h->diff)))
                break;
            g_clear_pointer(&keys, g_ptr_array_unref);
        }
        wait_locked(h);
    }
    pthread_mutex_unlock(&h->lock);
    return keys;
}

static void *writer_thread(void *data)
{
    DatasetHints *h = data;
    for (;;) {
        g_autoptr(GPtrArray) keys = await_work(h);
        if (!keys)
            return NULL;
        if (keys->len == 0)
            trouble(h, &h->failing, NULL);
        else if (may_act(h))
            settle_all(h, keys);
        else
            kube_pause(ASK_S * 1000, h->cancel, NULL);
    }
}

/* ---- beginning and end ---- */

DatasetHints *dataset_hints_new(KubeClient *client, const char *driver_name,
                                const DatasetHintsOps *ops, void *data)
{
    static const KubeWatchOps volume_ops = {on_volume, on_volumes_synced, on_volumes_trouble};
    static const KubeWatchOps hint_ops = {on_hint, on_hints_synced, on_hints_trouble};
    const KubeSelection all_volumes = {.resource = volumes};
    const KubeSelection our_hints = {.resource = hint_resource, .labels = HINT_SELECTOR};
    DatasetHints *h = g_new0(DatasetHints, 1);
    h->client = client;
    h->driver_name = g_strdup(driver_name);
    h->cluster_config = g_strdup(ops->cluster_config);
    h->ops = *ops;
    h->data = data;
    h->cancel = g_cancellable_new();
    pthread_mutex_init(&h->lock, NULL);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&h->changed, &clock);
    pthread_condattr_destroy(&clock);
    h->diff = hint_diff_new();
    int rc = pthread_create(&h->thread, NULL, writer_thread, h);
    if (rc != 0)
        g_error("no thread: %s", g_strerror(rc));
    h->watches[VOLUMES] = kube_watch_new(client, &all_volumes, &volume_ops, h, NULL);
    h->watches[HINTS] = kube_watch_new(client, &our_hints, &hint_ops, h, NULL);
    return h;
}

void dataset_hints_free(DatasetHints *h)
{
    if (!h)
        return;
    for (guint i = 0; i < WATCHES; i++)
        kube_watch_free(h->watches[i]);
    pthread_mutex_lock(&h->lock);
    h->stop = TRUE;
    pthread_cond_signal(&h->changed);
    pthread_mutex_unlock(&h->lock);
    g_cancellable_cancel(h->cancel);
    pthread_join(h->thread, NULL);
    hint_diff_free(h->diff);
    g_object_unref(h->cancel);
    pthread_mutex_destroy(&h->lock);
    pthread_cond_destroy(&h->changed);
    g_free(h->driver_name);
    g_free(h->cluster_config);
    g_free(h);
}

guint dataset_hints_pending(DatasetHints *h)
{
    pthread_mutex_lock(&h->lock);
    const guint pending = hint_diff_count(h->diff);
    pthread_mutex_unlock(&h->lock);
    return pending;
}

char *dataset_hints_claim(void *hints, const char *namespace, const char *dataset)
{
    DatasetHints *h = hints;
    pthread_mutex_lock(&h->lock);
    char *claim = hint_diff_claim(h->diff, namespace, dataset);
    pthread_mutex_unlock(&h->lock);
    return claim;
}
