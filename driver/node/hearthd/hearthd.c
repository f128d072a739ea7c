/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/hearthd/hearthd.h"
#include <string.h>
#include "common/autofd.h"
#include "common/field.h"
#include "driver/node/hearthd/spec.h"
#include "proto/wire.h"
#include "proto/wire_keys.h"

#define PROTOCOL 1

static json_t *call_volume(HearthdLink *link, const char *op, const char *volume, int *receive_fd,
                           gint64 timeout_ms, GError **error)
{
    json_auto_t *request = json_pack("{s:s, s:s}", WIRE_KEY_OP, op, WIRE_KEY_VOLUME, volume);
    if (!request) {
        hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT, "the volume ID is not UTF-8");
        return NULL;
    }
    json_t *reply = hearthd_call(link, request, -1, receive_fd, timeout_ms, error);
    return reply;
}

/* A member of "open" that may be left out when hearthd is of a release that does not know it. */
typedef struct Optional {
    const char *name;
    gboolean in_origin;
    const char *loss;
} Optional;

/* Of the members that configure Ceph clients only crushLocation is one: without the others the
 * clients would not be as the cluster file requires. */
static const Optional optionals[] = {
    {WIRE_KEY_CRUSH_LOCATION, TRUE, "does not read the nearest copies"},
    {WIRE_KEY_NAMES, FALSE, "shows the volume by its ID"},
    {WIRE_KEY_SHARED_LOCKS, FALSE, "keeps file locks for this node alone"},
};

static gboolean leave_out_unknown(json_t *request, const GError *cause)
{
    if (!g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT))
        return FALSE;
    for (gsize i = 0; i < G_N_ELEMENTS(optionals); i++) {
        const Optional *o = &optionals[i];
        g_autofree char *text = g_strdup_printf("unknown field '%s'", o->name);
        json_t *of = o->in_origin ? json_object_get(request, WIRE_KEY_ORIGIN) : request;
        if (!strstr(cause->message, text) || json_object_del(of, o->name) != 0)
            continue;
        g_message("volume %s: the hearthd of this node is older and does not know %s, so it %s: "
                  "upgrade it (docs/operations.md)",
                  json_string_value(json_object_get(request, WIRE_KEY_VOLUME)), o->name, o->loss);
        return TRUE;
    }
    return FALSE;
}

gboolean hearthd_open(HearthdLink *link, const json_t *spec, gint64 timeout_ms, gboolean *attached,
                      GError **error)
{
    node_spec_auto_t *request = json_deep_copy(spec);
    json_object_set_new(request, WIRE_KEY_OP, json_string(WIRE_OP_OPEN));
    g_autoptr(GError) cause = NULL;
    json_auto_t *reply = hearthd_call(link, request, -1, NULL, timeout_ms, &cause);
    while (!reply && leave_out_unknown(request, cause)) {
        g_clear_error(&cause);
        reply = hearthd_call(link, request, -1, NULL, timeout_ms, &cause);
    }
    if (!reply) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    *attached = json_is_true(json_object_get(reply, WIRE_KEY_ATTACHED));
    return TRUE;
}

HearthdLink *hearthd_connect_and_open(const char *socket_path, const json_t *spec,
                                      gint64 timeout_ms, gboolean *attached, GError **error)
{
    g_autoptr(HearthdLink) link = hearthd_connect(socket_path, NULL, error);
    if (!link || !hearthd_open(link, spec, timeout_ms, attached, error))
        return NULL;
    return g_steal_pointer(&link);
}

gboolean hearthd_counters(HearthdLink *link, const char *volume, gint64 timeout_ms,
                          HearthdCounters *counters, GError **error)
{
    json_auto_t *reply = call_volume(link, WIRE_OP_VOLUME, volume, NULL, timeout_ms, error);
    if (!reply)
        return FALSE;
    const json_t *v = json_object_get(reply, WIRE_KEY_VOLUME);
    counters->bytes = field_count(v, WIRE_KEY_BYTES_STORE) + field_count(v, WIRE_KEY_BYTES_FILL) +
                      field_count(v, WIRE_KEY_BYTES_ORIGIN);
    counters->objects = field_count(v, WIRE_KEY_OBJECTS);
    return TRUE;
}

