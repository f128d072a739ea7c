/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each call: check the arguments, find the backend, lock, provision, answer. The locks are the
 * request's name and the volume's ID, so that neither two creations nor a creation and a deletion
 * of one volume overlap; the second gets ABORTED.
 */
#include "driver/service/controller/internal.h"
#include <string.h>
#include "driver/service/capability.h"
#include "driver/service/controller/free_space.h"
#include "driver/volume/name.h"
#include "driver/cluster/secret_dir.h"

/* For callers that set no deadline; and what is left for the answer to travel. */
#define CALL_MS (110 * 1000)
#define ANSWER_MS 300
#define PROBE_MS 2000

Controller *controller_new(Backend *const *backends, gsize n)
{
    g_assert(n <= CONTROLLER_MAX_BACKENDS);
    Controller *c = g_new0(Controller, 1);
    for (gsize i = 0; i < n; i++)
        c->backends[c->n_backends++] = backends[i];
    c->busy = busy_new();
    c->room = room_new();
    c->told = g_hash_table_new(g_str_hash, g_str_equal);
    pthread_mutex_init(&c->told_lock, NULL);
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
    g_hash_table_unref(c->told);
    pthread_mutex_destroy(&c->told_lock);
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

gboolean controller_probe(void *controller, GError **error)
{
    Controller *c = controller;
    gint64 deadline_us = g_get_monotonic_time() + PROBE_MS * 1000;
    for (gsize i = 0; i < c->n_backends; i++) {
        const Backend *b = c->backends[i];
        if (!b->ops->probe(b->impl, deadline_us, error))
            return FALSE;
    }
    return TRUE;
}

gint64 controller_deadline(const RpcCall *call)
{
    gint64 left_ms = MIN(rpc_time_left_ms(call), CALL_MS) - ANSWER_MS;
    return g_get_monotonic_time() + MAX(left_ms, 0) * 1000;
}

static gboolean invalid(GError **error, const char *text)
{
    g_set_error_literal(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT, text);
    return FALSE;
}

const Backend *controller_backend(const Controller *c, VolumeType type, GError **error)
{
    for (gsize i = 0; i < c->n_backends; i++) {
        if (c->backends[i]->ops->type == type)
            return c->backends[i];
    }
    g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT, "type=%s is not enabled here%s",
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
    if (!c->secret_dir) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION,
                    "this call carries no secret, so the driver needs a user of its own: start the "
                    "controller with --secret-dir, see hearth-csi(8)");
        return FALSE;
    }
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

/* What must hold of a creation whatever the backend. */
static gboolean check_create(const Csi__V1__CreateVolumeRequest *r, GError **error)
{
    if (!name_check_request(r->name, error) ||
        !capability_check_form(r->volume_capabilities, r->n_volume_capabilities, error))
        return FALSE;
    const Csi__V1__CapacityRange *range = r->capacity_range;
    if (range && range->required_bytes == 0 && range->limit_bytes == 0)
        return invalid(error, "capacity_range has neither required_bytes nor limit_bytes; set one, "
                              "or leave the range out for the default of 1 GiB");
    return TRUE;
}

VolumeId *controller_place(const Backend *b, const VolumeParams *params, const char *request_name,
                           char **text, GError **error)
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

/* What the volume starts as. */
typedef struct Source {
    VolumeRef snapshot, volume; /* one of them has an ID, or none for nothing */
    const char *text;           /* its ID as given */
    char *at;                   /* the ID we would give one of ceph-csi; else NULL */
} Source;

static void source_clear(Source *source)
{
    controller_ref_clear(&source->snapshot);
    controller_ref_clear(&source->volume);
    g_free(source->at);
}
#define source_auto __attribute__((cleanup(source_clear)))

/* As ours would be written: what makes the copy finds it by that. */
static char *source_at(const VolumeId *id, gboolean snapshot, GError **error)
{
    VolumeId own = *id;
    own.handle = NULL;
    if (!snapshot)
        return volume_id_encode(&own, error);
    own.group = NULL;
    return snapshot_id_encode(&own, error);
}

