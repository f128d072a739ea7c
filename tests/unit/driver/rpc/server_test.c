/* SPDX-License-Identifier: Apache-2.0 */
/* The whole server over its socket: workers, deadlines, limits, stopping, abuse. */
#include "driver/rpc/server.h"

#include <errno.h>
#include <gio/gio.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "csi.pb-c.h"
#include "driver/rpc/client.h"
#include "driver/rpc/loop.h"
#include "tests/unit/driver/rpc/frames.h"
#include "tests/unit/harness.h"

#define STAGE "/csi.v1.Node/NodeStageVolume"
#define CREATE "/csi.v1.Controller/CreateVolume"

/* The service: NodeStageVolume waits at a gate; CreateVolume does what the name says. */
typedef struct Gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    gboolean open;
    guint inside, left;
    gint64 time_left_ms; /* seen by the last to leave */
} Gate;

typedef struct Rig {
    char *dir, *path;
    RpcServer *server;
    Gate gate;
} Rig;

static gboolean probe(RpcCall *call, const ProtobufCMessage *request, ProtobufCMessage *message,
                      void *service, GError **error)
{
    (void)request, (void)service, (void)error;
    Csi__V1__ProbeResponse *response = (Csi__V1__ProbeResponse *)message;
    response->ready = rpc_alloc(call, sizeof(*response->ready));
    csi__v1__bool_value__init(response->ready);
    response->ready->value = TRUE;
    return TRUE;
}

static gboolean stage(RpcCall *call, const ProtobufCMessage *request, ProtobufCMessage *message,
                      void *service, GError **error)
{
    (void)request, (void)message, (void)error;
    Gate *gate = service;
    pthread_mutex_lock(&gate->lock);
    gate->inside++;
    pthread_cond_broadcast(&gate->changed);
    while (!gate->open)
        pthread_cond_wait(&gate->changed, &gate->lock);
    gate->inside--;
    gate->left++;
    gate->time_left_ms = rpc_time_left_ms(call);
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
    return TRUE;
}

static gboolean create(RpcCall *call, const ProtobufCMessage *message, ProtobufCMessage *answer,
                       void *service, GError **error)
{
    (void)service;
    const Csi__V1__CreateVolumeRequest *request = (const Csi__V1__CreateVolumeRequest *)message;
    Csi__V1__CreateVolumeResponse *response = (Csi__V1__CreateVolumeResponse *)answer;
    response->volume = rpc_alloc(call, sizeof(*response->volume));
    csi__v1__volume__init(response->volume);
    response->volume->volume_id = rpc_strdup(call, request->name);
    response->volume->capacity_bytes = request->n_parameters;
    if (strcmp(request->name, "missing") == 0) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND, "größe “100%%”\nnext");
        return FALSE;
    }
    if (strcmp(request->name, "foreign") == 0) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_NO_SPACE, "disk full");
        return FALSE;
    }
    if (strcmp(request->name, "silent") == 0)
        return FALSE;
    if (strcmp(request->name, "latin1") == 0)
        response->volume->volume_id = (char *)"gr\xf6\xdf"
                                              "e";
    if (strcmp(request->name, "greedy") == 0) {
        while (rpc_alloc(call, 1 << 20))
            ;
    }
    if (strcmp(request->name, "huge") == 0) {
        char *text = rpc_alloc(call, (5 << 20) + 1);
        memset(text, 'x', 5 << 20);
        response->volume->volume_id = text;
    }
    if (strcmp(request->name, "long") == 0) {
        char *text = rpc_alloc(call, (3 << 20) + 1);
        memset(text, 'x', 3 << 20);
        response->volume->volume_id = text;
    }
    if (strcmp(request->name, "parameter") == 0) {
        for (size_t i = 0; i < request->n_parameters; i++)
            response->volume->volume_id = request->parameters[i]->value;
    }
    return TRUE;
}

static const RpcMethod methods[] = {
    {PROBE, &csi__v1__probe_request__descriptor, &csi__v1__probe_response__descriptor, probe},
    {STAGE, &csi__v1__node_stage_volume_request__descriptor,
     &csi__v1__node_stage_volume_response__descriptor, stage},
    {CREATE, &csi__v1__create_volume_request__descriptor,
     &csi__v1__create_volume_response__descriptor, create},
    {"/csi.v1.Controller/ListVolumes", &csi__v1__list_volumes_request__descriptor,
     &csi__v1__list_volumes_response__descriptor, NULL},
    {NULL, NULL, NULL, NULL}};

