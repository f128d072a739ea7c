/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One nghttp2 session over a non-blocking socket, driven by poll() until the call's stream closes.
 * The state of the one call under way is in the client; callbacks for any other stream are ignored.
 */
#include "driver/rpc/client.h"

#include <errno.h>
#include <gio/gio.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/autofd.h"
#include "common/error.h"
#include "driver/rpc/framing.h"
#include "driver/rpc/listen.h"
#include "driver/rpc/validate.h"

#define RESPONSE_MAX_BYTES (16 * 1024 * 1024)
#define DEADLINE_SLACK_US (G_USEC_PER_SEC / 4)

struct RpcClient {
    int fd;
    char *path;
    nghttp2_session *session;
    gboolean broken;
    GByteArray *out; /* bytes that the socket has not taken yet */

    /* The call under way. */
    gint32 stream_id; /* 0: none */
    gboolean closed;
    guint32 close_code;
    guint8 *body;
    size_t body_length, body_sent;
    guint http_status;
    gint64 grpc_status; /* -1: none came */
    char *grpc_message;
    GByteArray *response;
    gboolean too_large;
};

static ssize_t read_request(nghttp2_session *session, int32_t id, uint8_t *out, size_t capacity,
                            uint32_t *flags, nghttp2_data_source *source, void *user_data)
{
    (void)session, (void)source;
    RpcClient *client = user_data;
    if (id != client->stream_id) /* given up */
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    size_t n = MIN(capacity, client->body_length - client->body_sent);
    memcpy(out, client->body + client->body_sent, n);
    client->body_sent += n;
    if (client->body_sent == client->body_length)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return n;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_length, const uint8_t *value, size_t value_length, uint8_t flags,
                     void *user_data)
{
    (void)session, (void)flags;
    RpcClient *client = user_data;
    if (frame->hd.stream_id != client->stream_id)
        return 0;
    g_autofree char *key = g_strndup((const char *)name, name_length);
    g_autofree char *text = g_strndup((const char *)value, value_length);
    if (strcmp(key, ":status") == 0) {
        client->http_status = g_ascii_strtoull(text, NULL, 10);
    } else if (strcmp(key, "grpc-status") == 0) {
        client->grpc_status = MIN(g_ascii_strtoull(text, NULL, 10), G_MAXINT);
    } else if (strcmp(key, "grpc-message") == 0) {
        g_free(client->grpc_message);
        client->grpc_message = rpc_percent_decode(text, strlen(text));
    }
    return 0;
}

static int on_data_chunk_recv(nghttp2_session *session, uint8_t flags, int32_t id,
                              const uint8_t *bytes, size_t length, void *user_data)
{
    (void)session, (void)flags;
    RpcClient *client = user_data;
    if (id != client->stream_id)
        return 0;
    if (client->response->len + length > RPC_PREFIX_BYTES + RESPONSE_MAX_BYTES)
        client->too_large = TRUE;
    else
        g_byte_array_append(client->response, bytes, length);
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t error_code,
                           void *user_data)
{
    (void)session;
    RpcClient *client = user_data;
    if (id == client->stream_id) {
        client->closed = TRUE;
        client->close_code = error_code;
    }
    return 0;
}

static gboolean transport_error(RpcClient *client, GError **error, const char *what)
{
    client->broken = TRUE;
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_CONNECTION_CLOSED, "connection to %s: %s",
                client->path, what);
    return FALSE;
}