/* Whether the backend can copy from there. */
static gboolean check_reach(const Backend *b, const VolumeId *from, const VolumeId *to,
                            const char *text, const Secrets *secrets, gint64 deadline_us,
                            GError **error)
{
    if (volume_id_same_place(from, to))
        return TRUE;
    g_autoptr(GError) cause = NULL;
    gboolean can = b->ops->check_reach && from->type == to->type;
    if (can && b->ops->check_reach(b->impl, from, to, secrets, deadline_us, &cause))
        return TRUE;
    if (can && !g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT)) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    g_autofree char *theirs = volume_id_place_text(from);
    g_autofree char *ours = volume_id_place_text(to);
    g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT,
                "volume_content_source %s is in %s, the class's volumes are in %s: %s", text,
                theirs, ours,
                cause ? cause->message
                      : "a copy has its source's type; use a class of that, or copy the data in a "
                        "pod that has both");
    return FALSE;
}

/* Checked to be where the volume can be copied from. */
static gboolean read_source(const Controller *c, const Csi__V1__VolumeContentSource *from,
                            const Backend *b, const VolumeId *id, GHashTable *given,
                            const Secrets *secrets, gint64 deadline_us, Source *source,
                            GError **error)
{
    if (!from)
        return TRUE;
    const VolumeId *found;
    if (from->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT) {
        source->text = from->snapshot->snapshot_id;
        if (!controller_resolve_snapshot(c, source->text, given, deadline_us, &source->snapshot,
                                         error))
            return FALSE;
        found = source->snapshot.id;
    } else if (from->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME) {
        source->text = from->volume->volume_id;
        if (!controller_resolve(c, source->text, given, deadline_us, &source->volume, error))
            return FALSE;
        found = source->volume.id;
    } else {
        return invalid(error, "volume_content_source names neither a snapshot nor a volume");
    }
    return check_reach(b, found, id, source->text, secrets, deadline_us, error) &&
           (!found->handle || (source->at = source_at(found, source->snapshot.id != NULL, error)));
}

/*
 * Whether a volume from a snapshot is that snapshot: ceph-csi's rule. Who only reads gets it at
 * once and without a copy; backingSnapshot says otherwise. Volumes of a dataset always are.
 */
static gboolean choose_backing(const Csi__V1__CreateVolumeRequest *r, const Backend *b,
                               const VolumeParams *params, const VolumeId *from_snapshot,
                               gboolean *backing_snapshot, GError **error)
{
    gboolean reads = capability_reads_only(r->volume_capabilities, r->n_volume_capabilities);
    if (params->dataset) {
        *backing_snapshot = TRUE;
        if (r->volume_content_source)
            return invalid(error, "the class has a dataset, so its volumes start as that and "
                                  "nothing else: leave dataSource out, or use another class");
        return reads || invalid(error, "the class has a dataset, which is a snapshot and cannot be "
                                       "written: ask for accessModes [ReadOnlyMany]");
    }
    /* ceph-csi counts who shows a snapshot of its own, and would not count ours. */
    gboolean own = from_snapshot && !from_snapshot->handle;
    *backing_snapshot =
        own && reads && b->ops->snapshot_path && params->backing_snapshot != BACKING_NEVER;
    if (from_snapshot && !own && params->backing_snapshot == BACKING_ALWAYS)
        return invalid(error, "backingSnapshot=true: a snapshot of ceph-csi is not shown, only "
                              "copied; use backingSnapshot=false");
    if (from_snapshot && !reads && params->backing_snapshot == BACKING_ALWAYS)
        return invalid(error, "backingSnapshot=true gives the snapshot itself, which cannot be "
                              "written: ask for ReadOnlyMany, or use backingSnapshot=false for a "
                              "copy");
    return TRUE;
}

/* Once for each parameter, since every volume of the class would tell it. */
static void tell_meaningless(Controller *c, const VolumeParams *params)
{
    for (guint i = 0; i < params->meaningless->len; i++) {
        const char *name = params->meaningless->pdata[i];
        pthread_mutex_lock(&c->told_lock);
        gboolean first = g_hash_table_add(c->told, (char *)name);
        pthread_mutex_unlock(&c->told_lock);
        if (first)
            g_message("parameter %s has no meaning with this driver and is not used", name);
    }
}

