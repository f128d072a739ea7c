/*
 * nghttp2 frames and gRPC's rules on top. What nghttp2 would do by itself and must not:
 *
 * - Its check of HTTP messaging is off: kubelets before 1.24 send an :authority with '/', which it
 *   refuses. So :method, :path and content-type are checked here.
 * - An RST_STREAM submitted along with a response drops the response. When a request is answered
 *   before its end, RST_STREAM(NO_ERROR) goes out from on_frame_send of the headers that end the
 *   response (RFC 9113, 8.1), so that the peer stops sending.
 * - nghttp2_session_del() does not report the streams it drops: they are on a list.
 */
#include "driver/rpc/connection.h"

#include <nghttp2/nghttp2.h>
#include <string.h>

#include "driver/error.h"
#include "driver/rpc/framing.h"

/* A header block that grows past this is an attack on our patience: the connection ends. */
#define HEADERS_ABORT_BYTES (256 * 1024)

typedef enum StreamState { HEADERS, BODY, RUNNING, ANSWERED } StreamState;

enum { SEEN_METHOD = 1, SEEN_PATH = 2, SEEN_CONTENT_TYPE = 4, SEEN_TIMEOUT = 8 };

struct RpcStream {
    RpcConnection *connection;
    RpcStream *previous, *next;
    gint32 id;
    StreamState state;
    gboolean peer_done; /* END_STREAM received */
    RpcTimer timer;

    /* The request. */
    guint seen;
    gboolean repeated_header, is_post, is_grpc, timeout_bad;
    size_t header_bytes;
    gconstpointer method;
    char *path;     /* as sent, for errors; cut */
    char *encoding; /* grpc-encoding; cut */
    gint64 deadline_us;
    gint64 timeout_us;
    guint8 prefix[RPC_PREFIX_BYTES];
    size_t prefix_length;
    RpcBuffer message;
    size_t message_length; /* received of it */
    void *call;            /* RUNNING: the owner's */

    /* The answer. */
    RpcReply reply;
    size_t sent;
};

struct RpcConnection {
    const RpcConnectionOps *ops;
    void *owner;
    RpcTimers *timers;
    RpcBudget *budget;
    nghttp2_session *session;
    RpcStream *streams;
    guint stream_count;
    RpcTimer preface_timer;
    gboolean failed;
    gboolean shutting_down;
};

/* ---- Streams */

static RpcStream *stream_new(RpcConnection *connection, gint32 id)
{
    RpcStream *stream = g_new0(RpcStream, 1);
    stream->connection = connection;
    stream->id = id;
    stream->deadline_us = G_MAXINT64;
    stream->next = connection->streams;
    if (stream->next)
        stream->next->previous = stream;
    connection->streams = stream;
    connection->stream_count++;
    return stream;
}

static void stream_free(RpcStream *stream)
{
    RpcConnection *connection = stream->connection;
    *(stream->previous ? &stream->previous->next : &connection->streams) = stream->next;
    if (stream->next)
        stream->next->previous = stream->previous;
    connection->stream_count--;
    rpc_timer_clear(connection->timers, &stream->timer);
    if (stream->call)
        connection->ops->gone(connection->owner, stream->call);
    rpc_buffer_clear(&stream->message);
    g_free(stream->path);
    g_free(stream->encoding);
    g_free(stream->reply.message);
    g_free(stream->reply.bytes);
    g_free(stream);
}

/* ---- Answers */

static nghttp2_nv header(const char *name, const char *value)
{
    return (nghttp2_nv){.name = (uint8_t *)name,
                        .namelen = strlen(name),
                        .value = (uint8_t *)value,
                        .valuelen = strlen(value)};
}

static void send_timed_out(RpcTimer *timer)
{
    RpcStream *stream = (RpcStream *)((char *)timer - offsetof(RpcStream, timer));
    stream->connection->failed = TRUE;
    stream->connection->ops->ready(stream->connection->owner);
}

