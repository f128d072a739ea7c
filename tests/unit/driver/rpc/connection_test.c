/* SPDX-License-Identifier: Apache-2.0 */
/* The connection without sockets: bytes in, frames out, time by hand. */
#include "driver/rpc/connection.h"

#include "common/error.h"
#include "driver/rpc/framing.h"
#include "tests/unit/driver/rpc/frames.h"
#include "tests/unit/harness.h"

/* The owner: keeps one running call and counts. */
typedef struct Rig {
    RpcTimers timers;
    RpcBudget budget;
    RpcConnection *connection;
    GByteArray *out;
    FrameReader reader;
    RpcStream *running; /* of the last request not yet answered */
    RpcRequest request;
    guint requests, gones, readies;
    gboolean answer_at_once;
} Rig;

static gconstpointer rig_find(void *owner, const char *path)
{
    (void)owner;
    return strcmp(path, PROBE) == 0 ? PROBE : NULL;
}

static void answer_ok(Rig *rig, RpcStream *stream)
{
    (void)rig;
    RpcReply reply = {.bytes = g_malloc0(RPC_PREFIX_BYTES + 2), .length = RPC_PREFIX_BYTES + 2};
    rpc_prefix_write(reply.bytes, 2);
    memcpy(reply.bytes + RPC_PREFIX_BYTES, "ok", 2);
    rpc_stream_answer(stream, &reply);
    ck_assert_ptr_null(reply.bytes);
}

static void *rig_request(void *owner, RpcStream *stream, RpcRequest *request)
{
    Rig *rig = owner;
    rig->requests++;
    rpc_buffer_clear(&rig->request.message);
    rig->request = *request;
    rig->request.message = rpc_buffer_steal(&request->message);
    if (rig->answer_at_once) {
        answer_ok(rig, stream);
        return NULL;
    }
    rig->running = stream;
    return rig;
}

static void rig_gone(void *owner, void *call)
{
    Rig *rig = owner;
    ck_assert_ptr_eq(call, rig);
    rig->gones++;
}

static void rig_ready(void *owner)
{
    ((Rig *)owner)->readies++;
}

static const RpcConnectionOps rig_ops = {rig_find, rig_request, rig_gone, rig_ready};

static void rig_open(Rig *rig)
{
    memset(rig, 0, sizeof(*rig));
    rig->out = g_byte_array_new();
    frame_reader_init(&rig->reader);
    rig->connection = rpc_connection_new(&rig_ops, rig, &rig->timers, &rig->budget);
}

/* Sends what is in `out`, and takes what comes back. */
static void rig_turn(Rig *rig)
{
    rpc_connection_receive(rig->connection, rig->out->data, rig->out->len);
    g_byte_array_set_size(rig->out, 0);
    const guint8 *bytes;
    for (size_t n; (n = rpc_connection_send(rig->connection, &bytes)) > 0;)
        frame_reader_feed(&rig->reader, bytes, n);
}

static void rig_start(Rig *rig)
{
    rig_open(rig);
    frames_preface(rig->out);
    rig_turn(rig);
    ck_assert(!rpc_connection_finished(rig->connection));
}

static void rig_close(Rig *rig)
{
    rpc_connection_free(rig->connection);
    rpc_buffer_clear(&rig->request.message);
    ck_assert_uint_eq(atomic_load(&rig->budget.used_bytes), 0);
    ck_assert_int_eq(rpc_timers_next(&rig->timers), G_MAXINT64);
    rpc_timers_free(&rig->timers);
    g_byte_array_unref(rig->out);
    frame_reader_clear(&rig->reader);
}

/* The stream has a trailers-only answer of this status. */
static const StreamReply *expect_status(Rig *rig, guint32 stream, guint http, int code)
{
    const StreamReply *reply = stream_reply(&rig->reader, stream);
    ck_assert_uint_eq(reply->http_status, http);
    ck_assert_int_eq(reply->grpc_status, code);
    ck_assert_str_eq(reply->content_type, "application/grpc");
    ck_assert(reply->ended && reply->trailers_only);
    ck_assert(!reply->reset_before_end);
    return reply;
}

