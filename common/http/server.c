/* SPDX-License-Identifier: Apache-2.0 */
#include "common/http/server.h"
#include <errno.h>
#include <gnutls/gnutls.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/error.h"
#include "common/http/address.h"
#include "common/http/authorities.h"
#include "common/http/rotation.h"

/* Deadlines are looked at so often, while there are connections. */
#define SWEEP_MS 500

struct HttpServer {
    struct MHD_Daemon *daemon;
    HttpRoute *routes;
    HttpServerConfig config;
    guint16 port;
    gint64 expires_s;
    int stop_fd;
    pthread_t thread;

    /* The thread's. */
    HttpRotation *rotation;       /* NULL: without TLS */
    HttpAuthorities *authorities; /* NULL: anyone may ask */
    GQueue connections;           /* of Connection */
    gsize bodies;                 /* bytes of all */
    gboolean closed;              /* one has been, in the latest run */
};

typedef struct Connection {
    HttpServer *server;
    GList *link;
    int fd;
    gint64 until_us;              /* monotonic; then it is closed */
    HttpCertificate *certificate; /* that is shown to it; NULL: without TLS */
} Connection;

/* State of one request. */
typedef struct Exchange {
    const HttpRoute *route;
    GString *body;
    gsize counted; /* of server->bodies */
    guint refused; /* a status; 0: not */
    const char *allow;
} Exchange;

/* ---- answers ---- */

static enum MHD_Result send_reply(struct MHD_Connection *connection, HttpReply *reply,
                                  const char *allow)
{
    gsize size = 0;
    const void *bytes = reply->body ? g_bytes_get_data(reply->body, &size) : NULL;
    struct MHD_Response *response =
        MHD_create_response_from_buffer(size, (void *)bytes, MHD_RESPMEM_MUST_COPY);
    enum MHD_Result queued = MHD_NO;
    if (response) {
        if (size > 0)
            MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, reply->content_type);
        if (allow)
            MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, allow);
        queued = MHD_queue_response(connection, reply->status, response);
        MHD_destroy_response(response);
    }
    g_clear_pointer(&reply->body, g_bytes_unref);
    return queued;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, const Exchange *x)
{
    HttpReply reply = {.status = x->refused};
    return send_reply(connection, &reply, x->allow);
}

static enum MHD_Result answer(struct MHD_Connection *connection, const char *method,
                              const Exchange *x)
{
    const HttpRequest request = {.method = method,
                                 .path = x->route->path,
                                 .content_type = MHD_lookup_connection_value(
                                     connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_TYPE),
                                 .body = x->body->str,
                                 .size = x->body->len};
    HttpReply reply = {.status = MHD_HTTP_OK, .content_type = "text/plain; charset=utf-8"};
    x->route->handle(&request, &reply, x->route->data);
    return send_reply(connection, &reply, NULL);
}

/* ---- requests ---- */

static const HttpRoute *find_route(const HttpServer *s, const char *method, const char *path,
                                   Exchange *x)
{
    x->refused = MHD_HTTP_NOT_FOUND;
    for (gsize i = 0; i < s->config.n_routes; i++) {
        const HttpRoute *route = &s->routes[i];
        if (!g_str_equal(route->path, path))
            continue;
        if (g_str_equal(route->method, method)) {
            x->refused = 0;
            return route;
        }
        x->refused = MHD_HTTP_METHOD_NOT_ALLOWED;
        x->allow = route->method;
    }
    return NULL;
}

/* Whether the client may ask at all. A handshake that succeeded proves its key; the chain is looked
 * at here, so that a client which may not learns so by a status. */
static gboolean is_known(const HttpServer *s, struct MHD_Connection *connection)
{
    if (!s->authorities)
        return TRUE;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    return info && info->tls_session &&
           http_authorities_know(s->authorities, info->tls_session, g_get_monotonic_time());
}

/* What says how much will come is refused before it does. */
static void look_at_length(const HttpServer *s, struct MHD_Connection *connection, Exchange *x)
{
    guint64 length;
    const char *text =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    if (!x->refused && text &&
        (!g_ascii_string_to_unsigned(text, 10, 0, G_MAXUINT64, &length, NULL) ||
         length > s->config.body_max))
        x->refused = MHD_HTTP_CONTENT_TOO_LARGE;
}

static void drop_body(HttpServer *s, Exchange *x)
{
    s->bodies -= x->counted;
    x->counted = 0;
    g_string_free(x->body, TRUE);
    x->body = g_string_new(NULL);
}