static void rig_start(Rig *rig, unsigned workers, unsigned max_queued)
{
    memset(rig, 0, sizeof(*rig));
    rig->dir = harness_tmpdir();
    rig->path = g_build_filename(rig->dir, "csi.sock", NULL);
    pthread_mutex_init(&rig->gate.lock, NULL);
    pthread_cond_init(&rig->gate.changed, NULL);
    RpcServerConfig config = {
        .socket_path = rig->path, .workers = workers, .max_queued = max_queued};
    GError *error = NULL;
    rig->server = rpc_server_new(&config, &error);
    ck_assert_ptr_nonnull(rig->server);
    rpc_server_add(rig->server, methods, &rig->gate);
    ck_assert_msg(rpc_server_start(rig->server, &error), "%s", error ? error->message : "");
}

static void gate_open(Gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->open = TRUE;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

static void gate_wait_inside(Gate *gate, guint n)
{
    pthread_mutex_lock(&gate->lock);
    while (gate->inside < n)
        pthread_cond_wait(&gate->changed, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

static void rig_stop(Rig *rig)
{
    gate_open(&rig->gate);
    ck_assert(rpc_server_stop(rig->server, 5000));
    ck_assert(!g_file_test(rig->path, G_FILE_TEST_EXISTS));
    pthread_cond_destroy(&rig->gate.changed);
    pthread_mutex_destroy(&rig->gate.lock);
    g_free(rig->path);
    harness_remove(rig->dir);
}

/* ---- Through the client */

static RpcClient *dial(const Rig *rig)
{
    GError *error = NULL;
    RpcClient *client = rpc_client_connect(rig->path, &error);
    ck_assert_msg(client != NULL, "%s", error ? error->message : "");
    return client;
}

static gboolean call_probe(RpcClient *client, gint64 timeout_ms, GError **error)
{
    Csi__V1__ProbeRequest request = CSI__V1__PROBE_REQUEST__INIT;
    ProtobufCMessage *response = rpc_client_call(
        client, PROBE, &request.base, &csi__v1__probe_response__descriptor, timeout_ms, error);
    gboolean ready = response && ((Csi__V1__ProbeResponse *)response)->ready->value;
    if (response)
        protobuf_c_message_free_unpacked(response, NULL);
    return ready;
}

static void expect_probe(const Rig *rig)
{
    g_autoptr(RpcClient) client = dial(rig);
    GError *error = NULL;
    ck_assert_msg(call_probe(client, 10000, &error), "%s", error ? error->message : "");
}

/* The volume ID of CreateVolume's answer, or NULL. */
static char *call_create(RpcClient *client, const char *name, GError **error)
{
    Csi__V1__CreateVolumeRequest request = CSI__V1__CREATE_VOLUME_REQUEST__INIT;
    request.name = (char *)name;
    ProtobufCMessage *response = rpc_client_call(
        client, CREATE, &request.base, &csi__v1__create_volume_response__descriptor, 10000, error);
    if (!response)
        return NULL;
    char *id = g_strdup(((Csi__V1__CreateVolumeResponse *)response)->volume->volume_id);
    protobuf_c_message_free_unpacked(response, NULL);
    return id;
}

START_TEST(calls_are_answered_on_one_connection)
{
    Rig rig;
    rig_start(&rig, 0, 0);
    struct stat st;
    ck_assert_int_eq(lstat(rig.path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    g_autoptr(RpcClient) client = dial(&rig);
    for (int i = 0; i < 100; i++) {
        g_autofree char *name = g_strdup_printf("pvc-%d-ü", i);
        g_autofree char *id = call_create(client, name, NULL);
        ck_assert_str_eq(id, name);
        ck_assert(call_probe(client, 10000, NULL));
    }
    rig_stop(&rig);
}
END_TEST

START_TEST(errors_arrive_with_code_and_message)
{
    static const struct {
        const char *name;
        int code;
        const char *message;
    } cases[] = {
        {"missing", HEARTH_ERROR_NOT_FOUND, "größe “100%”\nnext"},
        {"foreign", HEARTH_ERROR_INTERNAL, "disk full"},
        {"silent", HEARTH_ERROR_INTERNAL, CREATE " failed without an error"},
        {"latin1", HEARTH_ERROR_INTERNAL,
         "response to " CREATE ": field volume.volume_id is not valid UTF-8"},
        {"greedy", HEARTH_ERROR_RESOURCE_EXHAUSTED,
         CREATE " needs more than the 16777216 bytes of memory a call may have"},
        {"huge", HEARTH_ERROR_RESOURCE_EXHAUSTED,
         "response of 5242890 bytes to " CREATE " exceeds the limit of 4194304 bytes"},
    };
    Rig rig;
    rig_start(&rig, 0, 0);
    g_autoptr(RpcClient) client = dial(&rig);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        ck_assert_ptr_null(call_create(client, cases[i].name, &error));
        ck_assert(g_error_matches(error, HEARTH_ERROR, cases[i].code));
        ck_assert_str_eq(error->message, cases[i].message);
    }
    g_autofree char *long_id = call_create(client, "long", NULL);
    ck_assert_uint_eq(strlen(long_id), 3 << 20);

    Csi__V1__ListVolumesRequest request = CSI__V1__LIST_VOLUMES_REQUEST__INIT;
    g_autoptr(GError) error = NULL;
    ck_assert_ptr_null(rpc_client_call(client, "/csi.v1.Controller/ListVolumes", &request.base,
                                       &csi__v1__list_volumes_response__descriptor, 0, &error));
    ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_UNIMPLEMENTED));
    rig_stop(&rig);
}
END_TEST

START_TEST(last_of_duplicate_map_keys_wins)
{
    Rig rig;
    rig_start(&rig, 0, 0);
    g_autoptr(RpcClient) client = dial(&rig);
    Csi__V1__CreateVolumeRequest__ParametersEntry
        entries[3] = {CSI__V1__CREATE_VOLUME_REQUEST__PARAMETERS_ENTRY__INIT,
                      CSI__V1__CREATE_VOLUME_REQUEST__PARAMETERS_ENTRY__INIT,
                      CSI__V1__CREATE_VOLUME_REQUEST__PARAMETERS_ENTRY__INIT},
        *list[3] = {&entries[0], &entries[1], &entries[2]};
    for (int i = 0; i < 3; i++) {
        entries[i].key = (char *)"pool";
        entries[i].value = (char *)(i == 2 ? "last" : "early");
    }
    Csi__V1__CreateVolumeRequest request = CSI__V1__CREATE_VOLUME_REQUEST__INIT;
    request.name = (char *)"parameter";
    request.n_parameters = 3;
    request.parameters = list;
    Csi__V1__CreateVolumeResponse *response = (Csi__V1__CreateVolumeResponse *)rpc_client_call(
        client, CREATE, &request.base, &csi__v1__create_volume_response__descriptor, 0, NULL);
    ck_assert_ptr_nonnull(response);
    ck_assert_str_eq(response->volume->volume_id, "last");
    ck_assert_int_eq(response->volume->capacity_bytes, 1);
    protobuf_c_message_free_unpacked(&response->base, NULL);
    rig_stop(&rig);
}
END_TEST

START_TEST(deadline_is_answered_while_the_handler_runs)
{
    Rig rig;
    rig_start(&rig, 1, 0);
    g_autoptr(RpcClient) client = dial(&rig);
    Csi__V1__NodeStageVolumeRequest request = CSI__V1__NODE_STAGE_VOLUME_REQUEST__INIT;
    gint64 before = g_get_monotonic_time();
    g_autoptr(GError) error = NULL;
    ck_assert_ptr_null(rpc_client_call(client, STAGE, &request.base,
                                       &csi__v1__node_stage_volume_response__descriptor, 100,
                                       &error));
    gint64 elapsed_ms = (g_get_monotonic_time() - before) / 1000;
    ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_DEADLINE_EXCEEDED));
    /* The server's words, not those of the client that gave up. */
    ck_assert_msg(strstr(error->message, "within its deadline of 100 ms") != NULL, "%s",
                  error->message);
    ck_assert_int_ge(elapsed_ms, 100);

    /* The only worker hangs: the next call waits in the queue until its deadline. */
    g_clear_error(&error);
    ck_assert_ptr_null(rpc_client_call(client, STAGE, &request.base,
                                       &csi__v1__node_stage_volume_response__descriptor, 50,
                                       &error));
    ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_DEADLINE_EXCEEDED));
    gate_open(&rig.gate);
    pthread_mutex_lock(&rig.gate.lock);
    while (rig.gate.left < 1)
        pthread_cond_wait(&rig.gate.changed, &rig.gate.lock);
    ck_assert_int_eq(rig.gate.time_left_ms, 0);
    pthread_mutex_unlock(&rig.gate.lock);
    /* The late result is dropped and the connection is in order. */
    g_autofree char *id = call_create(client, "after", NULL);
    ck_assert_str_eq(id, "after");
    pthread_mutex_lock(&rig.gate.lock);
    ck_assert_uint_eq(rig.gate.left, 1); /* the queued one never ran */
    pthread_mutex_unlock(&rig.gate.lock);
    rig_stop(&rig);
}
END_TEST