static void expect_message(const StreamReply *reply, const char *part)
{
    ck_assert_msg(strstr(reply->grpc_message, part) != NULL, "\"%s\" lacks \"%s\"",
                  reply->grpc_message, part);
}

START_TEST(unary_call_is_answered)
{
    Rig rig;
    rig_start(&rig);
    frames_call(rig.out, 1, PROBE, NULL, NULL);
    frames_message(rig.out, 1, NGHTTP2_FLAG_END_STREAM, "abc", 3);
    rig_turn(&rig);
    ck_assert_uint_eq(rig.requests, 1);
    ck_assert_uint_eq(rig.request.message.length, 3);
    ck_assert_mem_eq(rig.request.message.data, "abc", 3);
    ck_assert_int_eq(rig.request.deadline_us, G_MAXINT64);

    answer_ok(&rig, rig.running);
    rig_turn(&rig);
    const StreamReply *reply = stream_reply(&rig.reader, 1);
    ck_assert_uint_eq(reply->http_status, 200);
    ck_assert_int_eq(reply->grpc_status, 0);
    ck_assert(reply->ended && !reply->trailers_only);
    ck_assert_int_eq(reply->reset_code, -1);
    ck_assert_uint_eq(reply->data->len, 7);
    ck_assert_mem_eq(reply->data->data, "\0\0\0\0\2ok", 7);
    ck_assert_uint_eq(rpc_connection_streams(rig.connection), 0);
    ck_assert_uint_eq(rig.gones, 0);
    rig_close(&rig);
}
END_TEST

START_TEST(request_may_come_byte_by_byte)
{
    Rig rig;
    rig_open(&rig);
    g_autoptr(GByteArray) all = g_byte_array_new();
    frames_preface(all);
    frames_call(all, 1, PROBE, NULL, NULL);
    frame(all, NGHTTP2_DATA, 0, 1, "\0\0", 2);
    frame(all, NGHTTP2_DATA, 0, 1, "\0\0\3a", 4);
    frame(all, NGHTTP2_DATA, 0, 1, NULL, 0);
    frame(all, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, "bc", 2);
    for (guint i = 0; i < all->len; i++) {
        g_byte_array_append(rig.out, all->data + i, 1);
        rig_turn(&rig);
    }
    ck_assert_uint_eq(rig.requests, 1);
    ck_assert_mem_eq(rig.request.message.data, "abc", 3);
    rig_close(&rig);
}
END_TEST

/* Kubelets before 1.24 send the socket's path as :authority, with '/' as it is or escaped. */
START_TEST(authority_may_be_a_path)
{
    Rig rig;
    rig_start(&rig);
    rig.answer_at_once = TRUE;
    frames_headers(rig.out, 1, 0, ":method", "POST", ":scheme", "http", ":path", PROBE,
                   ":authority", "/var/lib/kubelet/plugins/csi.hearth.dev/csi.sock", "content-type",
                   "application/grpc", "te", "trailers", NULL);
    frames_message(rig.out, 1, NGHTTP2_FLAG_END_STREAM, NULL, 0);
    rig_turn(&rig);
    ck_assert_int_eq(stream_reply(&rig.reader, 1)->grpc_status, 0);
    rig_close(&rig);
}
END_TEST

START_TEST(client_trailers_end_a_request)
{
    Rig rig;
    rig_start(&rig);
    rig.answer_at_once = TRUE;
    frames_call(rig.out, 1, PROBE, NULL, NULL);
    frames_message(rig.out, 1, 0, "abc", 3);
    frames_headers(rig.out, 1, NGHTTP2_FLAG_END_STREAM, "x-trailer", "1", NULL);
    rig_turn(&rig);
    ck_assert_int_eq(stream_reply(&rig.reader, 1)->grpc_status, 0);
    rig_close(&rig);
}
END_TEST

