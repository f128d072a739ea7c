/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An API server on loopback that answers as a test tells it, also in ways a real one cannot be
 * made to: one thread a connection, a handler a test, streams that the test feeds and breaks.
 */
#ifndef HEARTH_TESTS_FAKE_API_H
#define HEARTH_TESTS_FAKE_API_H

#include <arpa/inet.h>
#include <jansson.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include "driver/kube/client.h"
#include "driver/kube/error.h"
#include "tests/unit/harness.h"

/* What a stream is given to send; the ends of it. */
#define FAKE_END ((char *)"<end>")
#define FAKE_DROP ((char *)"<drop>")

typedef struct FakeStream {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    GQueue pieces; /* of char *, FAKE_END, FAKE_DROP */
    gsize sent;    /* of the first */
    unsigned opened;
    gboolean stop;
} FakeStream;

typedef struct FakeRequest {
    const char *method, *path, *token, *content_type;
    struct MHD_Connection *connection;
    json_t *body;     /* NULL: none */
    unsigned number;  /* 1 for the first that came */
    unsigned of_kind; /* of this method and path */
} FakeRequest;

typedef struct FakeReply {
    int status;
    char *text; /* freed */
    const char *retry_after;
    FakeStream *stream; /* in place of text */
    unsigned slow_ms;   /* between the first byte and the rest */
    unsigned wait_ms;   /* before it is begun */
} FakeReply;

typedef struct FakeApi {
    struct MHD_Daemon *daemon;
    int port;
    void (*handler)(const FakeRequest *request, FakeReply *reply, void *data);
    void *data;
    pthread_mutex_t lock; /* also held while the handler runs */
    GHashTable *counts;   /* "METHOD path" -> number */
    unsigned number;
} FakeApi;

static inline void fake_stream_init(FakeStream *s)
{
    *s = (FakeStream){0};
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    g_queue_init(&s->pieces);
}

static inline void fake_stream_push(FakeStream *s, const char *piece)
{
    pthread_mutex_lock(&s->lock);
    g_queue_push_tail(&s->pieces,
                      piece == FAKE_END || piece == FAKE_DROP ? (char *)piece : g_strdup(piece));
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static inline void fake_stream_stop(FakeStream *s)
{
    pthread_mutex_lock(&s->lock);
    s->stop = TRUE;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

/* After the server has stopped: what nobody has read. */
static inline void fake_stream_clear(FakeStream *s)
{
    char *piece;
    while ((piece = g_queue_pop_head(&s->pieces)))
        if (piece != FAKE_END && piece != FAKE_DROP)
            g_free(piece);
}

/* Waits until so many have connected to it. */
static inline void fake_stream_await(FakeStream *s, unsigned opened)
{
    pthread_mutex_lock(&s->lock);
    while (s->opened < opened)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static inline ssize_t fake_stream_read(void *data, uint64_t at, char *buf, size_t max)
{
    FakeStream *s = data;
    ssize_t n;
    (void)at;
    pthread_mutex_lock(&s->lock);
    while (!s->stop && g_queue_is_empty(&s->pieces))
        pthread_cond_wait(&s->changed, &s->lock);
    char *piece = s->stop ? FAKE_END : g_queue_peek_head(&s->pieces);
    if (piece == FAKE_END || piece == FAKE_DROP) {
        if (!s->stop)
            g_queue_pop_head(&s->pieces);
        n = piece == FAKE_END ? MHD_CONTENT_READER_END_OF_STREAM
                              : MHD_CONTENT_READER_END_WITH_ERROR;
    } else {
        n = (ssize_t)MIN(strlen(piece) - s->sent, max);
        memcpy(buf, piece + s->sent, (size_t)n);
        s->sent += (size_t)n;
        if (s->sent == strlen(piece)) {
            g_free(g_queue_pop_head(&s->pieces));
            s->sent = 0;
        }
    }
    pthread_mutex_unlock(&s->lock);
    return n;
}

typedef struct FakeSlow {
    char *text;
    unsigned ms;
} FakeSlow;

static inline ssize_t fake_slow_read(void *data, uint64_t at, char *buf, size_t max)
{
    const FakeSlow *slow = data;
    (void)max;
    if (at == strlen(slow->text))
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (at > 0)
        g_usleep(slow->ms * 1000);
    buf[0] = slow->text[at];
    return 1;
}

static inline void fake_slow_free(void *data)
{
    FakeSlow *slow = data;
    g_free(slow->text);
    g_free(slow);
}

static inline struct MHD_Response *fake_response(FakeReply *reply)
{
    struct MHD_Response *r;
    if (reply->stream) {
        pthread_mutex_lock(&reply->stream->lock);
        reply->stream->opened++;
        pthread_cond_broadcast(&reply->stream->changed);
        pthread_mutex_unlock(&reply->stream->lock);
        r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, fake_stream_read,
                                              reply->stream, NULL);
    } else if (reply->slow_ms) {
        FakeSlow *slow = g_new0(FakeSlow, 1);
        *slow = (FakeSlow){g_strdup(reply->text), reply->slow_ms};
        r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16, fake_slow_read, slow,
                                              fake_slow_free);
    } else {
        const char *text = reply->text ? reply->text : "";
        r = MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_MUST_COPY);
    }
    g_free(reply->text);
    MHD_add_response_header(r, "Content-Type", "application/json");
    if (reply->retry_after)
        MHD_add_response_header(r, "Retry-After", reply->retry_after);
    return r;
}

