/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmth/uncached.h"
#include <pthread.h>
#include "common/field.h"
#include "driver/kube/event.h"

typedef struct Volume {
    char *name, *handle, *namespace, *claim, *claim_uid;
    gboolean queued, reported;
} Volume;

struct Uncached {
    KubeClient *client;
    char *driver_name;
    gboolean (*may_act)(void *data);
    void *data;
    GCancellable *cancel;
    pthread_t thread;
    gboolean troubled; /* of the thread: it was logged */

    pthread_mutex_t lock; /* of all below; a leaf */
    pthread_cond_t changed;
    GHashTable *volumes; /* name -> Volume, of those that are bound */
    GHashTable *handles; /* handle -> Volume, borrowed */
    GQueue due;          /* names of volumes */
    gboolean stop;
};

static void volume_free(void *data)
{
    Volume *v = data;
    if (!v)
        return;
    g_free(v->name);
    g_free(v->handle);
    g_free(v->namespace);
    g_free(v->claim);
    g_free(v->claim_uid);
    g_free(v);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Volume, volume_free)

/* NULL: the volume belongs to another driver, or is not bound. */
static Volume *volume_read(const json_t *object, const char *driver_name)
{
    const json_t *spec = json_object_get(object, "spec"), *csi = json_object_get(spec, "csi"),
                 *claim = json_object_get(spec, "claimRef");
    if (!g_str_equal(field_text(csi, "driver"), driver_name) ||
        g_str_has_prefix(field_text(csi, "volumeHandle"), "h1~cephfs~") ||
        !g_str_equal(field_text(json_object_get(object, "status"), "phase"), "Bound") ||
        !*field_text(csi, "volumeHandle") || !*field_text(claim, "namespace") ||
        !*field_text(claim, "name") || !*field_text(claim, "uid"))
        return NULL;
    Volume *v = g_new0(Volume, 1);
    v->name = g_strdup(field_text(json_object_get(object, "metadata"), "name"));
    v->handle = g_strdup(field_text(csi, "volumeHandle"));
    v->namespace = g_strdup(field_text(claim, "namespace"));
    v->claim = g_strdup(field_text(claim, "name"));
    v->claim_uid = g_strdup(field_text(claim, "uid"));
    return v;
}

/* ---- volumes and reports ---- */

static void forget_locked(Uncached *u, Volume *v)
{
    if (g_hash_table_lookup(u->handles, v->handle) == v)
        g_hash_table_remove(u->handles, v->handle);
    g_hash_table_remove(u->volumes, v->name);
}

void uncached_volume(KubeChange change, const json_t *object, void *data)
{
    Uncached *u = data;
    const char *name = field_text(json_object_get(object, "metadata"), "name");
    g_autoptr(Volume) now = change == KUBE_DELETED ? NULL : volume_read(object, u->driver_name);
    pthread_mutex_lock(&u->lock);
    Volume *was = g_hash_table_lookup(u->volumes, name);
    const gboolean same = was && now && g_str_equal(was->handle, now->handle) &&
                          g_str_equal(was->claim_uid, now->claim_uid);
    if (was && !same)
        forget_locked(u, was);
    if (now && !same && *name) {
        g_hash_table_replace(u->handles, now->handle, now);
        g_hash_table_replace(u->volumes, now->name, now);
        now = NULL;
    }
    pthread_mutex_unlock(&u->lock);
}

void uncached_report(const char *handle, void *data)
{
    Uncached *u = data;
    if (!u->may_act(u->data))
        return;
    pthread_mutex_lock(&u->lock);
    Volume *v = g_hash_table_lookup(u->handles, handle);
    if (v && !v->queued && !v->reported && g_queue_get_length(&u->due) < UNCACHED_QUEUE_MAX) {
        v->queued = TRUE;
        g_queue_push_tail(&u->due, g_strdup(v->name));
        pthread_cond_signal(&u->changed);
    }
    pthread_mutex_unlock(&u->lock);
}

/* ---- Events ---- */