/* ---- Through raw frames */

typedef struct Raw {
    int fd;
    GByteArray *out;
    FrameReader reader;
    gboolean eof;
} Raw;

static int raw_connect(const Rig *rig)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    g_strlcpy(address.sun_path, rig->path, sizeof(address.sun_path));
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static void raw_open(Raw *raw, const Rig *rig)
{
    *raw = (Raw){.fd = raw_connect(rig), .out = g_byte_array_new()};
    frame_reader_init(&raw->reader);
    frames_preface(raw->out);
}

static void raw_send(Raw *raw)
{
    for (size_t sent = 0; sent < raw->out->len;) {
        ssize_t n = send(raw->fd, raw->out->data + sent, raw->out->len - sent, MSG_NOSIGNAL);
        if (n < 0)
            break; /* closed: reading will tell */
        sent += n;
    }
    g_byte_array_set_size(raw->out, 0);
}

/* Waits for more; FALSE at the end of the connection or after `timeout_ms`. */
static gboolean raw_receive(Raw *raw, int timeout_ms)
{
    struct pollfd poll_fd = {.fd = raw->fd, .events = POLLIN};
    if (poll(&poll_fd, 1, timeout_ms) <= 0)
        return FALSE;
    guint8 bytes[4096];
    ssize_t n = recv(raw->fd, bytes, sizeof(bytes), 0);
    raw->eof = n <= 0;
    if (n > 0)
        frame_reader_feed(&raw->reader, bytes, n);
    return n > 0;
}