START_TEST(wrong_http_is_refused_by_status)
{
    Rig rig;
    rig_start(&rig);
    guint8 end = NGHTTP2_FLAG_END_STREAM;
    const char *grpc = "application/grpc";
    frames_headers(rig.out, 1, 0, ":method", "POST", ":path", PROBE, "content-type",
                   "application/json", NULL);
    frames_headers(rig.out, 3, end, ":method", "GET", ":path", PROBE, "content-type", grpc, NULL);
    frames_headers(rig.out, 5, end, ":method", "POST", "content-type", grpc, NULL);
    frames_headers(rig.out, 7, end, ":method", "POST", ":path", PROBE, ":path", PROBE,
                   "content-type", grpc, NULL);
    frames_headers(rig.out, 9, end, ":method", "POST", ":path", PROBE, NULL);
    frames_headers(rig.out, 11, end, ":method", "POST", ":path", PROBE, "content-type", grpc,
                   "grpc-timeout", "5x", NULL);
    frames_headers(rig.out, 13, end, ":path", PROBE, "content-type", grpc, NULL);
    rig_turn(&rig);
    expect_status(&rig, 1, 415, HEARTH_ERROR_INVALID_ARGUMENT);
    expect_status(&rig, 3, 405, HEARTH_ERROR_INTERNAL);
    expect_status(&rig, 5, 400, HEARTH_ERROR_INTERNAL);
    expect_status(&rig, 7, 400, HEARTH_ERROR_INTERNAL);
    expect_status(&rig, 9, 415, HEARTH_ERROR_INVALID_ARGUMENT);
    expect_message(expect_status(&rig, 11, 400, HEARTH_ERROR_INTERNAL), "grpc-timeout");
    expect_status(&rig, 13, 405, HEARTH_ERROR_INTERNAL);
    ck_assert_uint_eq(rig.requests, 0);
    ck_assert_uint_eq(rpc_connection_streams(rig.connection), 0);
    rig_close(&rig);
}
END_TEST

/* The reset that stops the peer must follow the answer, or nghttp2 would drop the answer. */
START_TEST(early_answer_arrives_before_the_reset)
{
    Rig rig;
    rig_start(&rig);
    frames_call(rig.out, 1, "/csi.v1.Node/NodeFly", NULL, NULL);
    rig_turn(&rig);
    const StreamReply *reply = expect_status(&rig, 1, 200, HEARTH_ERROR_UNIMPLEMENTED);
    expect_message(reply, "/csi.v1.Node/NodeFly");
    ck_assert_int_eq(reply->reset_code, NGHTTP2_NO_ERROR);
    ck_assert_uint_eq(rpc_connection_streams(rig.connection), 0);

    /* What the peer had already sent is ignored, and the connection goes on. */
    frames_message(rig.out, 1, NGHTTP2_FLAG_END_STREAM, "abc", 3);
    rig.answer_at_once = TRUE;
    frames_call(rig.out, 3, PROBE, NULL, NULL);
    frames_message(rig.out, 3, NGHTTP2_FLAG_END_STREAM, NULL, 0);
    rig_turn(&rig);
    ck_assert_int_eq(stream_reply(&rig.reader, 3)->grpc_status, 0);
    rig_close(&rig);
}
END_TEST

START_TEST(compressed_message_is_unimplemented)
{
    Rig rig;
    rig_start(&rig);
    frames_call(rig.out, 1, PROBE, "grpc-encoding", "gzip");
    frame(rig.out, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, "\1\0\0\0\1z", 6);
    rig_turn(&rig);
    const StreamReply *reply = expect_status(&rig, 1, 200, HEARTH_ERROR_UNIMPLEMENTED);
    expect_message(reply, "grpc-encoding \"gzip\" is not supported");
    ck_assert_str_eq(reply->accept_encoding, "identity");
    rig_close(&rig);
}
END_TEST

START_TEST(long_message_is_refused_by_its_prefix)
{
    Rig rig;
    rig_start(&rig);
    frames_call(rig.out, 1, PROBE, NULL, NULL);
    frame(rig.out, NGHTTP2_DATA, 0, 1, "\0\0\x10\0\1", 5); /* one byte over 1 MiB */
    rig_turn(&rig);
    expect_message(expect_status(&rig, 1, 200, HEARTH_ERROR_RESOURCE_EXHAUSTED), "1048577");
    ck_assert_uint_eq(atomic_load(&rig.budget.used_bytes), 0);
    /* The largest that is allowed is not refused. */
    frames_call(rig.out, 3, PROBE, NULL, NULL);
    frame(rig.out, NGHTTP2_DATA, 0, 3, "\0\0\x10\0\0", 5);
    rig_turn(&rig);
    ck_assert_int_eq(stream_reply(&rig.reader, 3)->grpc_status, -1);
    rig_close(&rig);
}
END_TEST