RpcClient *rpc_client_connect(const char *socket_path, GError **error)
{
    struct sockaddr_un address;
    if (!rpc_socket_address(&address, socket_path, error))
        return NULL;
    hearth_autofd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        rpc_set_errno(error, errno, "connect to", socket_path);
        return NULL;
    }
    RpcClient *client = g_new0(RpcClient, 1);
    client->path = g_strdup(socket_path);
    client->fd = hearth_steal_fd(&fd);
    client->out = g_byte_array_new();

    nghttp2_session_callbacks *callbacks = NULL;
    gboolean ok = nghttp2_session_callbacks_new(&callbacks) == 0;
    if (ok) {
        nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data_chunk_recv);
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
        nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0}};
        ok = nghttp2_session_client_new(&client->session, callbacks, client) == 0 &&
             nghttp2_submit_settings(client->session, NGHTTP2_FLAG_NONE, settings,
                                     G_N_ELEMENTS(settings)) == 0;
    }
    nghttp2_session_callbacks_del(callbacks);
    if (!ok) {
        transport_error(client, error, "cannot start HTTP/2");
        g_clear_pointer(&client, rpc_client_close);
    }
    return client;
}

void rpc_client_close(RpcClient *client)
{
    if (!client)
        return;
    nghttp2_session_del(client->session);
    close(client->fd);
    g_byte_array_unref(client->out);
    g_free(client->path);
    g_free(client);
}

/* Sends the pending bytes, without waiting. */
static gboolean flush(RpcClient *client, GError **error)
{
    for (;;) {
        const uint8_t *bytes;
        ssize_t n;
        while (client->out->len < 65536 &&
               (n = nghttp2_session_mem_send(client->session, &bytes)) != 0) {
            if (n < 0)
                return transport_error(client, error, nghttp2_strerror(n));
            g_byte_array_append(client->out, bytes, n);
        }
        if (client->out->len == 0)
            return TRUE;
        n = send(client->fd, client->out->data, client->out->len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN)
            return TRUE;
        if (n < 0 && errno != EINTR)
            return transport_error(client, error, g_strerror(errno));
        if (n > 0) {
            explicit_bzero(client->out->data, n); /* requests carry secrets */
            g_byte_array_remove_range(client->out, 0, n);
        }
    }
}

/* Waits for the socket and receives. TRUE at the deadline too. */
static gboolean step(RpcClient *client, gint64 deadline_us, GError **error)
{
    if (!flush(client, error))
        return FALSE;
    int wait_ms = -1;
    if (deadline_us != G_MAXINT64)
        wait_ms = CLAMP((deadline_us - g_get_monotonic_time() + 999) / 1000, 0, G_MAXINT);
    struct pollfd poll_fd = {.fd = client->fd,
                             .events = POLLIN | (client->out->len > 0 ? POLLOUT : 0)};
    if (poll(&poll_fd, 1, wait_ms) <= 0 || !(poll_fd.revents & ~POLLOUT))
        return TRUE;
    guint8 bytes[16384];
    ssize_t n = recv(client->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return TRUE;
    if (n <= 0)
        return transport_error(client, error, n == 0 ? "closed by the server" : g_strerror(errno));
    ssize_t taken = nghttp2_session_mem_recv(client->session, bytes, n);
    if (taken < 0)
        return transport_error(client, error, nghttp2_strerror(taken));
    return TRUE;
}

static nghttp2_nv header(const char *name, const char *value)
{
    return (nghttp2_nv){.name = (uint8_t *)name,
                        .namelen = strlen(name),
                        .value = (uint8_t *)value,
                        .valuelen = strlen(value)};
}

static gboolean submit(RpcClient *client, const char *path, gint64 timeout_ms, GError **error)
{
    char timeout[16];
    nghttp2_nv headers[8] = {header(":method", "POST"),
                             header(":scheme", "http"),
                             header(":path", path),
                             header(":authority", "localhost"),
                             header("content-type", "application/grpc"),
                             header("te", "trailers"),
                             header("user-agent", "hearth/" HEARTH_VERSION)};
    size_t n = 7;
    if (timeout_ms > 0) {
        rpc_timeout_format(timeout_ms, timeout);
        headers[n++] = header("grpc-timeout", timeout);
    }
    nghttp2_data_provider body = {.read_callback = read_request};
    gint32 id = nghttp2_submit_request(client->session, NULL, headers, n, &body, NULL);
    if (id < 0)
        return transport_error(client, error, nghttp2_strerror(id));
    client->stream_id = id;
    return TRUE;
}

static ProtobufCMessage *take_response(RpcClient *client, const char *path,
                                       const ProtobufCMessageDescriptor *type, GError **error)
{
    if (client->grpc_status > 0) {
        gboolean known = client->grpc_status <= HEARTH_ERROR_UNAUTHENTICATED;
        const HearthError code = known ? (HearthError)client->grpc_status : HEARTH_ERROR_UNKNOWN;
        hearth_fail(error, code, "%s", client->grpc_message ? client->grpc_message : "");
        return NULL;
    }
    const GByteArray *bytes = client->response;
    const char *wrong = NULL;
    if (client->grpc_status < 0)
        wrong = "the server ended the call without a status";
    else if (client->too_large)
        wrong = "the response is too large";
    else if (bytes->len < RPC_PREFIX_BYTES || bytes->data[0] != 0 ||
             rpc_prefix_length(bytes->data) != bytes->len - RPC_PREFIX_BYTES)
        wrong = "the response is not one whole uncompressed message";
    if (wrong) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                    "%s: %s (HTTP status %u, stream error %u)", path, wrong, client->http_status,
                    client->close_code);
        return NULL;
    }
    const guint8 *message = bytes->data + RPC_PREFIX_BYTES;
    size_t length = bytes->len - RPC_PREFIX_BYTES;
    g_autoptr(GError) invalid = NULL;
    ProtobufCMessage *response = NULL;
    if (rpc_validate_wire(type, message, length, &invalid))
        response = protobuf_c_message_unpack(type, NULL, length, message);
    if (!response)
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "%s: %s", path,
                    invalid ? invalid->message : "the response does not decode");
    return response;
}