static void take_body(HttpServer *s, Exchange *x, const char *bytes, gsize size)
{
    if (x->refused)
        return;
    if (size > s->config.body_max - x->body->len)
        x->refused = MHD_HTTP_CONTENT_TOO_LARGE;
    else if (size > s->config.bodies_max - s->bodies)
        x->refused = MHD_HTTP_SERVICE_UNAVAILABLE;
    if (x->refused) {
        drop_body(s, x);
        return;
    }
    g_string_append_len(x->body, bytes, (gssize)size);
    x->counted += size;
    s->bodies += size;
}

static Connection *connection_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

static void allow_us(Connection *c, gint64 ms)
{
    if (c)
        c->until_us = g_get_monotonic_time() + ms * 1000;
}

static enum MHD_Result on_request(void *data, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **state)
{
    HttpServer *s = data;
    Exchange *x = *state;
    (void)version;
    if (!x) {
        *state = x = g_new0(Exchange, 1);
        x->body = g_string_new(NULL);
        x->route = find_route(s, method, url, x);
        if (!is_known(s, connection))
            x->refused = MHD_HTTP_UNAUTHORIZED;
        look_at_length(s, connection, x);
        allow_us(connection_of(connection), s->config.request_ms);
        /* Answered now, the connection is closed if there is a body to come. */
        return x->refused ? refuse(connection, x) : MHD_YES;
    }
    if (*upload_size) {
        take_body(s, x, upload, *upload_size);
        *upload_size = 0;
        return MHD_YES;
    }
    allow_us(connection_of(connection), s->config.request_ms);
    return x->refused ? refuse(connection, x) : answer(connection, method, x);
}

static void on_completed(void *data, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode code)
{
    HttpServer *s = data;
    Exchange *x = *state;
    (void)code;
    allow_us(connection_of(connection), s->config.idle_ms + s->config.request_ms);
    if (!x)
        return;
    s->bodies -= x->counted;
    g_string_free(x->body, TRUE);
    g_free(x);
    *state = NULL;
}

/* ---- connections ---- */

static void on_connection(void *data, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    HttpServer *s = data;
    Connection *c = *context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        c = g_new0(Connection, 1);
        c->server = s;
        c->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        allow_us(c, s->config.request_ms);
        if (s->rotation)
            c->certificate = http_rotation_get(s->rotation, g_get_monotonic_time());
        g_queue_push_tail(&s->connections, c);
        c->link = g_queue_peek_tail_link(&s->connections);
        *context = c;
    } else if (c) {
        g_queue_delete_link(&s->connections, c->link);
        http_certificate_unref(c->certificate);
        g_free(c);
        *context = NULL;
        s->closed = TRUE;
    }
}

/* libmicrohttpd leaves its connection with the session (its adapter of pre-shared keys finds it so
 * too), and the certificate is the connection's, which outlives the session. */
static int on_handshake(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
                        gnutls_pcert_st **chain, unsigned *chain_length, gnutls_ocsp_data_st **ocsp,
                        unsigned *ocsp_length, gnutls_privkey_t *key, unsigned *flags)
{
    struct MHD_Connection *connection = gnutls_session_get_ptr(session);
    Connection *c = connection ? connection_of(connection) : NULL;
    (void)info;
    *ocsp = NULL;
    *ocsp_length = 0;
    *flags = 0;
    if (!c || !c->certificate)
        return -1;
    /* Names of authorities would be those that there were at the start, and a client that holds
     * another's certificate would not show it. */
    gnutls_certificate_send_x509_rdn_sequence(session, 1);
    http_certificate_show(c->certificate, chain, chain_length, key);
    return 0;
}

/* Returns how long until the next look, -1 for ever. */
static int sweep(HttpServer *s)
{
    const gint64 now_us = g_get_monotonic_time();
    for (GList *link = s->connections.head; link; link = link->next) {
        Connection *c = link->data;
        /* Which libmicrohttpd sees as the client's doing. */
        if (now_us >= c->until_us)
            shutdown(c->fd, SHUT_RDWR);
    }
    return g_queue_is_empty(&s->connections) ? -1 : SWEEP_MS;
}

static void *serve(void *data)
{
    HttpServer *s = data;
    const int epoll_fd = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    struct pollfd fds[] = {{.fd = epoll_fd, .events = POLLIN},
                           {.fd = s->stop_fd, .events = POLLIN}};
    while (!fds[1].revents) {
        MHD_UNSIGNED_LONG_LONG ms;
        int wait_ms = sweep(s);
        if (MHD_get_timeout(s->daemon, &ms) == MHD_YES && (wait_ms < 0 || ms < (guint64)wait_ms))
            wait_ms = (int)MIN(ms, G_MAXINT);
        /* At the limit of connections libmicrohttpd listens no more; the next run after one has
         * ended begins again, and nothing else would wake us for it. */
        if (s->closed)
            wait_ms = 0;
        s->closed = FALSE;
        if (poll(fds, G_N_ELEMENTS(fds), wait_ms) < 0 && errno != EINTR)
            g_error("poll: %s", g_strerror(errno));
        MHD_run(s->daemon);
    }
    return NULL;
}