START_TEST(wrong_number_of_messages_is_refused)
{
    Rig rig;
    rig_start(&rig);
    guint8 end = NGHTTP2_FLAG_END_STREAM;
    frames_call(rig.out, 1, PROBE, NULL, NULL); /* cut in the message */
    frame(rig.out, NGHTTP2_DATA, end, 1, "\0\0\0\0\5abc", 8);
    frames_call(rig.out, 3, PROBE, NULL, NULL); /* cut in the prefix */
    frame(rig.out, NGHTTP2_DATA, end, 3, "\0\0\0", 3);
    frames_call(rig.out, 5, PROBE, NULL, NULL); /* two */
    frames_message(rig.out, 5, 0, "abc", 3);
    frames_message(rig.out, 5, end, "abc", 3);
    frames_call(rig.out, 7, PROBE, NULL, NULL); /* two, empty */
    frames_message(rig.out, 7, 0, NULL, 0);
    frames_message(rig.out, 7, end, NULL, 0);
    frames_call(rig.out, 9, PROBE, NULL, NULL); /* none */
    frame(rig.out, NGHTTP2_DATA, end, 9, NULL, 0);
    frames_headers(rig.out, 11, end, ":method", "POST", ":path", PROBE, "content-type",
                   "application/grpc+proto", NULL); /* none */
    rig_turn(&rig);
    expect_message(expect_status(&rig, 1, 200, HEARTH_ERROR_INVALID_ARGUMENT), "8 of 10 bytes");
    expect_message(expect_status(&rig, 3, 200, HEARTH_ERROR_INVALID_ARGUMENT), "cut short");
    expect_message(expect_status(&rig, 5, 200, HEARTH_ERROR_UNIMPLEMENTED), "more than one");
    expect_message(expect_status(&rig, 7, 200, HEARTH_ERROR_UNIMPLEMENTED), "more than one");
    expect_message(expect_status(&rig, 9, 200, HEARTH_ERROR_UNIMPLEMENTED), "no message");
    expect_message(expect_status(&rig, 11, 200, HEARTH_ERROR_UNIMPLEMENTED), "no message");
    ck_assert_uint_eq(rig.requests, 0);
    rig_close(&rig);
}
END_TEST

START_TEST(error_message_is_percent_encoded)
{
    Rig rig;
    rig_start(&rig);
    frames_call(rig.out, 1, PROBE, NULL, NULL);
    frames_message(rig.out, 1, NGHTTP2_FLAG_END_STREAM, NULL, 0);
    rig_turn(&rig);
    RpcReply reply = {.code = HEARTH_ERROR_NOT_FOUND, .message = g_strdup("größe 100%\n")};
    rpc_stream_answer(rig.running, &reply);
    rig_turn(&rig);
    ck_assert_str_eq(expect_status(&rig, 1, 200, HEARTH_ERROR_NOT_FOUND)->grpc_message,
                     "gr%C3%B6%C3%9Fe 100%25%0A");
    rig_close(&rig);
}
END_TEST

START_TEST(deadline_answers_a_running_call)
{
    Rig rig;
    rig_start(&rig);
    gint64 before = g_get_monotonic_time();
    frames_call(rig.out, 1, PROBE, "grpc-timeout", "1S");
    frames_message(rig.out, 1, NGHTTP2_FLAG_END_STREAM, NULL, 0);
    rig_turn(&rig);
    ck_assert_uint_eq(rig.requests, 1);
    ck_assert_int_ge(rig.request.deadline_us, before + G_USEC_PER_SEC);
    rpc_timers_run(&rig.timers, rig.request.deadline_us - 1);
    rig_turn(&rig);
    ck_assert_int_eq(stream_reply(&rig.reader, 1)->grpc_status, -1);

    guint readies = rig.readies;
    rpc_timers_run(&rig.timers, rig.request.deadline_us);
    ck_assert_uint_eq(rig.gones, 1);
    ck_assert_uint_gt(rig.readies, readies);
    rig_turn(&rig);
    expect_status(&rig, 1, 200, HEARTH_ERROR_DEADLINE_EXCEEDED);
    rig_close(&rig);
    ck_assert_uint_eq(rig.gones, 1);
}
END_TEST