static gboolean create_volume(RpcCall *call, const ProtobufCMessage *request,
                              ProtobufCMessage *response, void *service, GError **error)
{
    Controller *c = service;
    const Csi__V1__CreateVolumeRequest *r = (const Csi__V1__CreateVolumeRequest *)request;
    if (!check_create(r, error))
        return FALSE;
    g_autoptr(GHashTable) parameters = CONTEXT_TABLE(r->parameters, r->n_parameters);
    g_autoptr(VolumeParams) params = params_parse(parameters, error);
    if (!params || !capability_check_supported(r->volume_capabilities, r->n_volume_capabilities,
                                               params->type, error))
        return FALSE;
    tell_meaningless(c, params);
    CapacityRange range = {0};
    if (r->capacity_range)
        range = (CapacityRange){r->capacity_range->required_bytes, r->capacity_range->limit_bytes};
    gint64 bytes;
    const Backend *b = controller_backend(c, params->type, error);
    if (!b || !capacity_choose(range, params->type, &bytes, error))
        return FALSE;
    g_autoptr(Secrets) secrets = NULL;
    g_autoptr(GHashTable) given = CONTEXT_TABLE(r->secrets, r->n_secrets);
    g_autofree char *text = NULL;
    gint64 deadline_us = controller_deadline(call);
    g_autoptr(BusyHold) name_hold = busy_take(c->busy, r->name, NULL, error);
    const TopologyPool *pool;
    if (!name_hold || !controller_choose_pool(c, r, b, params, given, deadline_us, &pool, error))
        return FALSE;
    g_autoptr(VolumeId) id = controller_place(b, params, r->name, &text, error);
    source_auto Source source = {.text = NULL};
    gboolean backing_snapshot;
    g_autoptr(GHashTable) given_changes =
        CONTEXT_TABLE(r->mutable_parameters, r->n_mutable_parameters);
    json_auto json_t *changes = mutable_parse(given_changes, params->type, error);
    if (!id || !changes || !controller_secrets(b, given, &secrets, error) ||
        !read_source(c, r->volume_content_source, b, id, given, secrets, deadline_us, &source,
                     error) ||
        !choose_backing(r, b, params, source.snapshot.id, &backing_snapshot, error))
        return FALSE;

    g_autoptr(BusyHold) id_hold = busy_take(c->busy, text, NULL, error);
    if (!id_hold)
        return FALSE;
    g_autoptr(VolumeRecord) record = NULL;
    g_autoptr(BackendVolume) volume = NULL;
    ProvisionRequest wanted = {.id = id,
                               .name = r->name,
                               .params = params,
                               .range = range,
                               .from_snapshot = source.snapshot.id,
                               .from_volume = source.volume.id,
                               .source = source.text,
                               .source_at = source.at,
                               .backing_snapshot = backing_snapshot,
                               .changes = changes};
    if (!provision_create(b, &wanted, secrets, deadline_us, &record, &volume, error))
        return FALSE;
    if (!record->backing)
        controller_describe_volume(c, b, id, params, secrets, deadline_us);
    Csi__V1__Volume *out = controller_volume(call, text, id, record, volume);
    controller_accessible(c, call, pool, out);
    ((Csi__V1__CreateVolumeResponse *)response)->volume = out;
    return TRUE;
}

static gboolean delete_volume(RpcCall *call, const ProtobufCMessage *request,
                              ProtobufCMessage *response, void *service, GError **error)
{
    (void)response;
    Controller *c = service;
    const Csi__V1__DeleteVolumeRequest *r = (const Csi__V1__DeleteVolumeRequest *)request;
    g_autoptr(GError) cause = NULL;
    g_autoptr(GHashTable) given = CONTEXT_TABLE(r->secrets, r->n_secrets);
    gint64 deadline_us = controller_deadline(call);
    ref_auto VolumeRef ref = {0};
    if (!controller_resolve(c, r->volume_id, given, deadline_us, &ref, &cause)) {
        /* No ID of ours names no volume of ours: deleted already, as far as CSI is concerned. */
        if (g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND))
            return TRUE;
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    g_autoptr(BusyHold) hold = busy_take(c->busy, r->volume_id, NULL, error);
    return hold && provision_delete(ref.backend, ref.id, ref.secrets, deadline_us, error);
}