static inline enum MHD_Result fake_answer(void *cls, struct MHD_Connection *connection,
                                          const char *url, const char *method, const char *version,
                                          const char *upload, size_t *upload_size, void **state)
{
    FakeApi *api = cls;
    GString *body = *state;
    (void)version;
    if (!body) {
        *state = g_string_new(NULL);
        return MHD_YES;
    }
    if (*upload_size) {
        g_string_append_len(body, upload, (gssize)*upload_size);
        *upload_size = 0;
        return MHD_YES;
    }
    const char *header = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization");
    FakeRequest request = {
        .method = method,
        .path = url,
        .token = header && g_str_has_prefix(header, "Bearer ") ? header + 7 : NULL,
        .content_type = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Type"),
        .connection = connection,
        .body = body->len ? json_loadb(body->str, body->len, 0, NULL) : NULL,
    };
    FakeReply reply = {.status = 200};
    pthread_mutex_lock(&api->lock);
    char *kind = g_strdup_printf("%s %s", method, url);
    request.of_kind = GPOINTER_TO_UINT(g_hash_table_lookup(api->counts, kind)) + 1;
    g_hash_table_replace(api->counts, kind, GUINT_TO_POINTER(request.of_kind));
    request.number = ++api->number;
    api->handler(&request, &reply, api->data);
    pthread_mutex_unlock(&api->lock);
    json_decref(request.body);
    if (reply.wait_ms)
        g_usleep(reply.wait_ms * 1000);
    struct MHD_Response *response = fake_response(&reply);
    enum MHD_Result queued = MHD_queue_response(connection, (unsigned)reply.status, response);
    MHD_destroy_response(response);
    return queued;
}

static inline void fake_done(void *cls, struct MHD_Connection *connection, void **state,
                             enum MHD_RequestTerminationCode code)
{
    (void)cls, (void)connection, (void)code;
    if (*state)
        g_string_free(*state, TRUE);
}

static inline void fake_api_start(FakeApi *api)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)api->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    api->daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION,
                                   0, NULL, NULL, fake_answer, api, MHD_OPTION_SOCK_ADDR, &address,
                                   MHD_OPTION_LISTENING_ADDRESS_REUSE, 1U,
                                   MHD_OPTION_NOTIFY_COMPLETED, fake_done, NULL, MHD_OPTION_END);
    ck_assert_ptr_nonnull(api->daemon);
    api->port = MHD_get_daemon_info(api->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
}

static inline void
fake_api_new(FakeApi *api, void (*handler)(const FakeRequest *, FakeReply *, void *), void *data)
{
    *api = (FakeApi){.handler = handler, .data = data};
    pthread_mutex_init(&api->lock, NULL);
    api->counts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    fake_api_start(api);
}

/* Streams have to have been stopped. */
static inline void fake_api_stop(FakeApi *api)
{
    MHD_stop_daemon(api->daemon);
    api->daemon = NULL;
}

static inline void fake_api_free(FakeApi *api)
{
    if (api->daemon)
        fake_api_stop(api);
    g_hash_table_unref(api->counts);
}

static inline unsigned fake_api_requests(FakeApi *api)
{
    pthread_mutex_lock(&api->lock);
    unsigned number = api->number;
    pthread_mutex_unlock(&api->lock);
    return number;
}

static inline const char *fake_query(const FakeRequest *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, name);
}

static inline void fake_status(FakeReply *reply, int status, const char *reason,
                               const char *message)
{
    reply->status = status;
    reply->text = g_strdup_printf("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"reason\":\"%s\","
                                  "\"message\":\"%s\",\"code\":%d}",
                                  reason, message, status);
}

static inline KubeClient *fake_client(const FakeApi *api, const KubeClientOptions *options)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = g_strdup_printf(
        "{current-context: c, contexts: [{name: c, context: {cluster: k, user: u}}],"
        " clusters: [{name: k, cluster: {server: 'http://127.0.0.1:%d'}}],"
        " users: [{name: u, user: {token: sesame}}]}",
        api->port);
    KubeConfig *config = kube_config_parse(text, strlen(text), "test", &error);
    ck_assert_msg(config != NULL, "%s", error ? error->message : "");
    return kube_client_new(config, options);
}

#endif