START_TEST(deadline_of_nothing_is_exceeded_at_once)
{
    Rig rig;
    rig_start(&rig);
    frames_call(rig.out, 1, PROBE, "grpc-timeout", "0n");
    frames_message(rig.out, 1, NGHTTP2_FLAG_END_STREAM, NULL, 0);
    rig_turn(&rig);
    expect_status(&rig, 1, 200, HEARTH_ERROR_DEADLINE_EXCEEDED);
    ck_assert_uint_eq(rig.requests, 0);
    rig_close(&rig);
}
END_TEST

START_TEST(request_that_stalls_is_given_up)
{
    Rig rig;
    rig_start(&rig);
    frames_call(rig.out, 1, PROBE, NULL, NULL);
    frame(rig.out, NGHTTP2_DATA, 0, 1, "\0\0\x10\0\0abc", 8); /* holds 1 MiB of the budget */
    rig_turn(&rig);
    ck_assert_uint_eq(atomic_load(&rig.budget.used_bytes), 1 << 20);
    rpc_timers_run(&rig.timers, g_get_monotonic_time() + RPC_BODY_TIMEOUT_MS * 1000);
    rig_turn(&rig);
    expect_status(&rig, 1, 200, HEARTH_ERROR_DEADLINE_EXCEEDED);
    ck_assert_uint_eq(atomic_load(&rig.budget.used_bytes), 0);
    rig_close(&rig);
}
END_TEST

START_TEST(cancelled_call_is_gone)
{
    Rig rig;
    rig_start(&rig);
    frames_call(rig.out, 1, PROBE, "grpc-timeout", "1H");
    frames_message(rig.out, 1, NGHTTP2_FLAG_END_STREAM, NULL, 0);
    rig_turn(&rig);
    ck_assert_uint_eq(rig.gones, 0);
    frames_rst(rig.out, 1, NGHTTP2_CANCEL);
    rig_turn(&rig);
    ck_assert_uint_eq(rig.gones, 1);
    ck_assert_uint_eq(rpc_connection_streams(rig.connection), 0);
    ck_assert_int_eq(rpc_timers_next(&rig.timers), G_MAXINT64);
    rig_close(&rig);
    ck_assert_uint_eq(rig.gones, 1);
}
END_TEST

START_TEST(calls_of_a_freed_connection_are_gone)
{
    Rig rig;
    rig_start(&rig);
    for (guint i = 0; i < 3; i++) {
        frames_call(rig.out, 1 + 2 * i, PROBE, NULL, NULL);
        frames_message(rig.out, 1 + 2 * i, NGHTTP2_FLAG_END_STREAM, NULL, 0);
    }
    frames_call(rig.out, 7, PROBE, NULL, NULL); /* still without its message */
    rig_turn(&rig);
    ck_assert_uint_eq(rpc_connection_streams(rig.connection), 4);
    rig_close(&rig);
    ck_assert_uint_eq(rig.gones, 3);
}
END_TEST

START_TEST(silent_peer_is_dropped_after_the_preface_timeout)
{
    Rig rig;
    rig_open(&rig);
    g_byte_array_append(rig.out, (const guint8 *)FRAMES_MAGIC, 10);
    rig_turn(&rig);
    gint64 due = rpc_timers_next(&rig.timers);
    ck_assert_int_le(due, g_get_monotonic_time() + RPC_PREFACE_TIMEOUT_MS * 1000);
    ck_assert(!rpc_connection_finished(rig.connection));
    rpc_timers_run(&rig.timers, due);
    ck_assert(rpc_connection_finished(rig.connection));
    rig_close(&rig);
}
END_TEST

