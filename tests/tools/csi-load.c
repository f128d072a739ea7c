/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many calls at once on ONE connection to a CSI driver, as sidecars make them:
 *
 *   csi-load --socket /run/csi.sock --in-flight 64 < jobs
 *
 * A job is a line of JSON on standard input: calls made one after the other, while other jobs go
 * on.
 *
 *   {"id": "a", "calls": [{"method": "Controller/CreateVolume", "request": {...}, "timeout": 60}]}
 *
 * A line is printed for each call when it ends: {"id", "method", "code", "message", "start", "ms",
 * "response"}, `start` in seconds since the first call, `response` only with --responses. A call
 * that is not answered a second after its timeout has the code "NONE". Exit status: 0 when every
 * call was answered, with whatever code; 3 when the connection broke.
 */
#include <errno.h>
#include <gio/gio.h>
#include <jansson.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "csi.pb-c.h"
#include "driver/rpc/framing.h"
#include "driver/rpc/listen.h"
#include "tests/tools/message_json.h"

#define SLACK_US G_USEC_PER_SEC

typedef struct Call {
    char *method, *path;
    const ProtobufCMethodDescriptor *descriptor;
    GByteArray *body; /* prefix and message */
    gint64 timeout_ms;
} Call;

typedef struct Job {
    char *id;
    Call *calls;
    gsize n_calls, at; /* the call under way */
    gsize sent;
    gint64 start_us;
    int status; /* of gRPC; -1: none yet */
    char *message;
    GByteArray *response;
    gint32 stream_id;
} Job;

static char *option_socket;
static int option_in_flight = 64;
static gboolean option_responses;
static gint64 begin_us;
static guint active;

static const GOptionEntry options[] = {
    {"socket", 's', 0, G_OPTION_ARG_FILENAME, &option_socket, "the driver's socket", "PATH"},
    {"in-flight", 'n', 0, G_OPTION_ARG_INT, &option_in_flight, "jobs at a time, default 64", "N"},
    {"responses", 'r', 0, G_OPTION_ARG_NONE, &option_responses, "print responses too", NULL},
    {NULL, 0, 0, 0, NULL, NULL, NULL}};

static const ProtobufCServiceDescriptor *const services[] = {
    &csi__v1__identity__descriptor, &csi__v1__controller__descriptor,
    &csi__v1__group_controller__descriptor, &csi__v1__node__descriptor};

static void wrong(const char *what, const char *which)
{
    fprintf(stderr, "csi-load: %s %s\n", what, which);
    exit(2);
}

static void find_method(Call *call)
{
    for (gsize i = 0; i < G_N_ELEMENTS(services); i++) {
        for (unsigned k = 0; k < services[i]->n_methods; k++) {
            const ProtobufCMethodDescriptor *d = &services[i]->methods[k];
            g_autofree char *name = g_strdup_printf("%s/%s", services[i]->short_name, d->name);
            if (strcmp(name, call->method) == 0) {
                call->descriptor = d;
                call->path = g_strdup_printf("/%s/%s", services[i]->name, d->name);
                return;
            }
        }
    }
    wrong("no such call:", call->method);
}

static void read_call(Call *call, const json_t *json)
{
    g_autoptr(GError) error = NULL;
    const char *method = json_string_value(json_object_get(json, "method"));
    json_t *request = json_object_get(json, "request");
    json_t *empty = json_object();
    call->method = g_strdup(method ? method : "");
    call->timeout_ms = (gint64)(1000 * json_number_value(json_object_get(json, "timeout")));
    if (call->timeout_ms <= 0)
        call->timeout_ms = 60 * 1000;
    find_method(call);
    ProtobufCMessage *message =
        message_from_json(call->descriptor->input, request ? request : empty, "", &error);
    json_decref(empty);
    if (!message)
        wrong(call->method, error->message);
    gsize length = protobuf_c_message_get_packed_size(message);
    call->body = g_byte_array_new();
    g_byte_array_set_size(call->body, RPC_PREFIX_BYTES + (guint)length);
    rpc_prefix_write(call->body->data, (guint32)length);
    protobuf_c_message_pack(message, call->body->data + RPC_PREFIX_BYTES);
    protobuf_c_message_free_unpacked(message, NULL);
}