/* Gives nghttp2 the message, then the trailers, which end the stream. */
static ssize_t read_response(nghttp2_session *session, int32_t id, uint8_t *out, size_t capacity,
                             uint32_t *flags, nghttp2_data_source *source, void *user_data)
{
    (void)user_data;
    RpcStream *stream = source->ptr;
    size_t n = MIN(capacity, stream->reply.length - stream->sent);
    memcpy(out, stream->reply.bytes + stream->sent, n);
    stream->sent += n;
    if (stream->sent == stream->reply.length) {
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        nghttp2_nv trailers[] = {header("grpc-status", "0")};
        if (nghttp2_submit_trailer(session, id, trailers, G_N_ELEMENTS(trailers)) != 0)
            return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    return n;
}

/* Answers with `stream->reply`. An error is trailers-only: one block of headers ends the stream. */
static void submit_answer(RpcStream *stream, const char *http_status)
{
    RpcConnection *connection = stream->connection;
    stream->state = ANSWERED;
    rpc_buffer_clear(&stream->message);
    stream->timer.fire = send_timed_out;
    rpc_timer_set(connection->timers, &stream->timer,
                  g_get_monotonic_time() + RPC_SEND_TIMEOUT_MS * 1000);

    int result;
    if (stream->reply.code == 0) {
        nghttp2_nv headers[] = {header(":status", http_status),
                                header("content-type", "application/grpc")};
        nghttp2_data_provider body = {.source.ptr = stream, .read_callback = read_response};
        result = nghttp2_submit_response(connection->session, stream->id, headers,
                                         G_N_ELEMENTS(headers), &body);
    } else {
        char code[16];
        g_snprintf(code, sizeof(code), "%u", stream->reply.code);
        g_autofree char *message =
            rpc_percent_encode(stream->reply.message ? stream->reply.message : "");
        nghttp2_nv headers[] = {header(":status", http_status),
                                header("content-type", "application/grpc"),
                                header("grpc-status", code), header("grpc-message", message),
                                header("grpc-accept-encoding", "identity")};
        result = nghttp2_submit_response(connection->session, stream->id, headers,
                                         G_N_ELEMENTS(headers), NULL);
    }
    if (result != 0)
        connection->failed = TRUE;
    connection->ops->ready(connection->owner);
}

void rpc_stream_answer(RpcStream *stream, RpcReply *reply)
{
    stream->call = NULL;
    stream->reply = *reply;
    *reply = (RpcReply){0};
    submit_answer(stream, "200");
}

/* Refuses with an HTTP status; the call, if one runs, is gone. Takes `message`. */
static void refuse_http(RpcStream *stream, const char *http_status, guint code, char *message)
{
    void *call = g_steal_pointer(&stream->call);
    if (call)
        stream->connection->ops->gone(stream->connection->owner, call);
    stream->reply.code = code;
    stream->reply.message = message;
    submit_answer(stream, http_status);
}

static G_GNUC_PRINTF(3, 4) void refuse(RpcStream *stream, guint code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    refuse_http(stream, "200", code, g_strdup_vprintf(format, args));
    va_end(args);
}

/* The deadline or the time for the body passed. */
static void request_timed_out(RpcTimer *timer)
{
    RpcStream *stream = (RpcStream *)((char *)timer - offsetof(RpcStream, timer));
    if (stream->deadline_us <= g_get_monotonic_time())
        refuse(stream, HEARTH_ERROR_DEADLINE_EXCEEDED,
               "%s did not finish within its deadline of %" G_GINT64_FORMAT " ms", stream->path,
               stream->timeout_us / 1000);
    else
        refuse(stream, HEARTH_ERROR_DEADLINE_EXCEEDED,
               "the request did not arrive whole within %d s", RPC_BODY_TIMEOUT_MS / 1000);
}

/* ---- Requests */

/* The headers are complete: is this a call we take? */
static void begin_body(RpcStream *stream)
{
    RpcConnection *connection = stream->connection;
    gint64 now_us = g_get_monotonic_time();
    stream->state = BODY;
    if (stream->seen & SEEN_TIMEOUT && !stream->timeout_bad)
        stream->deadline_us = now_us + stream->timeout_us;
    stream->timer.fire = request_timed_out;
    rpc_timer_set(connection->timers, &stream->timer,
                  MIN(stream->deadline_us, now_us + RPC_BODY_TIMEOUT_MS * 1000));

    if (stream->header_bytes > RPC_HEADERS_MAX_BYTES)
        refuse_http(stream, "431", HEARTH_ERROR_RESOURCE_EXHAUSTED,
                    g_strdup_printf("request headers exceed %d bytes", RPC_HEADERS_MAX_BYTES));
    else if (stream->repeated_header || !(stream->seen & SEEN_PATH))
        refuse_http(stream, "400", HEARTH_ERROR_INTERNAL,
                    g_strdup(":method, :path, content-type and grpc-timeout are sent once each"));
    else if (!stream->is_post)
        refuse_http(stream, "405", HEARTH_ERROR_INTERNAL, g_strdup(":method must be POST"));
    else if (!stream->is_grpc)
        refuse_http(stream, "415", HEARTH_ERROR_INVALID_ARGUMENT,
                    g_strdup("content-type must be application/grpc or application/grpc+proto"));
    else if (stream->timeout_bad)
        refuse_http(stream, "400", HEARTH_ERROR_INTERNAL, g_strdup("grpc-timeout is malformed"));
    else if (connection->shutting_down)
        refuse(stream, HEARTH_ERROR_UNAVAILABLE, "the server is stopping");
    else if (!stream->method)
        refuse(stream, HEARTH_ERROR_UNIMPLEMENTED, "unknown method %s", stream->path);
    else if (stream->deadline_us <= now_us)
        request_timed_out(&stream->timer);
}

static void begin_message(RpcStream *stream)
{
    guint32 length = rpc_prefix_length(stream->prefix);
    if (stream->prefix[0] != 0)
        refuse(stream, HEARTH_ERROR_UNIMPLEMENTED,
               "grpc-encoding \"%s\" is not supported; send messages uncompressed",
               stream->encoding ? stream->encoding : "");
    else if (length > RPC_REQUEST_MAX_BYTES)
        refuse(stream, HEARTH_ERROR_RESOURCE_EXHAUSTED,
               "request of %u bytes exceeds the limit of %d bytes", length, RPC_REQUEST_MAX_BYTES);
    else if (!rpc_buffer_init(&stream->message, length, stream->connection->budget))
        refuse(stream, HEARTH_ERROR_RESOURCE_EXHAUSTED,
               "request of %u bytes while large requests hold all of %d bytes; try again", length,
               RPC_BUDGET_BYTES);
}

static void take_body(RpcStream *stream, const guint8 *bytes, size_t length)
{
    while (length > 0 && stream->state == BODY) {
        size_t n;
        if (stream->prefix_length < RPC_PREFIX_BYTES) {
            n = MIN(length, RPC_PREFIX_BYTES - stream->prefix_length);
            memcpy(stream->prefix + stream->prefix_length, bytes, n);
            stream->prefix_length += n;
            if (stream->prefix_length == RPC_PREFIX_BYTES)
                begin_message(stream);
        } else {
            n = MIN(length, stream->message.length - stream->message_length);
            if (n == 0) {
                refuse(stream, HEARTH_ERROR_UNIMPLEMENTED,
                       "more than one message in a unary call of %s", stream->path);
                return;
            }
            memcpy(stream->message.data + stream->message_length, bytes, n);
            stream->message_length += n;
        }
        bytes += n;
        length -= n;
    }
}

static void end_body(RpcStream *stream)
{
    stream->peer_done = TRUE;
    if (stream->state != BODY)
        return;
    if (stream->prefix_length == 0) {
        refuse(stream, HEARTH_ERROR_UNIMPLEMENTED, "no message in a unary call of %s",
               stream->path);
        return;
    }
    if (stream->prefix_length < RPC_PREFIX_BYTES ||
        stream->message_length < stream->message.length) {
        refuse(stream, HEARTH_ERROR_INVALID_ARGUMENT, "message cut short: %zu of %zu bytes",
               stream->prefix_length + stream->message_length,
               RPC_PREFIX_BYTES + stream->message.length);
        return;
    }
    RpcConnection *connection = stream->connection;
    RpcRequest request = {.method = stream->method,
                          .message = rpc_buffer_steal(&stream->message),
                          .deadline_us = stream->deadline_us};
    stream->state = RUNNING;
    rpc_timer_set(connection->timers, &stream->timer, stream->deadline_us);
    void *call = connection->ops->request(connection->owner, stream, &request);
    if (call)
        stream->call = call;
}

/* ---- nghttp2 callbacks */

static gboolean is(const uint8_t *name, size_t length, const char *literal)
{
    return length == strlen(literal) && memcmp(name, literal, length) == 0;
}

static void see(RpcStream *stream, guint which)
{
    stream->repeated_header |= (stream->seen & which) != 0;
    stream->seen |= which;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        nghttp2_session_set_stream_user_data(session, frame->hd.stream_id,
                                             stream_new(user_data, frame->hd.stream_id));
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_length, const uint8_t *value, size_t value_length, uint8_t flags,
                     void *user_data)
{
    (void)flags;
    RpcConnection *connection = user_data;
    RpcStream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (!stream)
        return 0;
    stream->header_bytes += name_length + value_length + 32;
    if (stream->header_bytes > HEADERS_ABORT_BYTES)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    if (stream->state != HEADERS || stream->header_bytes > RPC_HEADERS_MAX_BYTES)
        return 0;
    const char *text = (const char *)value;
    if (is(name, name_length, ":method")) {
        see(stream, SEEN_METHOD);
        stream->is_post = is(value, value_length, "POST");
    } else if (is(name, name_length, ":path")) {
        see(stream, SEEN_PATH);
        g_free(stream->path);
        stream->path = g_strndup(text, MIN(value_length, 256));
        gboolean whole = strlen(stream->path) == value_length;
        stream->method = whole ? connection->ops->find(connection->owner, stream->path) : NULL;
    } else if (is(name, name_length, "content-type")) {
        see(stream, SEEN_CONTENT_TYPE);
        stream->is_grpc = rpc_content_type_ok(text, value_length);
    } else if (is(name, name_length, "grpc-timeout")) {
        see(stream, SEEN_TIMEOUT);
        stream->timeout_bad = !rpc_timeout_parse(text, value_length, &stream->timeout_us);
    } else if (is(name, name_length, "grpc-encoding")) {
        g_free(stream->encoding);
        stream->encoding = g_strndup(text, MIN(value_length, 64));
    }
    return 0;
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    RpcConnection *connection = user_data;
    if (frame->hd.type == NGHTTP2_SETTINGS && !(frame->hd.flags & NGHTTP2_FLAG_ACK))
        rpc_timer_clear(connection->timers, &connection->preface_timer);
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
        return 0;
    RpcStream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (!stream)
        return 0;
    if (frame->hd.type == NGHTTP2_HEADERS && stream->state == HEADERS)
        begin_body(stream);
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
        end_body(stream);
    return 0;
}

static int on_data_chunk_recv(nghttp2_session *session, uint8_t flags, int32_t id,
                              const uint8_t *bytes, size_t length, void *user_data)
{
    (void)flags, (void)user_data;
    RpcStream *stream = nghttp2_session_get_stream_user_data(session, id);
    if (stream)
        take_body(stream, bytes, length);
    return 0;
}

static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    (void)user_data;
    if (frame->hd.type != NGHTTP2_HEADERS || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        return 0;
    RpcStream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (stream && !stream->peer_done &&
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_NO_ERROR) != 0)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t error_code,
                           void *user_data)
{
    (void)error_code, (void)user_data;
    RpcStream *stream = nghttp2_session_get_stream_user_data(session, id);
    if (stream) {
        nghttp2_session_set_stream_user_data(session, id, NULL);
        stream_free(stream);
    }
    return 0;
}