static const StreamReply *raw_wait(Raw *raw, guint32 stream)
{
    raw_send(raw);
    const StreamReply *reply = stream_reply(&raw->reader, stream);
    while (!reply->ended && raw_receive(raw, 10000))
        ;
    ck_assert(reply->ended);
    return reply;
}

/* Everything sent so far has been seen by the server. */
static void raw_ping(Raw *raw)
{
    guint before = raw->reader.pings;
    frame(raw->out, NGHTTP2_PING, 0, 0, "12345678", 8);
    raw_send(raw);
    while (raw->reader.pings == before && raw_receive(raw, 10000))
        ;
    ck_assert_uint_gt(raw->reader.pings, before);
}

static void raw_close(Raw *raw)
{
    close(raw->fd);
    g_byte_array_unref(raw->out);
    frame_reader_clear(&raw->reader);
}

static void raw_call(Raw *raw, guint32 stream, const char *path, const void *message, size_t n)
{
    frames_call(raw->out, stream, path, NULL, NULL);
    frames_message(raw->out, stream, NGHTTP2_FLAG_END_STREAM, message, n);
}

START_TEST(bad_messages_are_invalid_arguments)
{
    static const struct {
        const char *bytes;
        size_t length;
        const char *message;
    } cases[] = {
        {"\x0a\x05hi", 4, "message csi.v1.CreateVolumeRequest is malformed"},
        {"\x0a\x03"
         "a\0b",
         5, "field name holds a NUL byte"},
        {"\x0a\x02"
         "a\xff",
         4, "field name is not valid UTF-8"},
        {"\x22\x03\x0a\x01k\x22\x04\x12\x02\xc3\x28", 11,
         "field parameters[1].value is not valid UTF-8"},
        {"\x0a", 1, "message csi.v1.CreateVolumeRequest is malformed"},
        {"\x08\x01", 2, "field name is malformed"},
    };
    Rig rig;
    rig_start(&rig, 0, 0);
    Raw raw;
    raw_open(&raw, &rig);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        raw_call(&raw, 1 + 2 * i, CREATE, cases[i].bytes, cases[i].length);
        const StreamReply *reply = raw_wait(&raw, 1 + 2 * i);
        ck_assert_int_eq(reply->grpc_status, HEARTH_ERROR_INVALID_ARGUMENT);
        ck_assert_str_eq(reply->grpc_message, cases[i].message);
    }
    raw_close(&raw);
    rig_stop(&rig);
}
END_TEST