static GPtrArray *read_jobs(void)
{
    GPtrArray *jobs = g_ptr_array_new();
    char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, stdin) > 0) {
        json_error_t at;
        json_t *json = json_loads(line, 0, &at);
        if (!json)
            wrong("a job is not JSON:", at.text);
        const json_t *calls = json_object_get(json, "calls");
        const char *id = json_string_value(json_object_get(json, "id"));
        Job *job = g_new0(Job, 1);
        job->id = g_strdup(id ? id : "");
        job->n_calls = json_array_size(calls);
        job->calls = g_new0(Call, job->n_calls);
        for (gsize i = 0; i < job->n_calls; i++)
            read_call(&job->calls[i], json_array_get(calls, i));
        if (job->n_calls)
            g_ptr_array_add(jobs, job);
        json_decref(json);
    }
    free(line);
    return jobs;
}

static void report(Job *job, const char *code, const char *text)
{
    const Call *call = &job->calls[job->at];
    double ms = (double)(g_get_monotonic_time() - job->start_us) / 1000;
    json_t *line = json_pack("{s:s, s:s, s:s, s:s, s:f, s:f}", "id", job->id, "method",
                             call->method, "code", code, "message", text, "start",
                             (double)(job->start_us - begin_us) / G_USEC_PER_SEC, "ms", ms);
    const GByteArray *bytes = job->response;
    if (option_responses && bytes && bytes->len >= RPC_PREFIX_BYTES) {
        ProtobufCMessage *response =
            protobuf_c_message_unpack(call->descriptor->output, NULL, bytes->len - RPC_PREFIX_BYTES,
                                      bytes->data + RPC_PREFIX_BYTES);
        if (response) {
            json_object_set_new(line, "response", message_to_json(response));
            protobuf_c_message_free_unpacked(response, NULL);
        }
    }
    json_dumpf(line, stdout, JSON_COMPACT);
    putchar('\n');
    fflush(stdout);
    json_decref(line);
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *out, size_t capacity,
                         uint32_t *flags, nghttp2_data_source *source, void *user_data)
{
    (void)session, (void)id, (void)user_data;
    Job *job = source->ptr;
    const GByteArray *body = job->calls[job->at].body;
    gsize n = MIN(capacity, body->len - job->sent);
    memcpy(out, body->data + job->sent, n);
    job->sent += n;
    if (job->sent == body->len)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

static nghttp2_nv header(const char *name, const char *value)
{
    return (nghttp2_nv){.name = (uint8_t *)name,
                        .namelen = strlen(name),
                        .value = (uint8_t *)value,
                        .valuelen = strlen(value)};
}

static void submit(nghttp2_session *session, Job *job)
{
    const Call *call = &job->calls[job->at];
    char timeout[16];
    rpc_timeout_format(call->timeout_ms, timeout);
    nghttp2_nv headers[] = {header(":method", "POST"),
                            header(":scheme", "http"),
                            header(":path", call->path),
                            header(":authority", "localhost"),
                            header("content-type", "application/grpc"),
                            header("te", "trailers"),
                            header("grpc-timeout", timeout)};
    nghttp2_data_provider body = {.source.ptr = job, .read_callback = read_body};
    job->sent = 0;
    job->status = -1;
    g_clear_pointer(&job->message, g_free);
    g_clear_pointer(&job->response, g_byte_array_unref);
    job->response = g_byte_array_new();
    job->start_us = g_get_monotonic_time();
    job->stream_id =
        nghttp2_submit_request(session, NULL, headers, G_N_ELEMENTS(headers), &body, job);
    if (job->stream_id < 0)
        wrong("cannot submit:", nghttp2_strerror(job->stream_id));
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_length, const uint8_t *value, size_t value_length, uint8_t flags,
                     void *user_data)
{
    (void)flags, (void)user_data;
    Job *job = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    g_autofree char *key = g_strndup((const char *)name, name_length);
    g_autofree char *text = g_strndup((const char *)value, value_length);
    if (job && strcmp(key, "grpc-status") == 0) {
        job->status = atoi(text);
    } else if (job && strcmp(key, "grpc-message") == 0) {
        g_free(job->message);
        job->message = rpc_percent_decode(text, strlen(text));
    }
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes,
                   size_t length, void *user_data)
{
    (void)flags, (void)user_data;
    Job *job = nghttp2_session_get_stream_user_data(session, id);
    if (job)
        g_byte_array_append(job->response, bytes, (guint)length);
    return 0;
}

/* The job's next call, or its end. */
static void next_call(nghttp2_session *session, Job *job)
{
    if (++job->at < job->n_calls)
        submit(session, job);
    else
        active--;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error_code, void *user_data)
{
    (void)error_code, (void)user_data;
    Job *job = nghttp2_session_get_stream_user_data(session, id);
    if (!job)
        return 0;
    report(job, job->status < 0 ? "NONE" : rpc_code_name((guint)job->status),
           job->message ? job->message : "");
    next_call(session, job);
    return 0;
}

/* The time until the next one is due, in ms; gives up those that are. */
static int overdue(nghttp2_session *session, const GPtrArray *jobs, guint started)
{
    gint64 now = g_get_monotonic_time(), next = now + G_USEC_PER_SEC;
    for (guint i = 0; i < started; i++) {
        Job *job = jobs->pdata[i];
        if (job->at == job->n_calls)
            continue;
        gint64 due = job->start_us + job->calls[job->at].timeout_ms * 1000 + SLACK_US;
        if (due > now) {
            next = MIN(next, due);
            continue;
        }
        nghttp2_session_set_stream_user_data(session, job->stream_id, NULL);
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, job->stream_id, NGHTTP2_CANCEL);
        report(job, "NONE", "no answer");
        next_call(session, job);
    }
    return (int)((next - now) / 1000) + 1;
}

