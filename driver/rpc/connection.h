/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One server connection of gRPC over HTTP/2, between bytes and calls. It does no I/O, knows no
 * method and starts no thread: the owner feeds it what it received, sends what it gives, finds
 * methods and runs calls. Everything here, including the owner's callbacks, runs on the I/O thread.
 *
 * A stream goes HEADERS -> BODY -> RUNNING -> ANSWERED -> closed, and is answered once:
 *   by this file, when the request is wrong or late, or its deadline passes (in BODY or RUNNING);
 *   by the owner, with rpc_stream_answer().
 * A peer can close a stream in any state. The call of a RUNNING stream that this file answers or
 * that the peer closes is "gone": the owner is told once and must not use the stream again.
 */
#ifndef HEARTH_DRIVER_RPC_CONNECTION_H
#define HEARTH_DRIVER_RPC_CONNECTION_H

#include <glib.h>
#include <sys/types.h>

#include "driver/rpc/buffer.h"
#include "driver/rpc/timers.h"

#define RPC_REQUEST_MAX_BYTES (1024 * 1024)
#define RPC_STREAMS_MAX 128          /* at once on a connection; a peer holds back the rest */
#define RPC_HEADERS_MAX_BYTES 16384  /* of a request, counted as HTTP/2 does; past it, 431 */
#define RPC_PREFACE_TIMEOUT_MS 10000 /* until the client's SETTINGS */
#define RPC_BODY_TIMEOUT_MS 30000    /* from a request's headers to its end */
#define RPC_SEND_TIMEOUT_MS 60000    /* for the peer to take a response */

typedef struct RpcConnection RpcConnection;
typedef struct RpcStream RpcStream;

typedef struct RpcRequest {
    gconstpointer method; /* what find() gave */
    RpcBuffer message;    /* without the prefix; the receiver's */
    gint64 deadline_us;   /* of g_get_monotonic_time(); G_MAXINT64: none */
} RpcRequest;

typedef struct RpcReply {
    guint code;    /* 0: OK */
    char *message; /* of an error; UTF-8, not yet encoded */
    guint8 *bytes; /* of OK: the response message with its prefix */
    size_t length;
} RpcReply;

typedef struct RpcConnectionOps {
    /* The method at this path, or NULL: UNIMPLEMENTED. */
    gconstpointer (*find)(void *owner, const char *path);
    /* A request is complete. Returns the call, or NULL when it was answered at once. */
    void *(*request)(void *owner, RpcStream *stream, RpcRequest *request);
    /* The call was answered with its deadline or its client left. */
    void (*gone)(void *owner, void *call);
    /* There may be something to send, or the connection is finished. */
    void (*ready)(void *owner);
} RpcConnectionOps;

/* `ops`, `timers` and `budget` are borrowed. */
RpcConnection *rpc_connection_new(const RpcConnectionOps *ops, void *owner, RpcTimers *timers,
                                  RpcBudget *budget);
/* Running calls become gone. Takes NULL. */
void rpc_connection_free(RpcConnection *connection);

/* Bytes of the peer. They may hold secrets and are not kept, but by the messages they belong to. */
void rpc_connection_receive(RpcConnection *connection, const guint8 *bytes, size_t length);
/* The next bytes to send, valid until the next call; 0: none now. */
size_t rpc_connection_send(RpcConnection *connection, const guint8 **bytes);
/* Nothing more will be read or sent: close it when what was sent has left. */
gboolean rpc_connection_finished(const RpcConnection *connection);
/* The peer broke the protocol or a time limit: close it now. */
gboolean rpc_connection_failed(const RpcConnection *connection);
/* Streams that are open; and those whose headers are complete. */
guint rpc_connection_streams(const RpcConnection *connection);
guint rpc_connection_calls(const RpcConnection *connection);
/* Tells the peer to send no new requests (GOAWAY); it finishes once the open ones are answered. */
void rpc_connection_shut_down(RpcConnection *connection);
/* Answers every request that has no answer; their calls become gone. */
void rpc_connection_answer_all(RpcConnection *connection, guint code, const char *message);

/* Answers a RUNNING stream, from within request() too. Takes what `reply` owns and empties it. */
void rpc_stream_answer(RpcStream *stream, RpcReply *reply);

#endif