static char *note_in(const json_t *reply)
{
    return g_strdup(json_string_value(json_object_get(reply, WIRE_KEY_RESUME)));
}

gboolean hearthd_attach(HearthdLink *link, const HearthdMount *mount, char **note,
                        gint64 timeout_ms, GError **error)
{
    json_auto_t *request =
        json_pack("{s:s, s:s, s:s*, s:s*}", WIRE_KEY_OP, WIRE_OP_ATTACH, WIRE_KEY_VOLUME,
                  mount->volume, WIRE_KEY_LAYER, mount->layer, WIRE_KEY_RESUME, mount->note);
    if (mount->restored)
        json_object_set_new(request, WIRE_KEY_RESTORED, json_true());
    json_auto_t *reply = hearthd_call(link, request, mount->fuse_fd, NULL, timeout_ms, error);
    *note = note_in(reply);
    return reply != NULL;
}

int hearthd_state(HearthdLink *link, const char *volume, gint64 timeout_ms)
{
    int fd = -1;
    json_auto_t *reply = call_volume(link, WIRE_OP_STATE, volume, &fd, timeout_ms, NULL);
    return reply ? fd : -1;
}

gboolean hearthd_restore(HearthdLink *link, const char *volume, int state_fd, gint64 timeout_ms,
                         GError **error)
{
    json_auto_t *request =
        json_pack("{s:s, s:s}", WIRE_KEY_OP, WIRE_OP_RESTORE, WIRE_KEY_VOLUME, volume);
    json_auto_t *reply = hearthd_call(link, request, state_fd, NULL, timeout_ms, error);
    return reply != NULL;
}

gboolean hearthd_detach(HearthdLink *link, const char *volume, gint64 timeout_ms, GError **error)
{
    json_auto_t *reply = call_volume(link, WIRE_OP_DETACH, volume, NULL, timeout_ms, error);
    return reply != NULL;
}

gboolean hearthd_forget(const char *socket_path, const char *volume, gint64 timeout_ms,
                        GError **error)
{
    gboolean absent;
    g_autoptr(GError) cause = NULL;
    g_autoptr(HearthdLink) link = hearthd_connect(socket_path, &absent, &cause);
    if (link ? hearthd_detach(link, volume, timeout_ms, &cause) : absent)
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&cause));
    return FALSE;
}

gboolean hearthd_serving(HearthdLink *link, const char *volume, gint64 timeout_ms,
                         HearthdServing *serving, GError **error)
{
    g_autoptr(GError) cause = NULL;
    json_auto_t *reply = call_volume(link, WIRE_OP_VOLUME, volume, NULL, timeout_ms, &cause);
    if (!reply && !g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND)) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    const json_t *known = json_object_get(reply, WIRE_KEY_VOLUME);
    serving->attached = json_is_true(json_object_get(known, WIRE_KEY_ATTACHED));
    serving->rests = json_is_true(json_object_get(known, WIRE_KEY_RESTS));
    return TRUE;
}

GHashTable *hearthd_served_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
}

gboolean hearthd_served(HearthdLink *link, GHashTable *known, const char *volume, gint64 timeout_ms,
                        gboolean *served, GError **error)
{
    void *value;
    HearthdServing serving;
    if (g_hash_table_lookup_extended(known, volume, NULL, &value)) {
        *served = GPOINTER_TO_INT(value);
        return TRUE;
    }
    if (!hearthd_serving(link, volume, timeout_ms, &serving, error))
        return FALSE;
    *served = serving.attached;
    g_hash_table_insert(known, g_strdup(volume), GINT_TO_POINTER(serving.attached));
    return TRUE;
}