static ProtobufCMessage *run(RpcClient *client, const char *path,
                             const ProtobufCMessageDescriptor *type, gint64 timeout_ms,
                             GError **error)
{
    if (!submit(client, path, timeout_ms, error))
        return NULL;
    gint64 deadline_us = G_MAXINT64;
    if (timeout_ms > 0 && timeout_ms < G_MAXINT64 / 2000)
        deadline_us = g_get_monotonic_time() + timeout_ms * 1000 + DEADLINE_SLACK_US;
    while (!client->closed) {
        if (!step(client, deadline_us, error))
            return NULL;
        if (!client->closed && g_get_monotonic_time() >= deadline_us) {
            nghttp2_submit_rst_stream(client->session, NGHTTP2_FLAG_NONE, client->stream_id,
                                      NGHTTP2_CANCEL);
            flush(client, NULL);
            hearth_fail(error, HEARTH_ERROR_DEADLINE_EXCEEDED,
                        "%s: no answer within %" G_GINT64_FORMAT " ms", path, timeout_ms);
            return NULL;
        }
    }
    return take_response(client, path, type, error);
}

ProtobufCMessage *rpc_client_call(RpcClient *client, const char *path,
                                  const ProtobufCMessage *request,
                                  const ProtobufCMessageDescriptor *response, gint64 timeout_ms,
                                  GError **error)
{
    if (client->broken) {
        transport_error(client, error, "broken by an earlier error");
        return NULL;
    }
    size_t length = protobuf_c_message_get_packed_size(request);
    client->body_length = RPC_PREFIX_BYTES + length;
    client->body = g_malloc(client->body_length);
    rpc_prefix_write(client->body, length);
    protobuf_c_message_pack(request, client->body + RPC_PREFIX_BYTES);
    client->body_sent = 0;
    client->closed = client->too_large = FALSE;
    client->close_code = client->http_status = 0;
    client->grpc_status = -1;
    client->response = g_byte_array_new();

    ProtobufCMessage *message = run(client, path, response, timeout_ms, error);

    client->stream_id = 0;
    explicit_bzero(client->body, client->body_length);
    g_clear_pointer(&client->body, g_free);
    g_clear_pointer(&client->grpc_message, g_free);
    g_clear_pointer(&client->response, g_byte_array_unref);
    return message;
}
