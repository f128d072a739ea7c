/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An nghttp2 session and its streams. What nghttp2 would do by itself and must not:
 *
 * - Its check of HTTP messaging is off: kubelets before 1.24 send an :authority with '/', which it
 *   refuses. So :method, :path and content-type are checked in stream.c.
 * - An RST_STREAM submitted along with a response drops the response. When a request is answered
 *   before its end, RST_STREAM(NO_ERROR) goes out from on_frame_send of the headers that end the
 *   response (RFC 9113, 8.1), so that the peer stops sending.
 * - nghttp2_session_del() does not report the streams it drops: they are on a list.
 */
#include "driver/rpc/connection.h"

#include "driver/rpc/stream.h"

/* A header block that grows past this is an attack on our patience: the connection ends. */
#define HEADERS_ABORT_BYTES (256 * 1024)

/* ---- nghttp2 callbacks */

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        nghttp2_session_set_stream_user_data(session, frame->hd.stream_id,
                                             rpc_stream_new(user_data, frame->hd.stream_id));
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_length, const uint8_t *value, size_t value_length, uint8_t flags,
                     void *user_data)
{
    (void)flags, (void)user_data;
    RpcStream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (!stream)
        return 0;
    stream->header_bytes += name_length + value_length + 32;
    if (stream->header_bytes > HEADERS_ABORT_BYTES)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    if (stream->state != HEADERS || stream->header_bytes > RPC_HEADERS_MAX_BYTES)
        return 0;
    rpc_stream_header(stream, name, name_length, value, value_length);
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
        rpc_stream_end_headers(stream);
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
        rpc_stream_end(stream);
    return 0;
}

static int on_data_chunk_recv(nghttp2_session *session, uint8_t flags, int32_t id,
                              const uint8_t *bytes, size_t length, void *user_data)
{
    (void)flags, (void)user_data;
    RpcStream *stream = nghttp2_session_get_stream_user_data(session, id);
    if (stream)
        rpc_stream_data(stream, bytes, length);
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
        rpc_stream_free(stream);
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
        rpc_stream_free(connection->streams);
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

guint rpc_connection_calls(const RpcConnection *connection)
{
    return connection->stream_count - connection->heading_count;
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
            rpc_stream_refuse(stream, code, "%s", message);
    }
}
