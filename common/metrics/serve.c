/* SPDX-License-Identifier: Apache-2.0 */
#include "common/metrics/serve.h"
#include "common/metrics/openmetrics.h"

struct MetricsServer {
    HttpServer *http;
    GBytes *(*text)(void *data);
    void *data;
};

static void answer_metrics(const HttpRequest *request, HttpReply *reply, void *data)
{
    const MetricsServer *s = data;
    (void)request;
    reply->content_type = OPENMETRICS_TYPE;
    reply->body = s->text(s->data);
}

static void answer_health(const HttpRequest *request, HttpReply *reply, void *data)
{
    (void)request, (void)data;
    reply->body = g_bytes_new_static("ok\n", 3);
}

/* ---- certificates ---- */

static char *date_of(gint64 unix_s)
{
    g_autoptr(GDateTime) date = g_date_time_new_from_unix_utc(unix_s);
    return date ? g_date_time_format(date, "%Y-%m-%d %H:%M:%S UTC") : g_strdup("for ever");
}

static void log_certificate(gint64 expires_s)
{
    g_autofree char *date = date_of(expires_s);
    if (expires_s <= g_get_real_time() / G_USEC_PER_SEC)
        g_warning("metrics: the certificate expired %s, and Prometheus refuses it: replace its "
                  "Secret",
                  date);
    else
        g_message("metrics: over TLS with a certificate that is valid until %s", date);
}

static void on_certificate(const GError *error, gint64 expires_s, void *data)
{
    (void)data;
    if (error)
        g_warning("metrics: the previous certificate is still in use: %s", error->message);
    else
        log_certificate(expires_s);
}

static void on_authorities(const GError *error, void *data)
{
    (void)data;
    if (error)
        g_warning("metrics: the previous authorities of clients still count: %s", error->message);
    else
        g_message("metrics: new authorities of clients were read");
}

/* ---- beginning and end ---- */

gboolean metrics_check(const MetricsConfig *c, GError **error)
{
    if (c->cert_dir && !c->address) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "--metrics-cert-dir=%s: needs --metrics-address too", c->cert_dir);
        return FALSE;
    }
    if (c->client_ca && !c->cert_dir) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "--metrics-client-ca=%s: clients show a certificate over TLS only; give "
                    "--metrics-cert-dir too",
                    c->client_ca);
        return FALSE;
    }
    return TRUE;
}

void metrics_config_clear(MetricsConfig *c)
{
    g_clear_pointer(&c->address, g_free);
    g_clear_pointer(&c->cert_dir, g_free);
    g_clear_pointer(&c->client_ca, g_free);
}

MetricsServer *metrics_server_new(const MetricsConfig *from, GBytes *(*text)(void *data),
                                  void *data, GError **error)
{
    MetricsServer *s = g_new0(MetricsServer, 1);
    const HttpRoute routes[] = {
        {.method = "GET", .path = "/metrics", .handle = answer_metrics, .data = s},
        {.method = "GET", .path = "/healthz", .handle = answer_health},
    };
    const HttpServerConfig config = {.address = from->address,
                                     .what = "--metrics-address",
                                     .certificate = from->cert_dir,
                                     .client_ca = from->client_ca,
                                     .client_ca_flag = "--metrics-client-ca",
                                     .routes = routes,
                                     .n_routes = G_N_ELEMENTS(routes),
                                     .on_certificate = on_certificate,
                                     .on_authorities = on_authorities};
    s->text = text;
    s->data = data;
    s->http = http_server_new(&config, error);
    if (!s->http) {
        g_free(s);
        return NULL;
    }
    if (from->cert_dir)
        log_certificate(http_server_expires_s(s->http));
    return s;
}

void metrics_server_free(MetricsServer *s)
{
    if (!s)
        return;
    http_server_free(s->http);
    g_free(s);
}