START_TEST(peer_that_takes_no_response_is_dropped)
{
    Rig rig;
    rig_start(&rig);
    frames_call(rig.out, 1, PROBE, NULL, NULL);
    frames_message(rig.out, 1, NGHTTP2_FLAG_END_STREAM, NULL, 0);
    rig_turn(&rig);
    /* More than the window of 64 KiB, which this peer never opens. */
    RpcReply reply = {.bytes = g_malloc0(100000), .length = 100000};
    rpc_stream_answer(rig.running, &reply);
    rig_turn(&rig);
    ck_assert_uint_eq(stream_reply(&rig.reader, 1)->data->len, 65535);
    ck_assert(!rpc_connection_finished(rig.connection));
    rpc_timers_run(&rig.timers, g_get_monotonic_time() + RPC_SEND_TIMEOUT_MS * 1000);
    ck_assert(rpc_connection_failed(rig.connection));
    rig_close(&rig);
}
END_TEST

START_TEST(garbage_ends_the_connection)
{
    static const char *const garbage[] = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                                          FRAMES_MAGIC "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
                                          "\x16\x03\x01\x02"};
    for (size_t i = 0; i < G_N_ELEMENTS(garbage); i++) {
        Rig rig;
        rig_open(&rig);
        g_byte_array_append(rig.out, (const guint8 *)garbage[i], strlen(garbage[i]));
        rig_turn(&rig);
        rig_turn(&rig);
        ck_assert(rpc_connection_finished(rig.connection));
        rig_close(&rig);
    }
}
END_TEST

START_TEST(large_headers_are_refused_and_a_flood_ends_the_connection)
{
    Rig rig;
    rig_start(&rig);
    g_autofree char *big = g_strnfill(15000, 'x');
    frames_call(rig.out, 1, PROBE, "x-big", big);
    rig_turn(&rig);
    ck_assert_int_eq(stream_reply(&rig.reader, 1)->grpc_status, -1);

    g_autoptr(GByteArray) block = g_byte_array_new();
    frames_header(block, ":method", "POST");
    frames_header(block, "x-big", big);
    frame(rig.out, NGHTTP2_HEADERS, 0, 3, block->data, block->len);
    g_byte_array_set_size(block, 0);
    frames_header(block, "x-big", big);
    frame(rig.out, NGHTTP2_CONTINUATION, NGHTTP2_FLAG_END_HEADERS, 3, block->data, block->len);
    rig_turn(&rig);
    expect_status(&rig, 3, 431, HEARTH_ERROR_RESOURCE_EXHAUSTED);
    ck_assert(!rpc_connection_finished(rig.connection));

    frame(rig.out, NGHTTP2_HEADERS, 0, 5, block->data, block->len);
    for (guint i = 0; i < 100; i++)
        frame(rig.out, NGHTTP2_CONTINUATION, 0, 5, block->data, block->len);
    rig_turn(&rig);
    ck_assert(rpc_connection_finished(rig.connection));
    rig_close(&rig);
}
END_TEST

START_TEST(large_messages_share_a_budget_that_small_ones_do_not_need)
{
    Rig rig;
    rig_start(&rig);
    guint32 id = 1;
    for (; id < 33; id += 2) {
        frames_call(rig.out, id, PROBE, NULL, NULL);
        frame(rig.out, NGHTTP2_DATA, 0, id, "\0\0\x10\0\0", 5);
    }
    rig_turn(&rig);
    ck_assert_uint_eq(atomic_load(&rig.budget.used_bytes), RPC_BUDGET_BYTES);
    frames_call(rig.out, 33, PROBE, NULL, NULL);
    frame(rig.out, NGHTTP2_DATA, 0, 33, "\0\0\0\x40\1", 5); /* 16 KiB + 1 */
    rig.answer_at_once = TRUE;
    g_autofree guint8 *small = g_malloc0(RPC_SMALL_BYTES);
    frames_call(rig.out, 35, PROBE, NULL, NULL);
    frame(rig.out, NGHTTP2_DATA, 0, 35, "\0\0\0\x40\0", 5);
    frame(rig.out, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 35, small, RPC_SMALL_BYTES);
    rig_turn(&rig);
    expect_message(expect_status(&rig, 33, 200, HEARTH_ERROR_RESOURCE_EXHAUSTED), "16385");
    ck_assert_int_eq(stream_reply(&rig.reader, 35)->grpc_status, 0);
    frames_rst(rig.out, 1, NGHTTP2_CANCEL);
    rig_turn(&rig);
    ck_assert_uint_eq(atomic_load(&rig.budget.used_bytes), RPC_BUDGET_BYTES - (1 << 20));
    rig_close(&rig);
}
END_TEST

