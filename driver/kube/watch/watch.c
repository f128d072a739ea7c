/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/kube/watch/watch.h"
#include <pthread.h>
#include "driver/kube/backoff.h"
#include "driver/kube/watch/decode.h"
#include "driver/kube/error.h"

/* For the server to end a stream by itself, before we do. */
#define ACCEPT_METADATA "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
#define STREAM_GRACE_MS 30000

struct KubeWatch {
    KubeClient *client;
    char *group, *version, *plural, *namespace, *labels, *fields;
    KubeSelection selection; /* of these */
    KubeWatchOps ops;
    void *data;
    KubeWatchTimes times;
    GCancellable *cancel;
    pthread_t thread;

    /* The thread's. */
    KubeKnown *known;
    char *from;           /* the resourceVersion to go on from; NULL: list */
    KubeDecoder *decoder; /* of the stream that runs */
    KubeBackoff away;     /* the API server does not answer, or refuses */
    KubeBackoff unsteady; /* it answers, and the watch does not last */
    gboolean troubled;
    gboolean opened; /* this stream was */
    gboolean alive;  /* this stream has brought something */
};

/* A watch that is open is the sign: a list that works does not mean that a watch will. */
static void well(KubeWatch *w)
{
    if (w->troubled && w->ops.on_trouble)
        w->ops.on_trouble(NULL, w->data);
    w->troubled = FALSE;
}

static void ill(KubeWatch *w, const GError *error)
{
    if (!w->troubled && w->ops.on_trouble && !g_cancellable_is_cancelled(w->cancel))
        w->ops.on_trouble(error, w->data);
    w->troubled = TRUE;
}

static void on_change(KubeChange change, const json_t *object, void *data)
{
    KubeWatch *w = data;
    if (!g_cancellable_is_cancelled(w->cancel))
        w->ops.on_change(change, object, w->data);
}

static void on_listed(const json_t *object, void *data)
{
    KubeWatch *w = data;
    kube_known_put(w->known, object);
}

static gboolean list(KubeWatch *w, GError **error)
{
    const KubeListing listing = {.page = w->times.page,
                                 .timeout_ms = w->times.list_ms,
                                 .cancel = w->cancel,
                                 .on_object = on_listed,
                                 .data = w};
    kube_known_list_begin(w->known);
    if (!kube_list(w->client, &w->selection, &listing, &w->from, error))
        return FALSE;
    kube_known_list_end(w->known);
    if (w->ops.on_synced && !g_cancellable_is_cancelled(w->cancel))
        w->ops.on_synced(w->data);
    return TRUE;
}

static gboolean on_event(KubeEventType type, const json_t *object, void *data, GError **error)
{
    KubeWatch *w = data;
    if (type == KUBE_EVENT_ERROR) {
        kube_error_set_event(error, "watch", object);
        return FALSE;
    }
    const json_t *metadata = json_object_get(object, "metadata");
    const char *version = json_string_value(json_object_get(metadata, "resourceVersion"));
    if (!version || !*version) {
        g_set_error(error, KUBE_ERROR, KUBE_ERROR_MALFORMED, "an event has no resourceVersion");
        return FALSE;
    }
    w->alive = TRUE;
    if (type == KUBE_EVENT_DELETED)
        kube_known_remove(w->known, object);
    else if (type != KUBE_EVENT_BOOKMARK)
        kube_known_put(w->known, object);
    g_free(w->from);
    w->from = g_strdup(version);
    return TRUE;
}

static gboolean on_bytes(const char *bytes, gsize size, void *data, GError **error)
{
    KubeWatch *w = data;
    if (size == 0) {
        w->opened = TRUE;
        well(w);
    }
    return kube_decoder_push(w->decoder, bytes, size, error);
}

/* FALSE: it was not the server that ended it, as it does. */
static gboolean stream(KubeWatch *w, GError **error)
{
    /* Not all at the same time, after an API server came back. */
    const gint64 seconds =
        w->times.stream_s + (gint64)(g_random_double() * (double)w->times.stream_s);
    g_autofree char *path = kube_path(&w->selection.resource, w->selection.namespace, NULL, NULL);
    g_autofree char *timeout = g_strdup_printf("%" G_GINT64_FORMAT, seconds);
    g_autofree char *from = g_strdup(w->from);
    g_autoptr(KubeDecoder) decoder = kube_decoder_new(w->times.line_max, on_event, w);
    const char *query[13] = {
        "watch",           "true", "allowWatchBookmarks", "true",
        "resourceVersion", from,   "timeoutSeconds",      timeout,
    };
    guint n = 8;
    if (w->labels)
        query[n++] = "labelSelector", query[n++] = w->labels;
    if (w->fields)
        query[n++] = "fieldSelector", query[n++] = w->fields;
    const KubeRequest r = {.method = "GET",
                           .path = path,
                           .query = query,
                           .accept = w->selection.metadata ? ACCEPT_METADATA : NULL,
                           .timeout_ms = seconds * 1000 + STREAM_GRACE_MS,
                           .cancel = w->cancel};
    w->decoder = decoder;
    return kube_stream(w->client, &r, on_bytes, w, error);
}