/* Many tiny submessages in 1 MiB become more than an arena holds. */
START_TEST(message_that_decodes_too_large_is_refused)
{
    Rig rig;
    rig_start(&rig, 0, 0);
    g_autofree char *bytes = g_malloc(1 << 20);
    for (size_t i = 0; i < 1 << 20; i += 2)
        memcpy(bytes + i, "\x1a\x00", 2); /* volume_capabilities: {} */
    Raw raw;
    raw_open(&raw, &rig);
    frames_call(raw.out, 1, CREATE, NULL, NULL);
    frame(raw.out, NGHTTP2_DATA, 0, 1, "\0\0\x10\0\0", 5);
    raw_send(&raw);
    /* Within the server's windows: 16 KiB at a time, each seen before the next. */
    for (size_t i = 0; i < 1 << 20; i += 16384) {
        frame(raw.out, NGHTTP2_DATA, i + 16384 == 1 << 20 ? NGHTTP2_FLAG_END_STREAM : 0, 1,
              bytes + i, 16384);
        raw_ping(&raw);
    }
    const StreamReply *reply = raw_wait(&raw, 1);
    ck_assert_int_eq(reply->grpc_status, HEARTH_ERROR_RESOURCE_EXHAUSTED);
    raw_close(&raw);
    expect_probe(&rig);
    rig_stop(&rig);
}
END_TEST

START_TEST(probe_is_answered_while_handlers_hang_and_the_queue_is_full)
{
    Rig rig;
    rig_start(&rig, 2, 3);
    Raw raw;
    raw_open(&raw, &rig);
    for (guint i = 0; i < 2; i++)
        raw_call(&raw, 1 + 2 * i, STAGE, NULL, 0);
    raw_send(&raw);
    gate_wait_inside(&rig.gate, 2);
    for (guint i = 2; i < 6; i++)
        raw_call(&raw, 1 + 2 * i, STAGE, NULL, 0);
    /* Two run, three wait, the sixth is one too many. */
    ck_assert_int_eq(raw_wait(&raw, 11)->grpc_status, HEARTH_ERROR_RESOURCE_EXHAUSTED);
    expect_probe(&rig);
    /* A caller that leaves makes room in the queue at once. */
    frames_rst(raw.out, 9, NGHTTP2_CANCEL);
    raw_call(&raw, 13, STAGE, NULL, 0);
    raw_ping(&raw);
    ck_assert_int_eq(stream_reply(&raw.reader, 13)->grpc_status, -1);
    gate_open(&rig.gate);
    ck_assert_int_eq(raw_wait(&raw, 13)->grpc_status, 0);
    ck_assert_int_eq(raw_wait(&raw, 7)->grpc_status, 0);
    raw_close(&raw);
    rig_stop(&rig);
}
END_TEST

START_TEST(cancelled_handler_learns_of_it_and_harms_nobody)
{
    Rig rig;
    rig_start(&rig, 4, 0);
    Raw raw;
    raw_open(&raw, &rig);
    raw_call(&raw, 1, STAGE, NULL, 0);
    raw_call(&raw, 3, STAGE, NULL, 0);
    raw_send(&raw);
    gate_wait_inside(&rig.gate, 2);
    frames_rst(raw.out, 1, NGHTTP2_CANCEL);
    raw_ping(&raw);
    raw_close(&raw); /* and the other loses its connection */
    expect_probe(&rig);
    Raw other;
    raw_open(&other, &rig); /* the hang-up of the first was seen when this is answered */
    raw_ping(&other);
    raw_close(&other);
    gate_open(&rig.gate);
    pthread_mutex_lock(&rig.gate.lock);
    while (rig.gate.left < 2)
        pthread_cond_wait(&rig.gate.changed, &rig.gate.lock);
    ck_assert_int_eq(rig.gate.time_left_ms, 0);
    pthread_mutex_unlock(&rig.gate.lock);
    expect_probe(&rig);
    rig_stop(&rig);
}
END_TEST

