/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every row of a table is added as a table of its own, whose handler calls the real one and writes
 * the line; so the server does not depend on logging. Calls of methods without a handler are
 * not logged: the server answers them.
 */
#include "driver/service/call_log.h"
#include <string.h>
#include "common/volume_name.h"
#include "driver/volume/attributes.h"
#include "csi.pb-c.h"

typedef struct Row {
    RpcMethod table[2]; /* the row with our handler, and the end */
    RpcHandler handler;
    void *service;
    Timings *timings;
    gboolean quiet;
} Row;

struct CallLog {
    GPtrArray *rows;
    Timings *timings;
};

static const char *const code_names[] = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

const char *call_log_code_name(int code)
{
    return code >= 0 && code < (int)G_N_ELEMENTS(code_names) ? code_names[code] : "UNKNOWN";
}

CallLog *call_log_new(void)
{
    CallLog *log = g_new0(CallLog, 1);
    log->rows = g_ptr_array_new_with_free_func(g_free);
    log->timings = timings_new();
    return log;
}

void call_log_free(CallLog *log)
{
    if (!log)
        return;
    g_ptr_array_unref(log->rows);
    timings_free(log->timings);
    g_free(log);
}

Timings *call_log_timings(const CallLog *log)
{
    return log->timings;
}

/* The request's volume_id, else its name, else NULL. */
static const char *volume_of(const ProtobufCMessage *request)
{
    static const char *const names[] = {"volume_id", "name"};
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field_by_name(request->descriptor, names[i]);
        if (field && field->type == PROTOBUF_C_TYPE_STRING &&
            field->label != PROTOBUF_C_LABEL_REPEATED)
            return *(char *const *)((const char *)request + field->offset);
    }
    return NULL;
}

/* A value of a map<string, string> of the request, borrowed; NULL: it has none. Each entry is a
 * message of a key and a value. */
static const char *map_value(const ProtobufCMessage *request, const char *map, const char *key)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(request->descriptor, map);
    if (!field || field->type != PROTOBUF_C_TYPE_MESSAGE ||
        field->label != PROTOBUF_C_LABEL_REPEATED)
        return NULL;
    const size_t n =
        *(const size_t *)(const void *)((const char *)request + field->quantifier_offset);
    ProtobufCMessage *const *entries =
        *(ProtobufCMessage *const *const *)(const void *)((const char *)request + field->offset);
    for (size_t i = 0; i < n; i++) {
        const Csi__V1__CreateVolumeRequest__ParametersEntry *entry = (const void *)entries[i];
        if (strcmp(entry->key, key) == 0)
            return entry->value;
    }
    return NULL;
}

/* "NAMESPACE/NAME" of the claim that the request is for, the caller's; NULL: it does not say. */
static char *claim_of(const ProtobufCMessage *request)
{
    static const char *const maps[] = {"volume_context", "parameters"};
    for (gsize i = 0; i < G_N_ELEMENTS(maps); i++) {
        const char *namespace = map_value(request, maps[i], ATTRIBUTE_PVC_NAMESPACE);
        const char *name = map_value(request, maps[i], ATTRIBUTE_PVC_NAME);
        g_autofree char *claim =
            namespace && name ? g_strdup_printf("%s/%s", namespace, name) : NULL;
        if (claim && volume_name_is_claim(claim))
            return g_steal_pointer(&claim);
    }
    return NULL;
}

static int code_of(const GError *error)
{
    if (!error)
        return 0;
    return error->domain == HEARTH_ERROR ? error->code : HEARTH_ERROR_INTERNAL;
}

static void write_line(const Row *row, guint64 id, const ProtobufCMessage *asked, gint64 us,
                       const GError *error)
{
    const char *volume = volume_of(asked);
    g_autofree char *claim = claim_of(asked);
    const int code = code_of(error);
    GLogLevelFlags level = row->quiet ? G_LOG_LEVEL_DEBUG : G_LOG_LEVEL_INFO;
    if (code != 0)
        level = G_LOG_LEVEL_WARNING;
    g_autofree char *ms = g_strdup_printf("%.1f", (double)us / 1000);
    g_autofree char *request = g_strdup_printf("%" G_GUINT64_FORMAT, id);
    g_autofree char *failed = error ? g_strdup_printf("call failed: %s", error->message) : NULL;
    GLogField fields[8];
    gsize n = 0;
    fields[n++] = (GLogField){"MESSAGE", failed ? failed : "call", -1};
    fields[n++] = (GLogField){"method", row->table[0].path, -1};
    fields[n++] = (GLogField){"code", call_log_code_name(code), -1};
    fields[n++] = (GLogField){"ms", ms, -1};
    fields[n++] = (GLogField){"request", request, -1};
    if (volume && *volume)
        fields[n++] = (GLogField){"volume", volume, -1};
    if (claim)
        fields[n++] = (GLogField){"claim", claim, -1};
    if (error)
        fields[n++] = (GLogField){"error", error->message, -1};
    g_log_structured_array(level, fields, n);
}

static gboolean handle(RpcCall *call, const ProtobufCMessage *request, ProtobufCMessage *response,
                       void *service, GError **error)
{
    const Row *row = service;
    g_autoptr(GError) cause = NULL;
    gint64 began_us = g_get_monotonic_time();
    gboolean good = row->handler(call, request, response, row->service, &cause);
    const gint64 took_us = g_get_monotonic_time() - began_us;
    timings_add(row->timings, row->table[0].path, call_log_code_name(code_of(cause)), took_us);
    write_line(row, rpc_call_id(call), request, took_us, cause);
    if (cause)
        g_propagate_error(error, g_steal_pointer(&cause));
    return good;
}

static gboolean is_quiet(const char *path)
{
    return g_str_has_prefix(path, "/csi.v1.Identity/") ||
           g_str_has_suffix(path, "GetCapabilities") || g_str_has_suffix(path, "/NodeGetInfo") ||
           g_str_has_suffix(path, "/NodeGetVolumeStats");
}

void call_log_add(CallLog *log, RpcServer *server, const RpcMethod *methods, void *service)
{
    for (const RpcMethod *method = methods; method->path; method++) {
        Row *row = g_new0(Row, 1);
        row->table[0] = *method;
        row->handler = method->handler;
        row->service = service;
        row->timings = log->timings;
        row->quiet = is_quiet(method->path);
        if (method->handler)
            row->table[0].handler = handle;
        g_ptr_array_add(log->rows, row);
        rpc_server_add(server, row->table, row);
    }
}