json_t *hearthd_fetch(HearthdLink *link, const char *volume, gint64 timeout_ms, int *fuse_fd,
                      char **note, GError **error)
{
    hearth_autofd int fd = -1;
    node_spec_auto_t *reply = call_volume(link, WIRE_OP_FETCH, volume, &fd, timeout_ms, error);
    if (!reply)
        return NULL;
    const json_t *spec = json_object_get(reply, WIRE_KEY_SPEC);
    const char *of = json_string_value(json_object_get(spec, WIRE_KEY_VOLUME));
    if (g_strcmp0(of, volume) != 0 || fd < 0) {
        hearth_fail(error, HEARTH_ERROR_INTERNAL,
                    "hearthd answered \"fetch\" of volume %s without its spec or descriptor",
                    volume);
        return NULL;
    }
    *fuse_fd = hearth_steal_fd(&fd);
    *note = note_in(reply);
    return json_deep_copy(spec);
}

gboolean hearthd_resize(HearthdLink *link, const char *volume, gint64 timeout_ms, guint64 *bytes,
                        GError **error)
{
    json_auto_t *reply = call_volume(link, WIRE_OP_RESIZE, volume, NULL, timeout_ms, error);
    if (!reply)
        return FALSE;
    *bytes = (guint64)json_integer_value(json_object_get(reply, WIRE_KEY_BYTES));
    return TRUE;
}

gboolean hearthd_warm(HearthdLink *link, const HearthdWarm *warm, gint64 timeout_ms, guint64 *job,
                      GError **error)
{
    json_auto_t *request =
        json_pack("{s:s, s:s, s:s, s:I}", WIRE_KEY_OP, WIRE_OP_WARM, WIRE_KEY_VOLUME, warm->volume,
                  WIRE_KEY_PATH, warm->path, WIRE_KEY_RATE, (json_int_t)warm->bytes_per_second);
    json_auto_t *reply = hearthd_call(link, request, -1, NULL, timeout_ms, error);
    if (!reply)
        return FALSE;
    *job = field_count(reply, WIRE_KEY_JOB);
    return TRUE;
}

static json_t *call_job(HearthdLink *link, const char *op, guint64 job, gint64 timeout_ms,
                        GError **error)
{
    json_auto_t *request = json_pack("{s:s, s:I}", WIRE_KEY_OP, op, WIRE_KEY_JOB, (json_int_t)job);
    json_t *reply = hearthd_call(link, request, -1, NULL, timeout_ms, error);
    return reply;
}

json_t *hearthd_job(HearthdLink *link, guint64 job, gint64 timeout_ms, GError **error)
{
    return call_job(link, WIRE_OP_JOB, job, timeout_ms, error);
}

gboolean hearthd_cancel(HearthdLink *link, guint64 job, gint64 timeout_ms, GError **error)
{
    json_auto_t *reply = call_job(link, WIRE_OP_CANCEL, job, timeout_ms, error);
    return reply != NULL;
}

json_t *hearthd_status(HearthdLink *link, gint64 timeout_ms, GError **error)
{
    json_auto_t *request = json_pack("{s:s}", WIRE_KEY_OP, WIRE_OP_STATUS);
    json_t *reply = hearthd_call(link, request, -1, NULL, timeout_ms, error);
    return reply;
}

gboolean hearthd_probe(const char *socket_path, gint64 timeout_ms, GError **error)
{
    g_autoptr(HearthdLink) link = hearthd_connect(socket_path, NULL, error);
    if (!link)
        return FALSE;
    json_auto_t *request = json_pack("{s:s}", WIRE_KEY_OP, WIRE_OP_HELLO);
    json_auto_t *reply = hearthd_call(link, request, -1, NULL, timeout_ms, error);
    if (!reply)
        return FALSE;
    json_int_t protocol = json_integer_value(json_object_get(reply, WIRE_KEY_PROTOCOL));
    if (protocol != PROTOCOL)
        hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                    "hearthd at %s speaks protocol %lld, this node plugin %d: use the same "
                    "release of both",
                    socket_path, (long long)protocol, PROTOCOL);
    return protocol == PROTOCOL;
}