static gboolean write_event(Uncached *u, const Volume *v, GError **error)
{
    g_autofree char *name = g_strconcat("hearth-not-cached-", v->claim_uid, NULL);
    g_autofree char *message = g_strdup_printf(
        "The RBD image of PersistentVolume %s has no exclusive-lock, so others could write it "
        "unseen: it is not cached, and every read goes to Ceph. Add the feature while no pod "
        "uses the volume: rbd feature enable POOL/IMAGE exclusive-lock",
        v->name);
    const KubeEvent event = {.name = name,
                             .namespace = v->namespace,
                             .api_version = "v1",
                             .kind = "PersistentVolumeClaim",
                             .object = v->claim,
                             .uid = v->claim_uid,
                             .warning = TRUE,
                             .reason = UNCACHED_REASON,
                             .message = message};
    return kube_event_post(u->client, &event, u->cancel, error);
}

/* A copy of the next volume that is due; NULL: the thread must stop. */
static Volume *await_due(Uncached *u)
{
    Volume *copy = NULL;
    pthread_mutex_lock(&u->lock);
    while (!u->stop && !copy) {
        g_autofree char *name = g_queue_pop_head(&u->due);
        const Volume *v = name ? g_hash_table_lookup(u->volumes, name) : NULL;
        if (v) {
            copy = g_new0(Volume, 1);
            *copy = (Volume){g_strdup(v->name),
                             g_strdup(v->handle),
                             g_strdup(v->namespace),
                             g_strdup(v->claim),
                             g_strdup(v->claim_uid),
                             TRUE,
                             FALSE};
        } else if (!name) {
            pthread_cond_wait(&u->changed, &u->lock);
        }
    }
    pthread_mutex_unlock(&u->lock);
    return copy;
}

static void note_result(Uncached *u, const Volume *copy, gboolean reported)
{
    pthread_mutex_lock(&u->lock);
    Volume *v = g_hash_table_lookup(u->volumes, copy->name);
    if (v && g_str_equal(v->claim_uid, copy->claim_uid)) {
        v->queued = FALSE;
        v->reported = reported;
    }
    pthread_mutex_unlock(&u->lock);
}

static void log_trouble(Uncached *u, const Volume *v, const GError *error)
{
    if (error && !u->troubled)
        g_warning("claim %s/%s gets no Event that its volume is not cached: %s", v->namespace,
                  v->claim, error->message);
    u->troubled = error != NULL;
}

static void *uncached_thread(void *data)
{
    Uncached *u = data;
    for (;;) {
        g_autoptr(Volume) v = await_due(u);
        g_autoptr(GError) error = NULL;
        if (!v)
            return NULL;
        const gboolean acts = u->may_act(u->data);
        const gboolean reported = acts && write_event(u, v, &error);
        note_result(u, v, reported);
        if (acts && !g_cancellable_is_cancelled(u->cancel))
            log_trouble(u, v, error);
    }
}

/* ---- beginning and end ---- */

Uncached *uncached_new(KubeClient *client, const char *driver_name, gboolean (*may_act)(void *data),
                       void *data)
{
    Uncached *u = g_new0(Uncached, 1);
    u->client = client;
    u->driver_name = g_strdup(driver_name);
    u->may_act = may_act;
    u->data = data;
    u->cancel = g_cancellable_new();
    pthread_mutex_init(&u->lock, NULL);
    pthread_cond_init(&u->changed, NULL);
    g_queue_init(&u->due);
    u->volumes = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, volume_free);
    u->handles = g_hash_table_new(g_str_hash, g_str_equal);
    const int rc = pthread_create(&u->thread, NULL, uncached_thread, u);
    if (rc != 0)
        g_error("no thread: %s", g_strerror(rc));
    return u;
}

void uncached_free(Uncached *u)
{
    if (!u)
        return;
    pthread_mutex_lock(&u->lock);
    u->stop = TRUE;
    pthread_cond_signal(&u->changed);
    pthread_mutex_unlock(&u->lock);
    g_cancellable_cancel(u->cancel);
    pthread_join(u->thread, NULL);
    g_queue_clear_full(&u->due, g_free);
    g_hash_table_unref(u->handles);
    g_hash_table_unref(u->volumes);
    g_object_unref(u->cancel);
    pthread_cond_destroy(&u->changed);
    pthread_mutex_destroy(&u->lock);
    g_free(u->driver_name);
    g_free(u);
}
