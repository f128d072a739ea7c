/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One stream of a connection: gRPC's rules for a request, and its one answer. Inside rpc/, for
 * connection.c, which turns what nghttp2 reports into the events below, and stream.c.
 */
#ifndef HEARTH_DRIVER_RPC_STREAM_H
#define HEARTH_DRIVER_RPC_STREAM_H

#include <nghttp2/nghttp2.h>

#include "driver/rpc/connection.h"
#include "driver/rpc/framing.h"

typedef enum StreamState { HEADERS, BODY, RUNNING, ANSWERED } StreamState;

struct RpcStream {
    RpcConnection *connection;
    RpcStream *previous, *next;
    gint32 id;
    StreamState state;
    gboolean heading;   /* its headers are not complete; counted by the connection */
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
    guint stream_count, heading_count; /* all; those whose headers are not complete */
    RpcTimer preface_timer;
    gboolean failed;
    gboolean shutting_down;
};

/* The stream is on the connection's list until freed; freeing tells that its call is gone. */
RpcStream *rpc_stream_new(RpcConnection *connection, gint32 id);
void rpc_stream_free(RpcStream *stream);

/* Events of the request, in this order. */
void rpc_stream_header(RpcStream *stream, const uint8_t *name, size_t name_length,
                       const uint8_t *value, size_t value_length);
void rpc_stream_end_headers(RpcStream *stream);
void rpc_stream_data(RpcStream *stream, const guint8 *bytes, size_t length);
void rpc_stream_end(RpcStream *stream);

/* Answers with an error; the call, if one runs, is gone. */
void rpc_stream_refuse(RpcStream *stream, guint code, const char *format, ...) G_GNUC_PRINTF(3, 4);

#endif