static gboolean get_capabilities(RpcCall *call, const ProtobufCMessage *request,
                                 ProtobufCMessage *response, void *service, GError **error)
{
#define CAP(name) CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__##name
    static const Csi__V1__ControllerServiceCapability__RPC__Type types[] = {
        CAP(CREATE_DELETE_VOLUME),
        CAP(SINGLE_NODE_MULTI_WRITER),
        CAP(EXPAND_VOLUME),
        CAP(CREATE_DELETE_SNAPSHOT),
        CAP(CLONE_VOLUME),
        CAP(MODIFY_VOLUME),
        /* From here they need a user of the driver's own: requests carry no secret, or may not. */
        CAP(LIST_VOLUMES),
        CAP(GET_CAPACITY),
        CAP(GET_VOLUME),
        CAP(VOLUME_CONDITION),
        CAP(LIST_SNAPSHOTS),
        CAP(GET_SNAPSHOT),
    };
    enum { N_ALWAYS = 6 };
    (void)request, (void)error;
    const Controller *c = service;
    gsize n_types = c->secret_dir ? G_N_ELEMENTS(types) : N_ALWAYS;
    Csi__V1__ControllerGetCapabilitiesResponse *r =
        (Csi__V1__ControllerGetCapabilitiesResponse *)response;
    r->capabilities = rpc_alloc(call, n_types * sizeof(*r->capabilities));
    for (gsize i = 0; i < n_types && r->capabilities; i++) {
        Csi__V1__ControllerServiceCapability *capability = rpc_alloc(call, sizeof(*capability));
        Csi__V1__ControllerServiceCapability__RPC *rpc = rpc_alloc(call, sizeof(*rpc));
        if (!capability || !rpc)
            break;
        csi__v1__controller_service_capability__init(capability);
        csi__v1__controller_service_capability__rpc__init(rpc);
        rpc->type = types[i];
        capability->type_case = CSI__V1__CONTROLLER_SERVICE_CAPABILITY__TYPE_RPC;
        capability->rpc = rpc;
        r->capabilities[r->n_capabilities++] = capability;
    }
    return TRUE;
}

#define ROW(name, lower, handler)                                                                  \
    {                                                                                              \
        "/csi.v1.Controller/" name, &csi__v1__##lower##_request__descriptor,                       \
            &csi__v1__##lower##_response__descriptor, handler                                      \
    }

static const RpcMethod methods[] = {
    ROW("CreateVolume", create_volume, create_volume),
    ROW("DeleteVolume", delete_volume, delete_volume),
    ROW("ValidateVolumeCapabilities", validate_volume_capabilities,
        controller_validate_volume_capabilities),
    ROW("ControllerGetCapabilities", controller_get_capabilities, get_capabilities),
    ROW("ControllerPublishVolume", controller_publish_volume, NULL),
    ROW("ControllerUnpublishVolume", controller_unpublish_volume, NULL),
    ROW("ListVolumes", list_volumes, controller_list_volumes),
    ROW("GetCapacity", get_capacity, controller_get_capacity),
    ROW("CreateSnapshot", create_snapshot, controller_create_snapshot),
    ROW("DeleteSnapshot", delete_snapshot, controller_delete_snapshot),
    ROW("ListSnapshots", list_snapshots, controller_list_snapshots),
    ROW("GetSnapshot", get_snapshot, controller_get_snapshot),
    ROW("ControllerExpandVolume", controller_expand_volume, controller_expand_volume),
    ROW("ControllerGetVolume", controller_get_volume, controller_get_volume),
    ROW("ControllerModifyVolume", controller_modify_volume, controller_modify_volume),
    {NULL, NULL, NULL, NULL},
};

const RpcMethod *controller_methods(void)
{
    return methods;
}
