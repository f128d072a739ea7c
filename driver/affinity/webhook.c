/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/affinity/webhook.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "common/error.h"
#include "common/http/server.h"
#include "driver/kube/watch/watch.h"
#include "driver/affinity/review.h"

/* A pod has some kilobytes. A larger one is created unchanged: parsing 3 MiB takes 0.2 s of the
 * only thread, and all others would wait for it. */
#define REVIEW_MAX (256 * 1024)
#define REVIEWS_MAX (4 * 1024 * 1024)
/* An API server keeps 25 that idle, and there may be five of them. */
#define CONNECTIONS_MAX 256

struct Webhook {
    HttpServer *server;
    KubeWatch *watch;
    pthread_mutex_t lock;
    GHashTable *hints; /* lock: "namespace/claim" -> dataset */
};

/* ---- hints ---- */

static char *key_of(const char *namespace, const char *claim)
{
    return g_strconcat(namespace, "/", claim, NULL);
}

static void on_hint(KubeChange change, const json_t *object, void *data)
{
    Webhook *w = data;
    g_auto(Hint) hint = {0};
    if (!hint_read(object, &hint))
        return;
    char *key = key_of(hint.namespace, hint.claim);
    pthread_mutex_lock(&w->lock);
    if (change == KUBE_DELETED || !*hint.dataset) {
        g_hash_table_remove(w->hints, key);
        g_free(key);
    } else {
        g_hash_table_replace(w->hints, key, g_strdup(hint.dataset));
    }
    pthread_mutex_unlock(&w->lock);
}

static void on_trouble(const GError *error, void *data)
{
    (void)data;
    if (error)
        g_warning("webhook: DatasetHints cannot be watched: %s", error->message);
    else
        g_message("webhook: DatasetHints are watched again");
}

static gboolean find_hint(const char *namespace, const char *claim,
                          char dataset[DATASET_KEY_DIGITS + 1], void *data)
{
    Webhook *w = data;
    g_autofree char *key = key_of(namespace, claim);
    pthread_mutex_lock(&w->lock);
    const char *found = g_hash_table_lookup(w->hints, key);
    g_strlcpy(dataset, found ? found : "", DATASET_KEY_DIGITS + 1);
    pthread_mutex_unlock(&w->lock);
    return *dataset != 0;
}

/* ---- requests ---- */

static void mutate(const HttpRequest *request, HttpReply *reply, void *data)
{
    const PreferencesHints hints = {.find = find_hint, .data = data};
    g_autoptr(GError) error = NULL;
    char *answer = review_answer(request->body, request->size, &hints, &error);
    if (!answer) {
        reply->status = 400;
        reply->body = g_bytes_new(error->message, strlen(error->message));
        return;
    }
    reply->content_type = "application/json";
    reply->body = g_bytes_new_with_free_func(answer, strlen(answer), free, answer);
}

static char *date_of(gint64 unix_s)
{
    g_autoptr(GDateTime) date = g_date_time_new_from_unix_utc(unix_s);
    return date ? g_date_time_format(date, "%Y-%m-%d %H:%M:%S UTC") : g_strdup("for ever");
}

static void tell_of_certificate(const char *how, gint64 expires_s)
{
    g_autofree char *date = date_of(expires_s);
    if (expires_s <= g_get_real_time() / G_USEC_PER_SEC)
        g_warning("webhook: %s a certificate that expired %s, and the API server refuses: replace "
                  "its Secret",
                  how, date);
    else
        g_message("webhook: %s a certificate that is valid until %s", how, date);
}

static void on_certificate(const GError *error, gint64 expires_s, void *data)
{
    (void)data;
    if (error)
        g_warning("webhook: the certificate there was is shown on: %s", error->message);
    else
        tell_of_certificate("from now on", expires_s);
}

static void on_authorities(const GError *error, void *data)
{
    (void)data;
    if (error)
        g_warning("webhook: the authorities there were count on: %s", error->message);
    else
        g_message("webhook: there are new authorities of clients");
}

/* ---- beginning and end ---- */

Webhook *webhook_new(KubeClient *client, const WebhookConfig *from, GError **error)
{
    static const KubeWatchOps ops = {.on_change = on_hint, .on_trouble = on_trouble};
    const KubeSelection all_hints = {.resource = hint_resource};
    Webhook *w = g_new0(Webhook, 1);
    const HttpRoute routes[] = {{"POST", WEBHOOK_PATH, mutate, w}};
    const HttpServerConfig config = {.address = from->address,
                                     .what = "--webhook-address",
                                     .certificate = from->certificate,
                                     .client_ca = from->client_ca,
                                     .client_ca_flag = "--webhook-client-ca",
                                     .routes = routes,
                                     .n_routes = G_N_ELEMENTS(routes),
                                     .connections = CONNECTIONS_MAX,
                                     .body_max = REVIEW_MAX,
                                     .bodies_max = REVIEWS_MAX,
                                     .on_certificate = on_certificate,
                                     .on_authorities = on_authorities};
    pthread_mutex_init(&w->lock, NULL);
    w->hints = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    w->server = http_server_new(&config, error);
    if (!w->server) {
        webhook_free(w);
        return NULL;
    }
    w->watch = kube_watch_new(client, &all_hints, &ops, w, NULL);
    tell_of_certificate("it serves with", http_server_expires_s(w->server));
    return w;
}

void webhook_free(Webhook *w)
{
    if (!w)
        return;
    http_server_free(w->server);
    kube_watch_free(w->watch);
    g_hash_table_unref(w->hints);
    pthread_mutex_destroy(&w->lock);
    g_free(w);
}

guint16 webhook_port(const Webhook *w)
{
    return http_server_port(w->server);
}
