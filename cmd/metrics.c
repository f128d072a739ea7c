#include "cmd/metrics.h"
#include "cache/report/openmetrics.h"

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

MetricsServer *metrics_server_new(const char *address, GBytes *(*text)(void *data), void *data,
                                  GError **error)
{
    MetricsServer *s = g_new0(MetricsServer, 1);
    const HttpRoute routes[] = {
        {.method = "GET", .path = "/metrics", .handle = answer_metrics, .data = s},
        {.method = "GET", .path = "/healthz", .handle = answer_health},
    };
    const HttpServerConfig config = {.address = address,
                                     .what = "--metrics-address",
                                     .routes = routes,
                                     .n_routes = G_N_ELEMENTS(routes)};
    s->text = text;
    s->data = data;
    s->http = http_server_new(&config, error);
    if (s->http)
        return s;
    g_free(s);
    return NULL;
}

void metrics_server_free(MetricsServer *s)
{
    if (!s)
        return;
    http_server_free(s->http);
    g_free(s);
}