/* A list. Returns how long to wait then. */
static gint64 step_list(KubeWatch *w, GError **error)
{
    g_autoptr(GError) cause = NULL;
    if (list(w, &cause)) {
        w->away.failures = 0;
        return 0;
    }
    /* Pages that became too old once happen; each time, they are trouble. */
    if (cause->code != KUBE_ERROR_GONE || w->away.failures > 0)
        g_propagate_error(error, g_error_copy(cause));
    return MAX(kube_backoff_next_ms(&w->away), kube_error_retry_after_ms(cause));
}

static gboolean is_broken(const GError *e)
{
    return e->code == KUBE_ERROR_UNREACHABLE || e->code == KUBE_ERROR_DEADLINE;
}

/* It says nothing of where we are: that is gone on from. */
static gboolean is_away(const GError *e)
{
    return is_broken(e) || e->code == KUBE_ERROR_TOO_MANY_REQUESTS || e->code == KUBE_ERROR_SERVER;
}

/* A watch, until it ends. Returns how long to wait then. */
static gint64 step_stream(KubeWatch *w, GError **error)
{
    const gint64 began_us = g_get_monotonic_time();
    g_autoptr(GError) cause = NULL;
    w->opened = w->alive = FALSE;
    stream(w, &cause);
    const gboolean away = cause && is_away(cause);
    const gboolean steady =
        w->alive || g_get_monotonic_time() - began_us >= w->times.steady_ms * 1000;
    if (cause && !away)
        g_clear_pointer(&w->from, g_free);
    gint64 pause_ms = 0;
    if (away && !w->opened) {
        pause_ms = kube_backoff_next_ms(&w->away);
    } else {
        w->away.failures = 0;
        if (steady)
            w->unsteady.failures = 0;
        else
            pause_ms = kube_backoff_next_ms(&w->unsteady);
    }
    const gint64 asked_ms = kube_error_retry_after_ms(cause);
    /* An old resourceVersion is no trouble, and neither is a stream that broke after a while. */
    if (cause && cause->code != KUBE_ERROR_GONE && !(w->opened && steady && is_broken(cause)))
        g_propagate_error(error, g_steal_pointer(&cause));
    return MAX(pause_ms, asked_ms);
}

static void *watch_thread(void *data)
{
    KubeWatch *w = data;
    while (!g_cancellable_is_cancelled(w->cancel)) {
        g_autoptr(GError) error = NULL;
        const gint64 pause_ms = w->from ? step_stream(w, &error) : step_list(w, &error);
        if (error)
            ill(w, error);
        if (pause_ms > 0)
            kube_pause(pause_ms, w->cancel, NULL);
    }
    return NULL;
}

static gint64 or_default(gint64 value, gint64 otherwise)
{
    return value > 0 ? value : otherwise;
}

KubeWatch *kube_watch_new(KubeClient *client, const KubeSelection *s, const KubeWatchOps *ops,
                          void *data, const KubeWatchTimes *times)
{
    static const KubeWatchTimes none = {0};
    const KubeWatchTimes *t = times ? times : &none;
    KubeWatch *w = g_new0(KubeWatch, 1);
    w->client = client;
    w->group = g_strdup(s->resource.group);
    w->version = g_strdup(s->resource.version);
    w->plural = g_strdup(s->resource.plural);
    w->namespace = g_strdup(s->namespace);
    w->labels = g_strdup(s->labels);
    w->fields = g_strdup(s->fields);
    w->selection = (KubeSelection){.resource = {w->group, w->version, w->plural},
                                   .namespace = w->namespace,
                                   .labels = w->labels,
                                   .fields = w->fields,
                                   .metadata = s->metadata};
    w->ops = *ops;
    w->data = data;
    w->times = (KubeWatchTimes){.list_ms = or_default(t->list_ms, 30000),
                                .stream_s = or_default(t->stream_s, 300),
                                .steady_ms = or_default(t->steady_ms, 10000),
                                .line_max = t->line_max ? t->line_max : 4 * 1024 * 1024,
                                .page = t->page};
    w->away = w->unsteady = (KubeBackoff){.first_ms = or_default(t->first_pause_ms, 500),
                                          .most_ms = or_default(t->most_pause_ms, 10000)};
    w->cancel = g_cancellable_new();
    w->known = kube_known_new(on_change, w);
    int rc = pthread_create(&w->thread, NULL, watch_thread, w);
    if (rc != 0)
        g_error("no thread: %s", g_strerror(rc));
    return w;
}

void kube_watch_free(KubeWatch *w)
{
    if (!w)
        return;
    g_cancellable_cancel(w->cancel);
    pthread_join(w->thread, NULL);
    kube_known_free(w->known);
    g_object_unref(w->cancel);
    g_free(w->from);
    g_free(w->group);
    g_free(w->version);
    g_free(w->plural);
    g_free(w->namespace);
    g_free(w->labels);
    g_free(w->fields);
    g_free(w);
}