/* ---- beginning and end ---- */

static void or_default(HttpServerConfig *c)
{
    c->connections = c->connections ? c->connections : 64;
    c->body_max = c->body_max ? c->body_max : 64 * 1024;
    c->bodies_max = MAX(c->bodies_max ? c->bodies_max : 8 * 1024 * 1024, c->body_max);
    c->request_ms = c->request_ms ? c->request_ms : 10000;
    c->idle_ms = c->idle_ms ? c->idle_ms : 120000;
}

static gboolean start_daemon(HttpServer *s, int fd, GError **error)
{
    const unsigned flags = MHD_USE_EPOLL | (s->rotation ? MHD_USE_TLS : 0);
    struct MHD_OptionItem trust = {MHD_OPTION_END, 0, NULL};
    /* It has clients asked for a certificate; which ones count is_known() says. */
    if (s->authorities)
        trust = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_TRUST, 0,
                                        (void *)http_authorities_first(s->authorities)};
    const struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_CERT_CALLBACK2, 0, (void *)on_handshake},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"},
        trust,
        {MHD_OPTION_END, 0, NULL}};
    const struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};
    /* Its own timeout is longer than ours, which counts from the beginning. */
    const unsigned timeout_s = (unsigned)((s->config.idle_ms + s->config.request_ms) / 1000 + 5);
    s->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, s, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, s->config.connections, MHD_OPTION_CONNECTION_TIMEOUT,
        timeout_s, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, s, MHD_OPTION_ARRAY, s->rotation ? tls : none, MHD_OPTION_END);
    if (s->daemon)
        return TRUE;
    close(fd);
    return hearth_fail(error, HEARTH_ERROR_INTERNAL, "%s: the HTTP server does not start",
                       s->config.what);
}

static gboolean start(HttpServer *s, GError **error)
{
    if (s->config.certificate &&
        !(s->rotation = http_rotation_new(s->config.certificate, s->config.on_certificate,
                                          s->config.data, error)))
        return FALSE;
    if (s->config.client_ca &&
        !(s->authorities = http_authorities_new(s->config.client_ca, s->config.client_ca_flag,
                                                s->config.on_authorities, s->config.data, error)))
        return FALSE;
    const int fd = http_listen(s->config.address, s->config.what, error);
    if (fd < 0)
        return FALSE;
    s->port = http_port_of(fd);
    s->expires_s = s->rotation ? http_certificate_expires_s(http_rotation_latest(s->rotation)) : 0;
    if (!start_daemon(s, fd, error))
        return FALSE;
    s->stop_fd = eventfd(0, EFD_CLOEXEC);
    const int rc = s->stop_fd < 0 ? errno : pthread_create(&s->thread, NULL, serve, s);
    if (rc != 0)
        g_error("no thread: %s", g_strerror(rc));
    return TRUE;
}

HttpServer *http_server_new(const HttpServerConfig *config, GError **error)
{
    HttpServer *s = g_new0(HttpServer, 1);
    s->config = *config;
    or_default(&s->config);
    s->routes = g_memdup2(config->routes, config->n_routes * sizeof(HttpRoute));
    s->stop_fd = -1;
    g_queue_init(&s->connections);
    const gboolean good = start(s, error);
    /* These were the caller's. */
    s->config.address = s->config.what = s->config.certificate = NULL;
    s->config.client_ca = s->config.client_ca_flag = NULL;
    s->config.routes = NULL;
    if (good)
        return s;
    http_server_free(s);
    return NULL;
}

void http_server_free(HttpServer *s)
{
    if (!s)
        return;
    if (s->stop_fd >= 0) {
        eventfd_write(s->stop_fd, 1);
        pthread_join(s->thread, NULL);
        close(s->stop_fd);
    }
    if (s->daemon)
        MHD_stop_daemon(s->daemon);
    http_rotation_free(s->rotation);
    http_authorities_free(s->authorities);
    g_free(s->routes);
    g_free(s);
}

guint16 http_server_port(const HttpServer *s)
{
    return s->port;
}

gint64 http_server_expires_s(const HttpServer *s)
{
    return s->expires_s;
}
