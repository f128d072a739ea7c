/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/2 frames by hand, so that tests can send what no client would, and what came back, decoded.
 * Headers are literals without Huffman or table (RFC 7541, 6.2.2): no state to keep in step.
 */
#ifndef HEARTH_TESTS_RPC_FRAMES_H
#define HEARTH_TESTS_RPC_FRAMES_H

#include <check.h>
#include <glib.h>
#include <nghttp2/nghttp2.h>
#include <stdarg.h>
#include <string.h>

#define FRAMES_MAGIC "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define PROBE "/csi.v1.Identity/Probe"

static inline void frame(GByteArray *out, guint8 type, guint8 flags, guint32 stream,
                         const void *payload, size_t length)
{
    guint8 head[9] = {length >> 16, length >> 8,  length,      type,  flags,
                      stream >> 24, stream >> 16, stream >> 8, stream};
    g_byte_array_append(out, head, sizeof(head));
    if (length > 0)
        g_byte_array_append(out, payload, length);
}

static inline void frames_preface(GByteArray *out)
{
    g_byte_array_append(out, (const guint8 *)FRAMES_MAGIC, strlen(FRAMES_MAGIC));
    frame(out, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
}

static inline void frames_literal(GByteArray *block, const char *text)
{
    size_t length = strlen(text);
    guint8 byte = MIN(length, 127);
    g_byte_array_append(block, &byte, 1);
    if (length >= 127) {
        size_t rest = length - 127;
        do {
            byte = (rest & 127) | (rest >= 128 ? 128 : 0);
            g_byte_array_append(block, &byte, 1);
            rest >>= 7;
        } while (rest > 0);
    }
    g_byte_array_append(block, (const guint8 *)text, length);
}

static inline void frames_header(GByteArray *block, const char *name, const char *value)
{
    guint8 zero = 0;
    g_byte_array_append(block, &zero, 1);
    frames_literal(block, name);
    frames_literal(block, value);
}

/* A HEADERS frame of name, value, ..., NULL. */
static inline void frames_headers(GByteArray *out, guint32 stream, guint8 flags, ...)
{
    g_autoptr(GByteArray) block = g_byte_array_new();
    va_list args;
    va_start(args, flags);
    for (const char *name; (name = va_arg(args, const char *));)
        frames_header(block, name, va_arg(args, const char *));
    va_end(args);
    frame(out, NGHTTP2_HEADERS, flags | NGHTTP2_FLAG_END_HEADERS, stream, block->data, block->len);
}

/* The headers of a good call, with one header more unless `name` is NULL. */
static inline void frames_call(GByteArray *out, guint32 stream, const char *path, const char *name,
                               const char *value)
{
    frames_headers(out, stream, 0, ":method", "POST", ":scheme", "http", ":path", path,
                   ":authority", "localhost", "content-type", "application/grpc", name, value,
                   NULL);
}

/* A message with its prefix in one DATA frame. */
static inline void frames_message(GByteArray *out, guint32 stream, guint8 flags,
                                  const void *message, size_t length)
{
    g_autofree guint8 *payload = g_malloc(5 + length);
    guint8 prefix[5] = {0, length >> 24, length >> 16, length >> 8, length};
    memcpy(payload, prefix, 5);
    if (length > 0)
        memcpy(payload + 5, message, length);
    frame(out, NGHTTP2_DATA, flags, stream, payload, 5 + length);
}

static inline void frames_rst(GByteArray *out, guint32 stream, guint8 code)
{
    guint8 payload[4] = {0, 0, 0, code};
    frame(out, NGHTTP2_RST_STREAM, 0, stream, payload, 4);
}

/* What came back on one stream. */
typedef struct StreamReply {
    guint http_status;
    int grpc_status; /* -1: none */
    char *grpc_message, *accept_encoding, *content_type;
    GByteArray *data;
    gboolean ended;            /* END_STREAM */
    gboolean trailers_only;    /* ... on the first headers */
    gboolean reset_before_end; /* RST_STREAM came with no END_STREAM before it */
    int reset_code;            /* -1: none */
} StreamReply;

typedef struct FrameReader {
    nghttp2_hd_inflater *inflater;
    GByteArray *in;
    GHashTable *streams; /* id -> StreamReply */
    gboolean goaway;
    guint pings;
} FrameReader;

static inline void stream_reply_free(gpointer data)
{
    StreamReply *reply = data;
    g_free(reply->grpc_message);
    g_free(reply->accept_encoding);
    g_free(reply->content_type);
    g_byte_array_unref(reply->data);
    g_free(reply);
}

static inline void frame_reader_init(FrameReader *reader)
{
    *reader = (FrameReader){.in = g_byte_array_new()};
    nghttp2_hd_inflate_new(&reader->inflater);
    reader->streams = g_hash_table_new_full(NULL, NULL, NULL, stream_reply_free);
}

static inline void frame_reader_clear(FrameReader *reader)
{
    nghttp2_hd_inflate_del(reader->inflater);
    g_byte_array_unref(reader->in);
    g_hash_table_unref(reader->streams);
}

static inline StreamReply *stream_reply(FrameReader *reader, guint32 stream)
{
    StreamReply *reply = g_hash_table_lookup(reader->streams, GUINT_TO_POINTER(stream));
    if (!reply) {
        reply = g_new0(StreamReply, 1);
        reply->grpc_status = reply->reset_code = -1;
        reply->data = g_byte_array_new();
        g_hash_table_insert(reader->streams, GUINT_TO_POINTER(stream), reply);
    }
    return reply;
}

static inline void frame_reader_headers(FrameReader *reader, StreamReply *reply,
                                        const guint8 *block, size_t length)
{
    for (;;) {
        nghttp2_nv nv;
        int flags = 0;
        ssize_t n = nghttp2_hd_inflate_hd2(reader->inflater, &nv, &flags, block, length, 1);
        ck_assert_int_ge(n, 0);
        block += n;
        length -= n;
        if (flags & NGHTTP2_HD_INFLATE_EMIT) {
            const char *name = (const char *)nv.name;
            char *value = g_strndup((const char *)nv.value, nv.valuelen);
            char **kept = strcmp(name, "grpc-message") == 0           ? &reply->grpc_message
                          : strcmp(name, "grpc-accept-encoding") == 0 ? &reply->accept_encoding
                          : strcmp(name, "content-type") == 0         ? &reply->content_type
                                                                      : NULL;
            if (strcmp(name, ":status") == 0)
                reply->http_status = atoi(value);
            else if (strcmp(name, "grpc-status") == 0)
                reply->grpc_status = atoi(value);
            if (kept) {
                g_free(*kept);
                *kept = g_steal_pointer(&value);
            }
            g_free(value);
        }
        if (flags & NGHTTP2_HD_INFLATE_FINAL)
            break;
    }
    nghttp2_hd_inflate_end_headers(reader->inflater);
}

/* Takes bytes of the server; whole frames are applied to their streams. */
static inline void frame_reader_feed(FrameReader *reader, const guint8 *bytes, size_t length)
{
    g_byte_array_append(reader->in, bytes, length);
    while (reader->in->len >= 9) {
        const guint8 *p = reader->in->data;
        size_t size = (size_t)p[0] << 16 | p[1] << 8 | p[2];
        if (reader->in->len < 9 + size)
            break;
        guint32 id = (guint32)(p[5] & 127) << 24 | p[6] << 16 | p[7] << 8 | p[8];
        guint8 type = p[3], flags = p[4];
        const guint8 *payload = p + 9;
        StreamReply *reply = id ? stream_reply(reader, id) : NULL;
        if (type == NGHTTP2_HEADERS) {
            reply->trailers_only = reply->http_status == 0 && flags & NGHTTP2_FLAG_END_STREAM;
            ck_assert(flags & NGHTTP2_FLAG_END_HEADERS);
            frame_reader_headers(reader, reply, payload, size);
        } else if (type == NGHTTP2_DATA) {
            g_byte_array_append(reply->data, payload, size);
        } else if (type == NGHTTP2_RST_STREAM) {
            reply->reset_code = payload[3];
            reply->reset_before_end = !reply->ended;
        } else if (type == NGHTTP2_GOAWAY) {
            reader->goaway = TRUE;
        } else if (type == NGHTTP2_PING) {
            reader->pings++;
        }
        if ((type == NGHTTP2_HEADERS || type == NGHTTP2_DATA) && flags & NGHTTP2_FLAG_END_STREAM)
            reply->ended = TRUE;
        g_byte_array_remove_range(reader->in, 0, 9 + size);
    }
}

#endif