START_TEST(opening_and_resetting_streams_leaves_nothing)
{
    Rig rig;
    rig_start(&rig);
    for (guint32 i = 0; i < 10000 && !rpc_connection_finished(rig.connection); i++) {
        frames_call(rig.out, 1 + 2 * i, PROBE, NULL, NULL);
        frames_message(rig.out, 1 + 2 * i, NGHTTP2_FLAG_END_STREAM, NULL, 0);
        frames_rst(rig.out, 1 + 2 * i, NGHTTP2_CANCEL);
        rig_turn(&rig);
        ck_assert_uint_eq(rpc_connection_streams(rig.connection), 0);
    }
    ck_assert_uint_eq(rig.gones, rig.requests);
    rig_close(&rig);
}
END_TEST

START_TEST(streams_beyond_the_limit_are_refused)
{
    Rig rig;
    rig_start(&rig);
    for (guint32 i = 0; i < RPC_STREAMS_MAX + 1; i++)
        frames_call(rig.out, 1 + 2 * i, PROBE, NULL, NULL);
    rig_turn(&rig);
    ck_assert_uint_eq(rpc_connection_streams(rig.connection), RPC_STREAMS_MAX);
    ck_assert_int_eq(stream_reply(&rig.reader, 1 + 2 * RPC_STREAMS_MAX)->reset_code,
                     NGHTTP2_REFUSED_STREAM);
    /* From a peer that confirmed our settings it is an error. */
    frame(rig.out, NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, NULL, 0);
    frames_call(rig.out, 1001, PROBE, NULL, NULL);
    rig_turn(&rig);
    ck_assert(rig.reader.goaway);
    rig_close(&rig);
}
END_TEST

START_TEST(shutting_down_finishes_after_the_last_answer)
{
    Rig rig;
    rig_start(&rig);
    frames_call(rig.out, 1, PROBE, NULL, NULL);
    frames_message(rig.out, 1, NGHTTP2_FLAG_END_STREAM, NULL, 0);
    frames_call(rig.out, 3, PROBE, NULL, NULL);
    rig_turn(&rig);
    rpc_connection_shut_down(rig.connection);
    rig_turn(&rig);
    ck_assert(rig.reader.goaway);
    ck_assert(!rpc_connection_finished(rig.connection));
    answer_ok(&rig, rig.running);
    rig_turn(&rig);
    ck_assert_int_eq(stream_reply(&rig.reader, 1)->grpc_status, 0);
    rpc_connection_answer_all(rig.connection, HEARTH_ERROR_UNAVAILABLE, "stopping");
    rig_turn(&rig);
    expect_status(&rig, 3, 200, HEARTH_ERROR_UNAVAILABLE);
    ck_assert(rpc_connection_finished(rig.connection));
    rig_close(&rig);
}
END_TEST

HARNESS_MAIN("driver/rpc/connection", unary_call_is_answered, request_may_come_byte_by_byte,
             authority_may_be_a_path, client_trailers_end_a_request,
             wrong_http_is_refused_by_status, early_answer_arrives_before_the_reset,
             compressed_message_is_unimplemented, long_message_is_refused_by_its_prefix,
             wrong_number_of_messages_is_refused, error_message_is_percent_encoded,
             deadline_answers_a_running_call, deadline_of_nothing_is_exceeded_at_once,
             request_that_stalls_is_given_up, cancelled_call_is_gone,
             calls_of_a_freed_connection_are_gone, silent_peer_is_dropped_after_the_preface_timeout,
             peer_that_takes_no_response_is_dropped, garbage_ends_the_connection,
             large_headers_are_refused_and_a_flood_ends_the_connection,
             large_messages_share_a_budget_that_small_ones_do_not_need,
             opening_and_resetting_streams_leaves_nothing, streams_beyond_the_limit_are_refused,
             shutting_down_finishes_after_the_last_answer)