START_TEST(connections_beyond_the_limit_wait)
{
    Rig rig;
    rig_start(&rig, 0, 0);
    Raw busy[RPC_CONNECTIONS_MAX];
    for (guint i = 0; i < RPC_CONNECTIONS_MAX; i++) {
        raw_open(&busy[i], &rig);
        raw_call(&busy[i], 1, PROBE, NULL, 0);
        ck_assert_int_eq(raw_wait(&busy[i], 1)->grpc_status, 0);
    }
    Raw late;
    raw_open(&late, &rig);
    raw_call(&late, 1, PROBE, NULL, 0);
    raw_send(&late);
    raw_ping(&busy[0]); /* a whole turn of the loop later it still waits */
    ck_assert(!raw_receive(&late, 0));
    raw_close(&busy[0]);
    ck_assert_int_eq(raw_wait(&late, 1)->grpc_status, 0);
    raw_close(&late);
    for (guint i = 1; i < RPC_CONNECTIONS_MAX; i++)
        raw_close(&busy[i]);
    rig_stop(&rig);
}
END_TEST

START_TEST(unused_connections_give_way)
{
    Rig rig;
    rig_start(&rig, 0, 0);
    int idle[RPC_CONNECTIONS_MAX];
    for (guint i = 0; i < RPC_CONNECTIONS_MAX; i++)
        idle[i] = raw_connect(&rig); /* and no word of HTTP/2 */
    g_autoptr(RpcClient) client = dial(&rig);
    ck_assert(call_probe(client, 5000, NULL)); /* well before the preface timeout clears them */
    for (guint i = 0; i < RPC_CONNECTIONS_MAX; i++)
        close(idle[i]);
    rig_stop(&rig);
}
END_TEST

/* Neither what made a call once nor what began one and never ends it keeps others out. */
static void held_by(void (*hold)(Raw *raw))
{
    Rig rig;
    rig_start(&rig, 0, 0);
    Raw held[RPC_CONNECTIONS_MAX];
    for (guint i = 0; i < RPC_CONNECTIONS_MAX; i++) {
        raw_open(&held[i], &rig);
        hold(&held[i]);
    }
    g_autoptr(RpcClient) client = dial(&rig);
    ck_assert(call_probe(client, 60000, NULL));
    for (guint i = 0; i < RPC_CONNECTIONS_MAX; i++)
        raw_close(&held[i]);
    rig_stop(&rig);
}

static void hold_idle(Raw *raw)
{
    raw_call(raw, 1, PROBE, NULL, 0);
    ck_assert_int_eq(raw_wait(raw, 1)->grpc_status, 0);
}

static void hold_half_a_header_block(Raw *raw)
{
    hold_idle(raw);
    frame(raw->out, NGHTTP2_HEADERS, 0, 3, "\x83", 1); /* :method POST, and END_HEADERS never */
    raw_send(raw);
}

START_TEST(connections_that_sit_idle_give_way)
{
    held_by(hold_idle);
}
END_TEST

START_TEST(half_header_blocks_give_way)
{
    held_by(hold_half_a_header_block);
}
END_TEST

/* However long its call takes. */
START_TEST(connections_with_a_call_do_not_give_way)
{
    Rig rig;
    rig_start(&rig, RPC_CONNECTIONS_MAX + 1, 0);
    Raw busy[RPC_CONNECTIONS_MAX];
    for (guint i = 0; i < RPC_CONNECTIONS_MAX; i++) {
        raw_open(&busy[i], &rig);
        raw_call(&busy[i], 1, STAGE, NULL, 0);
        raw_send(&busy[i]);
    }
    gate_wait_inside(&rig.gate, RPC_CONNECTIONS_MAX);
    Raw late;
    raw_open(&late, &rig);
    raw_call(&late, 1, PROBE, NULL, 0);
    raw_send(&late);
    g_usleep(8 * G_USEC_PER_SEC); /* longer than an idle one would have */
    ck_assert(!raw_receive(&late, 0));
    gate_open(&rig.gate);
    for (guint i = 0; i < RPC_CONNECTIONS_MAX; i++)
        ck_assert_int_eq(raw_wait(&busy[i], 1)->grpc_status, 0);
    ck_assert_int_eq(raw_wait(&late, 1)->grpc_status, 0);
    raw_close(&late);
    for (guint i = 0; i < RPC_CONNECTIONS_MAX; i++)
        raw_close(&busy[i]);
    rig_stop(&rig);
}
END_TEST

