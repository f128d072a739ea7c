/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/kube/client.h"
#include <pthread.h>
#include <string.h>
#include "driver/kube/backoff.h"
#include "driver/kube/counts.h"
#include "driver/kube/error.h"
#include "driver/kube/transport.h"

#define TIMEOUT_MS 30000
#define ANSWER_MAX (16 * 1024 * 1024)
#define FIRST_PAUSE_MS 200
#define MOST_PAUSE_MS 5000

struct KubeClient {
    KubeConfig *config;
    KubeTransport *transport;
    KubeCounts *counts;
    gsize answer_max;
    pthread_mutex_t lock;
    KubeBucket writes; /* guarded by lock */
};

KubeClient *kube_client_new(KubeConfig *config, const KubeClientOptions *options)
{
    static const KubeClientOptions none = {0};
    const KubeClientOptions *o = options ? options : &none;
    KubeClient *c = g_new0(KubeClient, 1);
    c->config = config;
    c->transport = kube_transport_new(config);
    c->counts = kube_counts_new();
    c->answer_max = o->answer_max ? o->answer_max : ANSWER_MAX;
    pthread_mutex_init(&c->lock, NULL);
    const double per_second = o->writes_per_second > 0 ? o->writes_per_second : 10;
    const double burst = o->write_burst > 0 ? o->write_burst : 20;
    kube_bucket_init(&c->writes, per_second, burst, g_get_monotonic_time());
    return c;
}

void kube_client_free(KubeClient *c)
{
    if (!c)
        return;
    kube_transport_free(c->transport);
    kube_counts_free(c->counts);
    kube_config_free(c->config);
    pthread_mutex_destroy(&c->lock);
    g_free(c);
}

const char *kube_client_namespace(const KubeClient *c)
{
    return c->config->namespace;
}

void kube_client_each_count(KubeClient *c, void (*each)(const char *, int, guint64, void *),
                            void *data)
{
    kube_counts_each(c->counts, each, data);
}

gboolean kube_pause(gint64 ms, GCancellable *cancel, GError **error)
{
    GPollFD fd;
    const gboolean can = cancel && g_cancellable_make_pollfd(cancel, &fd);
    const gint64 until = g_get_monotonic_time() + ms * 1000;
    const guint fds = can ? 1 : 0;
    const gint64 step_ms = can || !cancel ? 60000 : 500;
    gint64 left_ms;
    while (!g_cancellable_is_cancelled(cancel) &&
           (left_ms = (until - g_get_monotonic_time() + 999) / 1000) > 0)
        g_poll(&fd, fds, (gint)MIN(left_ms, step_ms));
    if (can)
        g_cancellable_release_fd(cancel);
    if (!g_cancellable_is_cancelled(cancel))
        return TRUE;
    g_set_error_literal(error, KUBE_ERROR, KUBE_ERROR_CANCELLED, "cancelled");
    return FALSE;
}

static char *target_of(const KubeRequest *r)
{
    GString *target = g_string_new(r->path);
    char mark = '?';
    for (const char *const *q = r->query; q && q[0]; q += 2, mark = '&') {
        g_string_append_c(target, mark);
        g_string_append_uri_escaped(target, q[0], NULL, FALSE);
        g_string_append_c(target, '=');
        g_string_append_uri_escaped(target, q[1], NULL, FALSE);
    }
    return g_string_free(target, FALSE);
}

static const char *const content_types[] = {
    [KUBE_BODY_JSON] = "application/json",
    [KUBE_BODY_MERGE_PATCH] = "application/merge-patch+json",
    /* JSON is YAML. */
    [KUBE_BODY_APPLY] = "application/apply-patch+yaml",
};

static gboolean is_write(const KubeRequest *r)
{
    return !g_str_equal(r->method, "GET");
}

/* A repetition does no harm; client.h says what it means for DELETE. */
static gboolean is_repeatable(const KubeRequest *r)
{
    return !g_str_equal(r->method, "POST") && !g_str_equal(r->method, "PUT");
}

static gboolean may_repeat(const KubeRequest *r, const KubeExchange *x, const GError *error)
{
    switch (error->code) {
    case KUBE_ERROR_TOO_MANY_REQUESTS:
        return TRUE;
    case KUBE_ERROR_SERVER:
        return is_repeatable(r) || (x->status == 503 && x->retry_after_ms >= 0);
    case KUBE_ERROR_UNREACHABLE:
        return is_repeatable(r) || x->unsent;
    default:
        return FALSE;
    }
}

/* One exchange, counted. An HTTP status that is no success is an error. */
static gboolean exchange(KubeClient *c, KubeExchange *x, GError **error)
{
    char *token = NULL;
    gboolean ok = FALSE;
    for (unsigned i = 0; i < 2; i++) {
        if (c->config->token &&
            !(token = kube_token_get(c->config->token, g_get_monotonic_time(), error)))
            return FALSE;
        x->token = token;
        ok = kube_exchange(c->transport, x, error);
        kube_counts_add(c->counts, x->method, x->status);
        if (!ok || x->status != 401 || !token ||
            !kube_token_renew(c->config->token, token, g_get_monotonic_time()))
            break;
        kube_token_wipe(g_steal_pointer(&token));
    }
    kube_token_wipe(token);
    if (ok && (x->status < 200 || x->status > 299)) {
        g_autofree char *what = g_strdup_printf("%s %s", x->method, x->target);
        kube_error_set_answer(error, what, x->status, x->retry_after_ms, x->answer->str,
                              x->answer->len);
        return FALSE;
    }
    return ok;
}