static gboolean flush(nghttp2_session *session, int fd)
{
    const uint8_t *bytes;
    ssize_t n;
    while ((n = nghttp2_session_mem_send(session, &bytes)) > 0) {
        while (n > 0) {
            ssize_t sent = send(fd, bytes, (size_t)n, MSG_NOSIGNAL);
            if (sent < 0 && errno == EINTR)
                continue;
            if (sent <= 0)
                return FALSE;
            bytes += sent;
            n -= sent;
        }
    }
    return n == 0;
}

static gboolean receive(nghttp2_session *session, int fd, int wait_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    uint8_t bytes[65536];
    if (poll(&p, 1, wait_ms) <= 0)
        return TRUE;
    ssize_t n = recv(fd, bytes, sizeof(bytes), 0);
    return n > 0 && nghttp2_session_mem_recv(session, bytes, (size_t)n) == n;
}

static gboolean run(nghttp2_session *session, int fd, const GPtrArray *jobs)
{
    guint started = 0;
    begin_us = g_get_monotonic_time();
    for (;;) {
        while (started < jobs->len && active < (guint)option_in_flight) {
            active++;
            submit(session, jobs->pdata[started++]);
        }
        if (active == 0)
            return TRUE;
        int wait_ms = overdue(session, jobs, started);
        if (!flush(session, fd) || !receive(session, fd, wait_ms) || !flush(session, fd))
            return FALSE;
    }
}

int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GOptionContext) context = g_option_context_new("< JOBS");
    g_option_context_add_main_entries(context, options, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &error) || argc > 1 || !option_socket)
        wrong("wrong usage;", error ? error->message : "see --help");
    GPtrArray *jobs = read_jobs();
    struct sockaddr_un address;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (!rpc_socket_address(&address, option_socket, &error) ||
        connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        fprintf(stderr, "csi-load: %s: %s\n", option_socket, g_strerror(errno));
        return 3;
    }
    nghttp2_session_callbacks *callbacks;
    nghttp2_session *session;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session_client_new(&session, callbacks, NULL);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, NULL, 0);
    if (!run(session, fd, jobs)) {
        fprintf(stderr, "csi-load: the connection broke\n");
        return 3;
    }
    return 0;
}