START_TEST(rapid_resets_do_not_stop_others)
{
    Rig rig;
    rig_start(&rig, 0, 0);
    Raw raw;
    raw_open(&raw, &rig);
    for (guint32 i = 0; i < 10000; i++) {
        raw_call(&raw, 1 + 2 * i, PROBE, NULL, 0);
        frames_rst(raw.out, 1 + 2 * i, NGHTTP2_CANCEL);
        if (i % 100 == 99) {
            raw_send(&raw);
            while (raw_receive(&raw, 0))
                ;
        }
    }
    expect_probe(&rig);
    raw_close(&raw);
    expect_probe(&rig);
    rig_stop(&rig);
}
END_TEST

/* Windows of zero and megabytes of pings: the server must not store what we do not read. */
START_TEST(peer_that_does_not_read_is_not_read_from)
{
    Rig rig;
    rig_start(&rig, 0, 0);
    Raw raw;
    raw_open(&raw, &rig);
    raw_send(&raw);
    for (guint i = 0; i < 4096; i++)
        frame(raw.out, NGHTTP2_PING, 0, 0, "12345678", 8);
    size_t total = 0;
    /* Until the server has taken nothing for a while. */
    struct pollfd poll_fd = {.fd = raw.fd, .events = POLLOUT};
    while (total < 16 << 20 && poll(&poll_fd, 1, 300) > 0) {
        size_t at = total % raw.out->len;
        ssize_t n =
            send(raw.fd, raw.out->data + at, raw.out->len - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0)
            break;
        total += n;
    }
    ck_assert_uint_lt(total, 16 << 20); /* sockets' buffers, not ours */
    expect_probe(&rig);
    /* Nor is it cut off: it gets every answer once it reads. */
    while (raw.reader.pings < total / 17)
        ck_assert(raw_receive(&raw, 10000));
    raw_close(&raw);
    rig_stop(&rig);
}
END_TEST

/* ---- Stopping */

typedef struct Stopper {
    RpcServer *server;
    unsigned grace_ms;
    gboolean result;
} Stopper;

static void *stop_thread(void *data)
{
    Stopper *stopper = data;
    stopper->result = rpc_server_stop(stopper->server, stopper->grace_ms);
    return NULL;
}

START_TEST(stop_lets_running_calls_finish)
{
    Rig rig;
    rig_start(&rig, 0, 0);
    Raw raw, idle;
    raw_open(&idle, &rig);
    raw_ping(&idle);
    raw_open(&raw, &rig);
    raw_call(&raw, 1, STAGE, NULL, 0);
    raw_send(&raw);
    gate_wait_inside(&rig.gate, 1);
    Stopper stopper = {.server = rig.server, .grace_ms = 30000};
    pthread_t thread;
    pthread_create(&thread, NULL, stop_thread, &stopper);
    while (!raw.reader.goaway)
        ck_assert(raw_receive(&raw, 10000));
    /* A call that comes now is not run. */
    raw_call(&raw, 3, PROBE, NULL, 0);
    raw_send(&raw);
    while (raw_receive(&idle, 10000))
        ;
    ck_assert(idle.eof && idle.reader.goaway);
    GError *error = NULL;
    ck_assert_ptr_null(rpc_client_connect(rig.path, &error));
    g_clear_error(&error);
    gate_open(&rig.gate);
    ck_assert_int_eq(raw_wait(&raw, 1)->grpc_status, 0);
    pthread_join(thread, NULL);
    ck_assert(stopper.result);
    raw_close(&raw);
    raw_close(&idle);
    rig.server = NULL;
    rig_stop(&rig);
}
END_TEST