static gboolean await_turn(KubeClient *c, const KubeRequest *r, gint64 end_us, GError **error)
{
    if (!is_write(r) || r->urgent)
        return TRUE;
    pthread_mutex_lock(&c->lock);
    const gint64 now_us = g_get_monotonic_time();
    const gint64 wait_ms = kube_bucket_take_ms(&c->writes, now_us, (end_us - now_us) / 1000);
    pthread_mutex_unlock(&c->lock);
    if (wait_ms < 0) {
        g_set_error(error, KUBE_ERROR, KUBE_ERROR_DEADLINE,
                    "%s %s: not sent, as writes are limited to a rate and its turn would come "
                    "after its time",
                    r->method, r->path);
        return FALSE;
    }
    return wait_ms == 0 || kube_pause(wait_ms, r->cancel, error);
}

static gboolean perform(KubeClient *c, const KubeRequest *r, KubeExchange *x, GError **error)
{
    KubeBackoff backoff = {.first_ms = FIRST_PAUSE_MS, .most_ms = MOST_PAUSE_MS};
    const gint64 timeout_ms = r->timeout_ms > 0 ? r->timeout_ms : TIMEOUT_MS;
    const gint64 end_us = g_get_monotonic_time() + timeout_ms * 1000;
    g_autofree char *target = target_of(r);
    char *body = r->body ? json_dumps(r->body, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    x->method = r->method;
    x->target = target;
    x->content_type = content_types[r->body_type];
    x->accept = r->accept;
    x->body = body;
    x->body_bytes = body ? strlen(body) : 0;
    x->answer_max = c->answer_max;
    x->cancel = r->cancel;
    gboolean ok = FALSE;
    for (unsigned tried = 1;; tried++) {
        g_autoptr(GError) cause = NULL;
        if (!await_turn(c, r, end_us, error))
            break;
        x->timeout_ms = (end_us - g_get_monotonic_time()) / 1000;
        ok = exchange(c, x, &cause);
        if (ok)
            break;
        const gint64 asked_ms = kube_error_retry_after_ms(cause);
        const gint64 pause_ms = MAX(kube_backoff_next_ms(&backoff), asked_ms);
        if (!may_repeat(r, x, cause) || tried == r->tries ||
            g_get_monotonic_time() + pause_ms * 1000 >= end_us) {
            g_propagate_error(error, g_steal_pointer(&cause));
            break;
        }
        if (!kube_pause(pause_ms, r->cancel, error))
            break;
    }
    free(body);
    x->target = x->body = NULL;
    return ok;
}

gboolean kube_request(KubeClient *c, const KubeRequest *r, json_t **answer, GError **error)
{
    g_auto(KubeExchange) x = {0};
    if (answer)
        *answer = NULL;
    if (!perform(c, r, &x, error))
        return FALSE;
    if (!answer || x.answer->len == 0)
        return TRUE;
    json_error_t why;
    *answer = json_loadb(x.answer->str, x.answer->len, JSON_ALLOW_NUL, &why);
    if (*answer)
        return TRUE;
    /* Not the text of jansson, which quotes the bytes. */
    g_set_error(error, KUBE_ERROR, KUBE_ERROR_MALFORMED,
                "%s %s: the answer is no JSON at its byte %d of %" G_GSIZE_FORMAT, r->method,
                r->path, why.position, x.answer->len);
    return FALSE;
}

gboolean kube_stream(KubeClient *c, const KubeRequest *r,
                     gboolean (*on_bytes)(const char *, gsize, void *, GError **), void *data,
                     GError **error)
{
    g_auto(KubeExchange) x = {.on_bytes = on_bytes, .data = data};
    KubeRequest once = *r;
    once.tries = 1;
    return perform(c, &once, &x, error);
}

gboolean kube_apply(KubeClient *c, const KubeRequest *request, const char *field_manager,
                    gboolean force, json_t **answer, GError **error)
{
    const char *const query[] = {"fieldManager", field_manager, force ? "force" : NULL, "true",
                                 NULL};
    KubeRequest r = *request;
    r.method = "PATCH";
    r.query = query;
    r.body_type = KUBE_BODY_APPLY;
    return kube_request(c, &r, answer, error);
}

gboolean kube_merge_patch(KubeClient *c, const char *path, const json_t *body, gint64 timeout_ms,
                          GCancellable *cancel, GError **error)
{
    const KubeRequest r = {.method = "PATCH",
                           .path = path,
                           .body = body,
                           .body_type = KUBE_BODY_MERGE_PATCH,
                           .timeout_ms = timeout_ms,
                           .cancel = cancel};
    return kube_request(c, &r, NULL, error);
}
