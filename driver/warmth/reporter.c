/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmth/reporter.h"
#include <pthread.h>
#include "driver/kube/error.h"
#include "driver/node/hearthd/hearthd.h"
#include "driver/node/hearthd/manifest.h"
#include "driver/warmth/node_cache.h"

#define ANSWER_MS 5000
#define WRITE_MS 10000

struct Reporter {
    KubeClient *client;
    ReporterWarmups warmups;
    char *node, *socket, *tier, *zone;
    LostQuery lost;
    GCancellable *stop;
    pthread_t thread;
    /* Of the thread. */
    json_t *written; /* the status; NULL: none */
    gint64 written_us;
    gboolean troubled; /* and that was logged */
};

static void log_trouble(Reporter *r, const GError *error)
{
    if (error && !r->troubled)
        g_warning("NodeCache %s is not written: %s", r->node, error->message);
    else if (!error && r->troubled)
        g_message("NodeCache %s is written again", r->node);
    r->troubled = error != NULL;
}

static json_t *make_report(Reporter *r, GError **error)
{
    g_autoptr(HearthdLink) link = hearthd_connect(r->socket, NULL, error);
    json_auto_t *status = link ? hearthd_status(link, ANSWER_MS, error) : NULL;
    json_auto_t *datasets = status ? hearthd_datasets(link, ANSWER_MS, error) : NULL;
    json_t *report = datasets ? node_cache_status(status, datasets, g_get_real_time()) : NULL;
    g_autoptr(GPtrArray) lost = report ? lost_publications(&r->lost, NULL) : NULL;
    if (lost)
        node_cache_lost(report, lost);
    if (report)
        node_cache_place(report, r->tier, r->zone);
    if (report)
        json_object_set_new(report, "warmups", r->warmups.runs(r->warmups.data));
    return report;
}

static gboolean create(Reporter *r, GError **error)
{
    g_autofree char *path = kube_path(&node_cache_resource, NULL, NULL, NULL);
    json_auto_t *body = json_pack("{s:s, s:s, s:{s:s}}", "apiVersion", WARM_API_VERSION, "kind",
                                  "NodeCache", "metadata", "name", r->node);
    const KubeRequest request = {
        .method = "POST", .path = path, .body = body, .timeout_ms = WRITE_MS, .cancel = r->stop};
    g_autoptr(GError) cause = NULL;
    gboolean good = kube_request(r->client, &request, NULL, &cause) ||
                    g_error_matches(cause, KUBE_ERROR, KUBE_ERROR_ALREADY_EXISTS);
    if (!good)
        g_propagate_error(error, g_steal_pointer(&cause));
    return good;
}

static gboolean patch(Reporter *r, json_t *report, GError **error)
{
    g_autofree char *path = kube_path(&node_cache_resource, NULL, r->node, "status");
    json_auto_t *body = json_pack("{s:O}", "status", report);
    return kube_merge_patch(r->client, path, body, WRITE_MS, r->stop, error);
}

static gboolean write_report(Reporter *r, json_t *report, GError **error)
{
    g_autoptr(GError) cause = NULL;
    if (patch(r, report, &cause))
        return TRUE;
    if (g_error_matches(cause, KUBE_ERROR, KUBE_ERROR_NOT_FOUND))
        return create(r, error) && patch(r, report, error);
    g_propagate_error(error, g_steal_pointer(&cause));
    return FALSE;
}

static void report_once(Reporter *r)
{
    g_autoptr(GError) error = NULL;
    json_auto_t *report = make_report(r, &error);
    const gint64 now = g_get_monotonic_time();
    const gboolean due = now - r->written_us >= REPORTER_BEAT_MS * 1000;
    if (report && !due && !node_cache_is_news(r->written, report))
        return;
    if (report && write_report(r, report, &error)) {
        g_clear_pointer(&r->written, json_decref);
        r->written = json_incref(report);
        r->written_us = now;
    }
    if (!g_cancellable_is_cancelled(r->stop))
        log_trouble(r, error);
}

static void *reporter_thread(void *data)
{
    Reporter *r = data;
    do
        report_once(r);
    while (kube_pause(REPORTER_LOOK_MS, r->stop, NULL));
    return NULL;
}

Reporter *reporter_new(KubeClient *client, const ReporterNode *node, const ReporterWarmups *warmups)
{
    Reporter *r = g_new0(Reporter, 1);
    r->client = client;
    r->warmups = *warmups;
    r->node = g_strdup(node->name);
    r->tier = g_strdup(node->tier);
    r->zone = g_strdup(node->zone);
    r->socket = g_strdup(node->lost.hearthd_socket);
    r->lost = node->lost;
    r->lost.hearthd_socket = r->socket;
    r->stop = g_cancellable_new();
    int failed = pthread_create(&r->thread, NULL, reporter_thread, r);
    if (failed)
        g_error("cannot start a thread: %s", g_strerror(failed));
    return r;
}

void reporter_free(Reporter *r)
{
    if (!r)
        return;
    g_cancellable_cancel(r->stop);
    pthread_join(r->thread, NULL);
    g_object_unref(r->stop);
    g_clear_pointer(&r->written, json_decref);
    g_free(r->node);
    g_free(r->tier);
    g_free(r->zone);
    g_free(r->socket);
    g_free(r);
}
