/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls a CSI driver over its socket, with JSON in and out:
 *
 *   csi-call --socket /run/csi.sock Controller/CreateVolume '{"name": "x", "capacityRange": ...}'
 *   csi-call --socket /run/csi.sock Node/NodeStageVolume - < request.json
 *   csi-call --socket /run/csi.sock --repeat 100000 --parallel 8 Identity/Probe
 *   csi-call --list
 *
 * Give secrets on standard input: arguments can be read by every process of the machine. The
 * response is one JSON object on standard output; message_json.h tells how messages map. Exit
 * status: 0; 1 with {"code": "NOT_FOUND", "message": "..."} on standard error when the driver
 * refused; 2 for wrong usage; 3 when the driver could not be reached or talked nonsense.
 */
#include <gio/gio.h>
#include <pthread.h>
#include <stdio.h>

#include "csi.pb-c.h"
#include "common/error.h"
#include "driver/rpc/client.h"
#include "driver/rpc/framing.h"
#include "tests/tools/message_json.h"

enum { EXIT_REFUSED = 1, EXIT_USAGE = 2, EXIT_TRANSPORT = 3 };

/* SnapshotMetadata is left out: its calls are streams. */
static const ProtobufCServiceDescriptor *const services[] = {
    &csi__v1__identity__descriptor, &csi__v1__controller__descriptor,
    &csi__v1__group_controller__descriptor, &csi__v1__node__descriptor};

static char *option_socket;
static int option_timeout_sec = 60;
static int option_repeat;
static int option_parallel = 1;
static gboolean option_list;

static const GOptionEntry options[] = {
    {"socket", 's', 0, G_OPTION_ARG_FILENAME, &option_socket, "the driver's socket", "PATH"},
    {"timeout", 't', 0, G_OPTION_ARG_INT, &option_timeout_sec, "deadline, default 60; 0: none",
     "SEC"},
    {"repeat", 'n', 0, G_OPTION_ARG_INT, &option_repeat, "call N times and print the rate", "N"},
    {"parallel", 'p', 0, G_OPTION_ARG_INT, &option_parallel, "connections for --repeat, default 1",
     "N"},
    {"list", 'l', 0, G_OPTION_ARG_NONE, &option_list, "print the names of the calls", NULL},
    {NULL, 0, 0, 0, NULL, NULL, NULL}};

static void list_methods(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(services); i++) {
        for (unsigned k = 0; k < services[i]->n_methods; k++)
            printf("%s/%s\n", services[i]->short_name, services[i]->methods[k].name);
    }
}

/* "Service/Method", also as "/csi.v1.Service/Method". */
static const ProtobufCMethodDescriptor *find_method(const char *name, char **path)
{
    const char *wanted = g_str_has_prefix(name, "/csi.v1.") ? name + strlen("/csi.v1.") : name;
    for (size_t i = 0; i < G_N_ELEMENTS(services); i++) {
        for (unsigned k = 0; k < services[i]->n_methods; k++) {
            g_autofree char *own =
                g_strdup_printf("%s/%s", services[i]->short_name, services[i]->methods[k].name);
            if (strcmp(own, wanted) == 0) {
                *path = g_strdup_printf("/%s/%s", services[i]->name, services[i]->methods[k].name);
                return &services[i]->methods[k];
            }
        }
    }
    return NULL;
}

static ProtobufCMessage *read_request(const ProtobufCMessageDescriptor *type, const char *argument,
                                      GError **error)
{
    json_error_t where;
    json_t *json = strcmp(argument, "-") == 0
                       ? json_loadf(stdin, JSON_REJECT_DUPLICATES, &where)
                       : json_loads(argument, JSON_REJECT_DUPLICATES, &where);
    if (!json) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
                    "the request is not JSON: %s at line %d column %d", where.text, where.line,
                    where.column);
        return NULL;
    }
    ProtobufCMessage *request = message_from_json(type, json, "", error);
    json_decref(json);
    return request;
}

