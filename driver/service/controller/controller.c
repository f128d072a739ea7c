/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the Controller service, and the helpers that all of its handlers use: deadline,
 * backend, Ceph user, and a volume as CSI has it. The handlers are in the files above, one group of
 * CSI calls each; methods.c has the table of them.
 */
#include "driver/service/controller/internal.h"
#include <string.h>
#include "driver/cluster/secret_dir.h"
#include "driver/service/controller/free_space.h"
#include "driver/volume/name.h"

/* For callers that set no deadline; and what is left for the answer to travel. */
#define CALL_MS (110 * 1000)
#define ANSWER_MS 300

Controller *controller_new(Backend *const *backends, gsize n)
{
    g_assert(n <= CONTROLLER_MAX_BACKENDS);
    Controller *c = g_new0(Controller, 1);
    for (gsize i = 0; i < n; i++)
        c->backends[c->n_backends++] = backends[i];
    c->busy = busy_new();
    c->room = room_new();
    c->warned = g_hash_table_new(g_str_hash, g_str_equal);
    pthread_mutex_init(&c->warned_lock, NULL);
    return c;
}

void controller_free(Controller *c)
{
    if (!c)
        return;
    for (gsize i = 0; i < c->n_backends; i++)
        backend_free(c->backends[i]);
    busy_free(c->busy);
    room_free(c->room);
    g_hash_table_unref(c->warned);
    pthread_mutex_destroy(&c->warned_lock);
    g_free(c->secret_dir);
    g_free(c->cluster_name);
    g_free(c->domain_prefix);
    if (c->domains)
        g_ptr_array_unref(c->domains);
    g_free(c);
}

void controller_set_warmth(Controller *c, Warmth *warmth)
{
    c->warmth = warmth;
}

void controller_set_secret_dir(Controller *c, const char *dir)
{
    g_free(c->secret_dir);
    c->secret_dir = g_strdup(dir);
}

gint64 controller_deadline(const RpcCall *call)
{
    gint64 left_ms = MIN(rpc_time_left_ms(call), CALL_MS) - ANSWER_MS;
    return g_get_monotonic_time() + MAX(left_ms, 0) * 1000;
}

const Backend *controller_backend(const Controller *c, VolumeType type, GError **error)
{
    for (gsize i = 0; i < c->n_backends; i++) {
        if (c->backends[i]->ops->type == type)
            return c->backends[i];
    }
    hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT, "type=%s is not enabled here%s",
                volume_type_name(type),
                type == VOLUME_DIR ? "; it is for development: start the driver with --dir-root"
                                   : "");
    return NULL;
}

gboolean controller_secrets(const Backend *b, GHashTable *map, Secrets **secrets, GError **error)
{
    *secrets = b->ops->needs_secrets ? secrets_new(map, SECRETS_PREFER_ADMIN, error) : NULL;
    return *secrets || !b->ops->needs_secrets;
}

gboolean controller_own_secrets(const Controller *c, const Backend *b, const char *cluster_id,
                                Secrets **secrets, GError **error)
{
    *secrets = NULL;
    if (!b->ops->needs_secrets)
        return TRUE;
    if (!c->secret_dir)
        return hearth_fail(
            error, HEARTH_ERROR_FAILED_PRECONDITION,
            "this call carries no secret, so the driver needs a user of its own: start the "
            "controller with --secret-dir, see hearth-csi(8)");
    *secrets = secret_dir_read(c->secret_dir, cluster_id, error);
    return *secrets != NULL;
}

gboolean controller_user(const Controller *c, const Backend *b, const VolumeId *id,
                         GHashTable *given, Secrets **secrets, GError **error)
{
    if (g_hash_table_size(given) > 0)
        return controller_secrets(b, given, secrets, error);
    return controller_own_secrets(c, b, id->cluster_id, secrets, error);
}

GHashTable *controller_deleter(const Controller *c, GHashTable *given)
{
    return g_hash_table_size(given) == 0 && c->secret_dir ? NULL : given;
}

VolumeId *controller_location(const Backend *b, const VolumeParams *params,
                              const char *request_name, char **text, GError **error)
{
    g_autoptr(VolumeId) id = b->ops->locate(b->impl, params, error);
    if (!id)
        return NULL;
    id->name = name_backend(params->name_prefix, request_name, volume_id_room(id), error);
    if (!id->name)
        return NULL;
    *text = volume_id_encode(id, error);
    return *text ? g_steal_pointer(&id) : NULL;
}

static Csi__V1__VolumeContentSource *content_source(RpcCall *call, const VolumeRecord *record)
{
    const char *source = record->source;
    g_autoptr(VolumeId) snapshot =
        snapshot_id_decode(record->source_at ? record->source_at : source, NULL);
    Csi__V1__VolumeContentSource *out = rpc_alloc(call, sizeof(*out));
    if (!out)
        return NULL;
    csi__v1__volume_content_source__init(out);
    if (snapshot && (out->snapshot = rpc_alloc(call, sizeof(*out->snapshot)))) {
        csi__v1__volume_content_source__snapshot_source__init(out->snapshot);
        out->type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT;
        out->snapshot->snapshot_id = rpc_strdup(call, source);
    } else if (!snapshot && (out->volume = rpc_alloc(call, sizeof(*out->volume)))) {
        csi__v1__volume_content_source__volume_source__init(out->volume);
        out->type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME;
        out->volume->volume_id = rpc_strdup(call, source);
    }
    return out;
}

Csi__V1__Volume *controller_volume(RpcCall *call, const char *id, const VolumeId *where,
                                   const VolumeRecord *record, const BackendVolume *volume)
{
    ContextPair pairs[CONTEXT_MAX];
    gsize n = context_of(where, record, volume, pairs);
    Csi__V1__Volume *out = rpc_alloc(call, sizeof(*out));
    if (out) {
        csi__v1__volume__init(out);
        out->volume_id = rpc_strdup(call, id);
        out->capacity_bytes = volume->bytes ? volume->bytes : record->bytes;
        out->content_source = record->source ? content_source(call, record) : NULL;
        out->volume_context = rpc_alloc(call, n * sizeof(*out->volume_context));
    }
    for (gsize i = 0; out && i < n && out->volume_context; i++) {
        Csi__V1__Volume__VolumeContextEntry *entry = rpc_alloc(call, sizeof(*entry));
        if (!entry)
            break;
        csi__v1__volume__volume_context_entry__init(entry);
        entry->key = rpc_strdup(call, pairs[i].name);
        entry->value = rpc_strdup(call, pairs[i].value);
        out->volume_context[out->n_volume_context++] = entry;
    }
    context_clear(pairs, n);
    return out;
}