START_TEST(stop_answers_unavailable_after_the_grace)
{
    Rig rig;
    rig_start(&rig, 1, 0);
    Raw raw;
    raw_open(&raw, &rig);
    raw_call(&raw, 1, STAGE, NULL, 0); /* runs */
    raw_call(&raw, 3, STAGE, NULL, 0); /* queues */
    raw_send(&raw);
    gate_wait_inside(&rig.gate, 1);
    Stopper stopper = {.server = rig.server, .grace_ms = 10};
    pthread_t thread;
    pthread_create(&thread, NULL, stop_thread, &stopper);
    ck_assert_int_eq(raw_wait(&raw, 1)->grpc_status, HEARTH_ERROR_UNAVAILABLE);
    ck_assert_int_eq(raw_wait(&raw, 3)->grpc_status, HEARTH_ERROR_UNAVAILABLE);
    gate_open(&rig.gate);
    pthread_join(thread, NULL);
    ck_assert(stopper.result);
    ck_assert_uint_eq(rig.gate.left, 1);
    raw_close(&raw);
    rig.server = NULL;
    rig_stop(&rig);
}
END_TEST

START_TEST(stop_does_not_wait_for_a_handler_for_ever)
{
    static Rig kept; /* the handler keeps using it */
    Rig *rig = &kept;
    rig_start(rig, 1, 0);
    Raw raw;
    raw_open(&raw, rig);
    raw_call(&raw, 1, STAGE, NULL, 0);
    raw_send(&raw);
    gate_wait_inside(&rig->gate, 1);
    ck_assert(!rpc_server_stop(rig->server, 0));
    ck_assert(!g_file_test(rig->path, G_FILE_TEST_EXISTS));
    raw_close(&raw);
    harness_remove(rig->dir);
    /* Let it return into the server that it kept alive. */
    gate_open(&rig->gate);
    pthread_mutex_lock(&rig->gate.lock);
    while (rig->gate.left < 1)
        pthread_cond_wait(&rig->gate.changed, &rig->gate.lock);
    pthread_mutex_unlock(&rig->gate.lock);
}
END_TEST

START_TEST(second_server_on_the_path_is_refused)
{
    Rig rig;
    rig_start(&rig, 0, 0);
    RpcServerConfig config = {.socket_path = rig.path};
    RpcServer *second = rpc_server_new(&config, NULL);
    g_autoptr(GError) error = NULL;
    ck_assert(!rpc_server_start(second, &error));
    ck_assert(g_error_matches(error, G_IO_ERROR, G_IO_ERROR_ADDRESS_IN_USE));
    ck_assert(rpc_server_stop(second, 0));
    expect_probe(&rig);
    rig_stop(&rig);
    config.socket_path = "";
    ck_assert_ptr_null(rpc_server_new(&config, NULL));
}
END_TEST

/* ---- Many at once */

typedef struct Load {
    const Rig *rig;
    guint failures;
} Load;

static void *load_thread(void *data)
{
    Load *load = data;
    g_autoptr(RpcClient) client = rpc_client_connect(load->rig->path, NULL);
    for (guint i = 0; i < 200; i++) {
        g_autofree char *name = g_strdup_printf("%p-%u", data, i);
        g_autofree char *id = client ? call_create(client, name, NULL) : NULL;
        load->failures += !id || strcmp(id, name) != 0;
    }
    return NULL;
}

START_TEST(connections_in_parallel_get_their_own_answers)
{
    Rig rig;
    rig_start(&rig, 4, 0);
    Load loads[8];
    pthread_t threads[8];
    for (guint i = 0; i < 8; i++) {
        loads[i] = (Load){.rig = &rig};
        pthread_create(&threads[i], NULL, load_thread, &loads[i]);
    }
    for (guint i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_uint_eq(loads[i].failures, 0);
    }
    rig_stop(&rig);
}
END_TEST

HARNESS_MAIN("driver/rpc/server", calls_are_answered_on_one_connection,
             errors_arrive_with_code_and_message, last_of_duplicate_map_keys_wins,
             deadline_is_answered_while_the_handler_runs, bad_messages_are_invalid_arguments,
             message_that_decodes_too_large_is_refused,
             probe_is_answered_while_handlers_hang_and_the_queue_is_full,
             cancelled_handler_learns_of_it_and_harms_nobody, connections_beyond_the_limit_wait,
             unused_connections_give_way, connections_that_sit_idle_give_way,
             half_header_blocks_give_way, connections_with_a_call_do_not_give_way,
             rapid_resets_do_not_stop_others, peer_that_does_not_read_is_not_read_from,
             stop_lets_running_calls_finish, stop_answers_unavailable_after_the_grace,
             stop_does_not_wait_for_a_handler_for_ever, second_server_on_the_path_is_refused,
             connections_in_parallel_get_their_own_answers)
