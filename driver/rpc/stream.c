/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request side takes nothing on trust: every length is bounded before memory is given, and what
 * gRPC forbids is answered with the status its specification names (grpc/doc/statuscodes.md). An
 * error is trailers-only, one block of headers that ends the stream.
 */
#include "driver/rpc/stream.h"

#include <string.h>

#include "common/error.h"

enum { SEEN_METHOD = 1, SEEN_PATH = 2, SEEN_CONTENT_TYPE = 4, SEEN_TIMEOUT = 8 };

/* ---- Streams */

RpcStream *rpc_stream_new(RpcConnection *connection, gint32 id)
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
    connection->heading_count++;
    stream->heading = TRUE;
    return stream;
}

void rpc_stream_free(RpcStream *stream)
{
    RpcConnection *connection = stream->connection;
    *(stream->previous ? &stream->previous->next : &connection->streams) = stream->next;
    if (stream->next)
        stream->next->previous = stream->previous;
    connection->stream_count--;
    connection->heading_count -= stream->heading ? 1 : 0;
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

void rpc_stream_refuse(RpcStream *stream, guint code, const char *format, ...)
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
        rpc_stream_refuse(stream, HEARTH_ERROR_DEADLINE_EXCEEDED,
                          "%s did not finish within its deadline of %" G_GINT64_FORMAT " ms",
                          stream->path, stream->timeout_us / 1000);
    else
        rpc_stream_refuse(stream, HEARTH_ERROR_DEADLINE_EXCEEDED,
                          "the request did not arrive whole within %d s",
                          RPC_BODY_TIMEOUT_MS / 1000);
}

/* ---- Requests */

static gboolean is(const uint8_t *name, size_t length, const char *literal)
{
    return length == strlen(literal) && memcmp(name, literal, length) == 0;
}

static void see(RpcStream *stream, guint which)
{
    stream->repeated_header |= (stream->seen & which) != 0;
    stream->seen |= which;
}

void rpc_stream_header(RpcStream *stream, const uint8_t *name, size_t name_length,
                       const uint8_t *value, size_t value_length)
{
    const RpcConnection *connection = stream->connection;
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
}

/* The headers are complete: is this a call we take? */
void rpc_stream_end_headers(RpcStream *stream)
{
    RpcConnection *connection = stream->connection;
    gint64 now_us = g_get_monotonic_time();
    stream->state = BODY;
    connection->heading_count -= stream->heading ? 1 : 0;
    stream->heading = FALSE;
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
        rpc_stream_refuse(stream, HEARTH_ERROR_UNAVAILABLE, "the server is stopping");
    else if (!stream->method)
        rpc_stream_refuse(stream, HEARTH_ERROR_UNIMPLEMENTED, "unknown method %s", stream->path);
    else if (stream->deadline_us <= now_us)
        request_timed_out(&stream->timer);
}

static void begin_message(RpcStream *stream)
{
    guint32 length = rpc_prefix_length(stream->prefix);
    if (stream->prefix[0] != 0)
        rpc_stream_refuse(stream, HEARTH_ERROR_UNIMPLEMENTED,
                          "grpc-encoding \"%s\" is not supported; send messages uncompressed",
                          stream->encoding ? stream->encoding : "");
    else if (length > RPC_REQUEST_MAX_BYTES)
        rpc_stream_refuse(stream, HEARTH_ERROR_RESOURCE_EXHAUSTED,
                          "request of %u bytes exceeds the limit of %d bytes", length,
                          RPC_REQUEST_MAX_BYTES);
    else if (!rpc_buffer_init(&stream->message, length, stream->connection->budget))
        rpc_stream_refuse(
            stream, HEARTH_ERROR_RESOURCE_EXHAUSTED,
            "request of %u bytes while large requests hold all of %d bytes; try again", length,
            RPC_BUDGET_BYTES);
}

void rpc_stream_data(RpcStream *stream, const guint8 *bytes, size_t length)
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
                rpc_stream_refuse(stream, HEARTH_ERROR_UNIMPLEMENTED,
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

void rpc_stream_end(RpcStream *stream)
{
    stream->peer_done = TRUE;
    if (stream->state != BODY)
        return;
    if (stream->prefix_length == 0) {
        rpc_stream_refuse(stream, HEARTH_ERROR_UNIMPLEMENTED, "no message in a unary call of %s",
                          stream->path);
        return;
    }
    if (stream->prefix_length < RPC_PREFIX_BYTES ||
        stream->message_length < stream->message.length) {
        rpc_stream_refuse(stream, HEARTH_ERROR_INVALID_ARGUMENT,
                          "message cut short: %zu of %zu bytes",
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