/* ---- Connections */

static void preface_timed_out(RpcTimer *timer)
{
    RpcConnection *connection =
        (RpcConnection *)((char *)timer - offsetof(RpcConnection, preface_timer));
    connection->failed = TRUE;
    connection->ops->ready(connection->owner);
}

RpcConnection *rpc_connection_new(const RpcConnectionOps *ops, void *owner, RpcTimers *timers,
                                  RpcBudget *budget)
{
    RpcConnection *connection = g_new0(RpcConnection, 1);
    connection->ops = ops;
    connection->owner = owner;
    connection->timers = timers;
    connection->budget = budget;

    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_option *option = NULL;
    gboolean ok =
        nghttp2_session_callbacks_new(&callbacks) == 0 && nghttp2_option_new(&option) == 0;
    if (ok) {
        nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
        nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame_recv);
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data_chunk_recv);
        nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_send);
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
        nghttp2_option_set_no_http_messaging(option, 1);
        nghttp2_option_set_no_closed_streams(option, 1);
        nghttp2_settings_entry settings[] = {
            {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, RPC_STREAMS_MAX},
            {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, RPC_HEADERS_MAX_BYTES}};
        ok =
            nghttp2_session_server_new2(&connection->session, callbacks, connection, option) == 0 &&
            nghttp2_submit_settings(connection->session, NGHTTP2_FLAG_NONE, settings,
                                    G_N_ELEMENTS(settings)) == 0;
    }
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);
    connection->failed = !ok;
    connection->preface_timer.fire = preface_timed_out;
    rpc_timer_set(timers, &connection->preface_timer,
                  g_get_monotonic_time() + RPC_PREFACE_TIMEOUT_MS * 1000);
    return connection;
}