/* Prints the error where it belongs; the exit status that goes with it. */
static int report(const GError *error)
{
    if (error->domain != HEARTH_ERROR) {
        fprintf(stderr, "csi-call: %s\n", error->message);
        return EXIT_TRANSPORT;
    }
    json_t *json =
        json_pack("{s:s, s:s}", "code", rpc_code_name(error->code), "message", error->message);
    json_dumpf(json, stderr, 0);
    fputc('\n', stderr);
    json_decref(json);
    return EXIT_REFUSED;
}

typedef struct Caller {
    const char *path;
    const ProtobufCMethodDescriptor *method;
    const ProtobufCMessage *request;
    int calls;
    GError *error;
    ProtobufCMessage *response; /* of the last call */
    pthread_t thread;
} Caller;

static void *run_caller(void *data)
{
    Caller *caller = data;
    g_autoptr(RpcClient) client = rpc_client_connect(option_socket, &caller->error);
    for (int i = 0; client && i < caller->calls; i++) {
        if (caller->response)
            protobuf_c_message_free_unpacked(caller->response, NULL);
        caller->response =
            rpc_client_call(client, caller->path, caller->request, caller->method->output,
                            (gint64)option_timeout_sec * 1000, &caller->error);
        if (!caller->response)
            break;
    }
    return NULL;
}

static int call_and_print(Caller *caller)
{
    caller->calls = 1;
    run_caller(caller);
    if (!caller->response)
        return report(caller->error);
    json_t *json = message_to_json(caller->response);
    json_dumpf(json, stdout, 0);
    putchar('\n');
    json_decref(json);
    return EXIT_SUCCESS;
}

static int call_repeatedly(const Caller *model)
{
    g_autofree Caller *callers = g_new0(Caller, option_parallel);
    int status = EXIT_SUCCESS;
    gint64 start_us = g_get_monotonic_time();
    for (int i = 0; i < option_parallel; i++) {
        callers[i] = *model;
        callers[i].calls = option_repeat / option_parallel;
        if (pthread_create(&callers[i].thread, NULL, run_caller, &callers[i]) != 0)
            g_error("cannot start a thread");
    }
    for (int i = 0; i < option_parallel; i++) {
        pthread_join(callers[i].thread, NULL);
        if (callers[i].error && status == EXIT_SUCCESS)
            status = report(callers[i].error);
        g_clear_error(&callers[i].error);
        if (callers[i].response)
            protobuf_c_message_free_unpacked(callers[i].response, NULL);
    }
    double seconds = (double)(g_get_monotonic_time() - start_us) / G_USEC_PER_SEC;
    if (status == EXIT_SUCCESS)
        printf("{\"calls\": %d, \"seconds\": %.3f, \"callsPerSecond\": %.0f}\n",
               option_repeat / option_parallel * option_parallel, seconds,
               option_repeat / option_parallel * option_parallel / seconds);
    return status;
}

int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GOptionContext) context = g_option_context_new("SERVICE/METHOD [JSON | -]");
    g_option_context_add_main_entries(context, options, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &error)) {
        fprintf(stderr, "csi-call: %s\n", error->message);
        return EXIT_USAGE;
    }
    if (option_list) {
        list_methods();
        return EXIT_SUCCESS;
    }
    if (argc < 2 || argc > 3 || !option_socket || option_repeat < 0 || option_parallel < 1 ||
        option_timeout_sec < 0) {
        g_autofree char *help = g_option_context_get_help(context, TRUE, NULL);
        fputs(help, stderr);
        return EXIT_USAGE;
    }
    g_autofree char *path = NULL;
    const ProtobufCMethodDescriptor *method = find_method(argv[1], &path);
    if (!method) {
        fprintf(stderr, "csi-call: no call \"%s\"; --list names them\n", argv[1]);
        return EXIT_USAGE;
    }
    ProtobufCMessage *request = read_request(method->input, argc == 3 ? argv[2] : "{}", &error);
    if (!request) {
        fprintf(stderr, "csi-call: %s\n", error->message);
        return EXIT_USAGE;
    }
    Caller caller = {.path = path, .method = method, .request = request};
    int status = option_repeat > 0 ? call_repeatedly(&caller) : call_and_print(&caller);
    g_clear_error(&caller.error);
    if (caller.response)
        protobuf_c_message_free_unpacked(caller.response, NULL);
    protobuf_c_message_free_unpacked(request, NULL);
    g_free(option_socket);
    return status;
}