void rpc_connection_free(RpcConnection *connection)
{
    if (!connection)
        return;
    rpc_timer_clear(connection->timers, &connection->preface_timer);
    /* The session first: it may still point to a stream as the source of a response. */
    nghttp2_session_del(connection->session);
    while (connection->streams)
        stream_free(connection->streams);
    g_free(connection);
}

void rpc_connection_receive(RpcConnection *connection, const guint8 *bytes, size_t length)
{
    if (connection->failed)
        return;
    ssize_t taken = nghttp2_session_mem_recv(connection->session, bytes, length);
    if (taken < 0 || (size_t)taken != length)
        connection->failed = TRUE;
}

size_t rpc_connection_send(RpcConnection *connection, const guint8 **bytes)
{
    if (connection->failed)
        return 0;
    ssize_t length = nghttp2_session_mem_send(connection->session, bytes);
    if (length < 0)
        connection->failed = TRUE;
    return MAX(length, 0);
}

gboolean rpc_connection_finished(const RpcConnection *connection)
{
    return connection->failed || (!nghttp2_session_want_read(connection->session) &&
                                  !nghttp2_session_want_write(connection->session));
}

gboolean rpc_connection_failed(const RpcConnection *connection)
{
    return connection->failed;
}

guint rpc_connection_streams(const RpcConnection *connection)
{
    return connection->stream_count;
}

void rpc_connection_shut_down(RpcConnection *connection)
{
    if (connection->shutting_down || connection->failed)
        return;
    connection->shutting_down = TRUE;
    gint32 last = nghttp2_session_get_last_proc_stream_id(connection->session);
    if (nghttp2_submit_goaway(connection->session, NGHTTP2_FLAG_NONE, last, NGHTTP2_NO_ERROR, NULL,
                              0) != 0)
        connection->failed = TRUE;
    connection->ops->ready(connection->owner);
}

void rpc_connection_answer_all(RpcConnection *connection, guint code, const char *message)
{
    for (RpcStream *stream = connection->streams; stream; stream = stream->next) {
        if (stream->state == BODY || stream->state == RUNNING)
            refuse(stream, code, "%s", message);
    }
}
