/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each handler checks its request, reads it into a NodeCall with the kind of the volume
 * (driver/node/served/kind.h), and calls driver/node/staging.h. What differs between kinds is in
 * that table, not here.
 */
#include "driver/service/node/node.h"
#include <string.h>
#include <sys/mount.h>
#include "proto/wire.h"
#include "proto/wire_keys.h"
#include "csi.pb-c.h"
#include "driver/node/dataset/dataset.h"
#include "driver/node/hearthd/hearthd.h"
#include "driver/node/image/image.h"
#include "driver/node/hearthd/spec.h"
#include "driver/node/staging.h"
#include "driver/service/node/context.h"
#include "driver/service/node/stats.h"
#include "driver/service/node/use.h"
#include "driver/volume/topology.h"
#include "driver/service/node/settings.h"
#include "driver/cluster/config.h"

/* CSI 1.12, NodeGetInfoResponse.node_id. */
#define NODE_ID_MAX 256
/* Longer than our own IDs: an administrator chooses those of static volumes. */
#define VOLUME_HANDLE_MAX 256
/* kubelet gives staging two minutes. */
#define CALL_MS (110 * 1000)
#define STATS_MS (10 * 1000)
#define PROBE_MS 2000
/* Left for the answer to travel before the caller's deadline. */
#define ANSWER_MS 250

struct NodeService {
    char *node_id, *hearthd_socket, *config_path;
    gboolean selinux; /* of the mounter */
    Staging *staging;
    Settings *settings;
    CrushLocation *crush_location; /* borrowed */
    GHashTable *domains;           /* topology key -> value */
};

static gboolean is_label_value(const char *text)
{
    size_t n = strlen(text);
    if (n == 0 || n > 63 || !g_ascii_isalnum(text[0]) || !g_ascii_isalnum(text[n - 1]))
        return FALSE;
    for (size_t i = 0; i < n; i++)
        if (!g_ascii_isalnum(text[i]) && !strchr("-_.", text[i]))
            return FALSE;
    return TRUE;
}

/* Topology key -> value. */
static GHashTable *copy_domains(const NodeServiceConfig *config)
{
    GHashTable *domains = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    GHashTableIter iter;
    gpointer name, value;
    if (!config->domains)
        return domains;
    g_hash_table_iter_init(&iter, config->domains);
    while (g_hash_table_iter_next(&iter, &name, &value))
        g_hash_table_insert(domains, g_strconcat(config->domain_prefix, name, NULL),
                            g_strdup(value));
    return domains;
}

NodeService *node_service_new(const NodeServiceConfig *config, GError **error)
{
    g_autoptr(NodeMounter) mounter = config->mounter ? config->mounter : node_mounter_new();
    g_autoptr(NodeBlock) block = config->block ? config->block : node_block_new();
    g_autoptr(NodeLayers) layers = config->layers;
    if (!config->node_id || !config->node_id[0] || strlen(config->node_id) > NODE_ID_MAX) {
        hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                    "the node ID must have 1 to %d bytes: give the node's name", NODE_ID_MAX);
        return NULL;
    }
    if (g_strcmp0(config->tier, "nvme") != 0 && g_strcmp0(config->tier, "none") != 0) {
        hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                    "tier \"%s\": use nvme for a node with a cache disk, none for one without",
                    config->tier ? config->tier : "");
        return NULL;
    }
    const char *zone = config->zone && config->zone[0] ? config->zone : NULL;
    if (zone && !is_label_value(zone)) {
        hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                    "zone \"%s\": must be a Kubernetes label value, at most 63 of [A-Za-z0-9._-]",
                    zone);
        return NULL;
    }
    NodeService *service = g_new0(NodeService, 1);
    service->node_id = g_strdup(config->node_id);
    service->hearthd_socket =
        g_strdup(config->hearthd_socket ? config->hearthd_socket : WIRE_DEFAULT_SOCKET);
    service->config_path =
        g_strdup(config->config_path ? config->config_path : CONFIG_DEFAULT_PATH);
    service->crush_location = config->crush_location;
    service->domains = copy_domains(config);
    service->settings = settings_new(config->records, service->config_path);
    service->selinux = mounter->selinux;
    service->staging =
        staging_new(g_steal_pointer(&mounter), service->hearthd_socket, config->wait_sec);
    if (config->device_dir) {
        g_autofree char *device_dir = mount_canonical_dir(config->device_dir);
        g_autoptr(NodeLayers) own =
            layers ? NULL : node_layers_new(block, device_dir, config->dataset_mount);
        image_init(service->staging, g_steal_pointer(&block), device_dir);
        dataset_init(service->staging, own ? g_steal_pointer(&own) : g_steal_pointer(&layers),
                     DATASET_REFRESH_MS);
    }
    return service;
}

void node_service_free(NodeService *service)
{
    if (!service)
        return;
    staging_free(service->staging);
    settings_free(service->settings);
    g_free(service->node_id);
    g_free(service->hearthd_socket);
    g_free(service->config_path);
    g_hash_table_unref(service->domains);
    g_free(service);
}

gboolean node_service_waits(NodeService *service, const char *volume)
{
    return staging_waits(service->staging, volume);
}

gboolean node_service_probe(NodeService *service, GError **error)
{
    return hearthd_probe(service->hearthd_socket, PROBE_MS, error);
}

static gint64 time_for(RpcCall *call, gint64 at_most)
{
    gint64 left = rpc_time_left_ms(call);
    return CLAMP(left - MIN(left / 2, ANSWER_MS), 0, at_most);
}

static gboolean invalid(GError **error, const char *message)
{
    return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT, "%s", message);
}

static gboolean check_volume_id(const char *id, GError **error)
{
    if (!id[0])
        return invalid(error, "volume_id is missing");
    if (strlen(id) > VOLUME_HANDLE_MAX)
        return invalid(error, "volume_id is longer than 256 bytes");
    for (const char *c = id; *c; c++)
        if (g_ascii_iscntrl(*c))
            return invalid(error, "volume_id has control characters");
    return TRUE;
}

/* The handle of a static volume is chosen in its PersistentVolume. */
static gboolean check_foreign_name(const char *id, GError **error)
{
    if (!wire_is_own_name(id))
        return TRUE;
    return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                       "volume_id %s: names that begin with \"" WIRE_DATASET_PREFIX
                       "\" or \"" WIRE_WARMUP_PREFIX
                       "\" are Hearth's own; give the PersistentVolume "
                       "another volumeHandle",
                       id);
}

/* A path to mount on; its directory must exist. */
static char *mount_point(const char *path, const char *field, GError **error)
{
    if (!path[0]) {
        hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT, "%s is missing", field);
        return NULL;
    }
    g_autoptr(GError) cause = NULL;
    char *canonical = mount_canonical_path(path, field, &cause);
    if (g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND))
        hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION, "%s", cause->message);
    else if (cause)
        g_propagate_error(error, g_steal_pointer(&cause));
    return canonical;
}

/* As above for a path that is to be cleared: *path is NULL when its directory is gone. */
static gboolean cleared_point(const char *given, const char *field, char **path, GError **error)
{
    *path = NULL;
    if (!given[0]) {
        return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT, "%s is missing", field);
    }
    g_autoptr(GError) cause = NULL;
    *path = mount_canonical_path(given, field, &cause);
    if (!cause || g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND))
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&cause));
    return FALSE;
}

/* The spec of a NodeStageVolume, for node_spec_free(); NULL with the error. */
static json_t *make_spec(const NodeService *service, RpcCall *call,
                         const Csi__V1__NodeStageVolumeRequest *r,
                         const VolumeAttributes *attributes, const NodeUse *use, GError **error)
{
    const gboolean read_only = (use->use.attrs & MOUNT_ATTR_RDONLY) != 0;
    if (!read_only && attributes->is_snapshot) {
        invalid(error, "the volume is a snapshot, which cannot be written: use accessModes "
                       "[ReadOnlyMany], or a volume made from the snapshot");
        return NULL;
    }
    g_autoptr(GHashTable) secrets = CONTEXT_TABLE(r->secrets, r->n_secrets);
    const NodeSpecSource source = {.attributes = attributes,
                                   .secrets = secrets,
                                   .config_path = service->config_path,
                                   .crush_location = service->crush_location,
                                   .read_only = read_only};
    json_t *spec = node_spec_new(&source, error);
    if (!spec)
        return NULL;
    settings_apply(service->settings, r->volume_id, secrets, time_for(call, CALL_MS), spec);
    if (use->shared)
        json_object_set_new(json_object_get(spec, WIRE_KEY_ORIGIN), WIRE_KEY_SHARED, json_true());
    if (use->shared_locks && !read_only && !attributes->is_snapshot)
        json_object_set_new(spec, WIRE_KEY_SHARED_LOCKS, json_true());
    /* A file system of the volume's own is changed when it is published. */
    if (use->use.group >= 0 && !use->kind->on_device)
        json_object_set_new(spec, WIRE_KEY_MOUNT_GROUP, json_integer((json_int_t)use->use.group));
    return spec;
}

static gboolean stage(RpcCall *call, const ProtobufCMessage *request, ProtobufCMessage *response,
                      void *data, GError **error)
{
    NodeService *service = data;
    const Csi__V1__NodeStageVolumeRequest *r = (const void *)request;
    (void)response;
    VolumeAttributes attributes;
    g_auto(NodeUse) use = {0};
    if (!check_volume_id(r->volume_id, error) || !check_foreign_name(r->volume_id, error))
        return FALSE;
    g_autofree char *path = mount_point(r->staging_target_path, "staging_target_path", error);
    g_autoptr(GHashTable) context = CONTEXT_TABLE(r->volume_context, r->n_volume_context);
    const NodeUseRequest asked = {
        .capability = r->volume_capability, .attributes = &attributes, .selinux = service->selinux};
    if (!path || !attributes_read(r->volume_id, context, &attributes, error) ||
        !node_use_parse(&asked, &use, error))
        return FALSE;
    node_spec_auto_t *spec = make_spec(service, call, r, &attributes, &use, error);
    if (!spec)
        return FALSE;
    const NodeCall staging = {.volume = r->volume_id,
                              .staged = path,
                              .spec = spec,
                              .use = use.use,
                              .deadline = deadline_in(time_for(call, CALL_MS))};
    return staging_stage(service->staging, use.kind, &staging, error);
}

static gboolean unstage(RpcCall *call, const ProtobufCMessage *request, ProtobufCMessage *response,
                        void *data, GError **error)
{
    NodeService *service = data;
    const Csi__V1__NodeUnstageVolumeRequest *r = (const void *)request;
    (void)response;
    g_autofree char *path = NULL;
    return check_volume_id(r->volume_id, error) &&
           cleared_point(r->staging_target_path, "staging_target_path", &path, error) &&
           staging_unstage(service->staging, r->volume_id, path, time_for(call, CALL_MS), error);
}

static gboolean publish(RpcCall *call, const ProtobufCMessage *request, ProtobufCMessage *response,
                        void *data, GError **error)
{
    NodeService *service = data;
    const Csi__V1__NodePublishVolumeRequest *r = (const void *)request;
    (void)response;
    VolumeAttributes attributes;
    g_auto(NodeUse) use = {0};
    if (!check_volume_id(r->volume_id, error))
        return FALSE;
    g_autofree char *target = mount_point(r->target_path, "target_path", error);
    g_autoptr(GHashTable) context = CONTEXT_TABLE(r->volume_context, r->n_volume_context);
    const NodeUseRequest asked = {
        .capability = r->volume_capability, .attributes = &attributes, .selinux = service->selinux};
    if (!target || !attributes_read(r->volume_id, context, &attributes, error) ||
        !node_use_parse(&asked, &use, error))
        return FALSE;
    if (!r->staging_target_path[0])
        return hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                           "staging_target_path is missing: stage volume %s first", r->volume_id);
    g_autofree char *staged = mount_point(r->staging_target_path, "staging_target_path", error);
    if (!staged)
        return FALSE;
    if (strcmp(staged, target) == 0)
        return invalid(error, "target_path and staging_target_path are the same");
    const NodeCall publishing = {.volume = r->volume_id,
                                 .staged = staged,
                                 .target = target,
                                 .use = use.use,
                                 .read_only = r->readonly,
                                 .deadline = deadline_in(time_for(call, CALL_MS))};
    return staging_publish(service->staging, use.kind, &publishing, error);
}

static gboolean unpublish(RpcCall *call, const ProtobufCMessage *request,
                          ProtobufCMessage *response, void *data, GError **error)
{
    NodeService *service = data;
    const Csi__V1__NodeUnpublishVolumeRequest *r = (const void *)request;
    (void)response;
    g_autofree char *target = NULL;
    return check_volume_id(r->volume_id, error) &&
           cleared_point(r->target_path, "target_path", &target, error) &&
           staging_unpublish(service->staging, r->volume_id, target, time_for(call, CALL_MS),
                             error);
}

static gboolean get_volume_stats(RpcCall *call, const ProtobufCMessage *request,
                                 ProtobufCMessage *response, void *data, GError **error)
{
    NodeService *service = data;
    const Csi__V1__NodeGetVolumeStatsRequest *r = (const void *)request;
    if (!check_volume_id(r->volume_id, error))
        return FALSE;
    if (!r->volume_path[0])
        return invalid(error, "volume_path is missing");
    g_autoptr(GError) cause = NULL;
    g_autofree char *path = mount_canonical_path(r->volume_path, "volume_path", &cause);
    if (!path) {
        /* Nothing is mounted at a path that cannot be: the volume is not there. */
        return hearth_fail(error, HEARTH_ERROR_NOT_FOUND, "%s", cause->message);
    }
    g_auto(HealthReport) report = {0};
    if (!health_check(service->staging, r->volume_id, path, time_for(call, STATS_MS), &report,
                      error))
        return FALSE;
    return node_stats(call, &report, (void *)response);
}

static gboolean expand_volume(RpcCall *call, const ProtobufCMessage *request,
                              ProtobufCMessage *response, void *data, GError **error)
{
    NodeService *service = data;
    const Csi__V1__NodeExpandVolumeRequest *r = (const void *)request;
    Csi__V1__NodeExpandVolumeResponse *out = (void *)response;
    const gint64 required = r->capacity_range ? r->capacity_range->required_bytes : 0;
    const gint64 limit = r->capacity_range ? r->capacity_range->limit_bytes : 0;
    guint64 bytes = (guint64)required;
    if (!check_volume_id(r->volume_id, error))
        return FALSE;
    if (!r->volume_path[0])
        return invalid(error, "volume_path is missing");
    if (required < 0 || limit < 0 || (limit && limit < required))
        return invalid(error, "capacity_range: limit_bytes is less than required_bytes");
    g_autoptr(GError) cause = NULL;
    g_autofree char *path = mount_canonical_path(r->volume_path, "volume_path", &cause);
    if (!path) {
        return hearth_fail(error, HEARTH_ERROR_NOT_FOUND, "%s", cause->message);
    }
    if (!staging_expand(service->staging, r->volume_id, path, time_for(call, CALL_MS), &bytes,
                        error))
        return FALSE;
    out->capacity_bytes = (gint64)bytes;
    return TRUE;
}

static gboolean get_capabilities(RpcCall *call, const ProtobufCMessage *request,
                                 ProtobufCMessage *response, void *data, GError **error)
{
    static const Csi__V1__NodeServiceCapability__RPC__Type types[] = {
        CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__STAGE_UNSTAGE_VOLUME,
        CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__GET_VOLUME_STATS,
        CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__SINGLE_NODE_MULTI_WRITER,
        CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__VOLUME_MOUNT_GROUP,
        CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__VOLUME_CONDITION,
        CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__EXPAND_VOLUME,
    };
    Csi__V1__NodeGetCapabilitiesResponse *out = (void *)response;
    (void)request, (void)data, (void)error;
    out->capabilities = rpc_alloc(call, G_N_ELEMENTS(types) * sizeof(*out->capabilities));
    if (!out->capabilities)
        return FALSE;
    for (guint i = 0; i < G_N_ELEMENTS(types); i++) {
        Csi__V1__NodeServiceCapability *capability = rpc_alloc(call, sizeof(*capability));
        Csi__V1__NodeServiceCapability__RPC *rpc = rpc_alloc(call, sizeof(*rpc));
        if (!capability || !rpc)
            return FALSE;
        csi__v1__node_service_capability__init(capability);
        csi__v1__node_service_capability__rpc__init(rpc);
        rpc->type = types[i];
        capability->type_case = CSI__V1__NODE_SERVICE_CAPABILITY__TYPE_RPC;
        capability->rpc = rpc;
        out->capabilities[out->n_capabilities++] = capability;
    }
    return TRUE;
}

static gboolean add_segment(RpcCall *call, Csi__V1__Topology *topology, const char *key,
                            const char *value)
{
    Csi__V1__Topology__SegmentsEntry *entry = rpc_alloc(call, sizeof(*entry));
    if (!entry)
        return FALSE;
    csi__v1__topology__segments_entry__init(entry);
    entry->key = rpc_strdup(call, key);
    entry->value = rpc_strdup(call, value);
    topology->segments[topology->n_segments++] = entry;
    return entry->key && entry->value;
}

/* The node and its --domainlabels. They must not change: kubelet rejects a topology that does, and
 * treats the plugin as broken. Values that may change are labels (driver/warmth/labels.h). */
static gboolean get_info(RpcCall *call, const ProtobufCMessage *request, ProtobufCMessage *response,
                         void *data, GError **error)
{
    const NodeService *service = data;
    Csi__V1__NodeGetInfoResponse *out = (void *)response;
    (void)request, (void)error;
    Csi__V1__Topology *topology = rpc_alloc(call, sizeof(*topology));
    if (!topology)
        return FALSE;
    csi__v1__topology__init(topology);
    g_autofree char *node = topology_node_value(service->node_id);
    topology->segments =
        rpc_alloc(call, (1 + g_hash_table_size(service->domains)) * sizeof(*topology->segments));
    if (!topology->segments || !add_segment(call, topology, TOPOLOGY_NODE, node))
        return FALSE;
    GHashTableIter iter;
    gpointer key, value;
    g_hash_table_iter_init(&iter, service->domains);
    while (g_hash_table_iter_next(&iter, &key, &value)) {
        if (!add_segment(call, topology, key, value))
            return FALSE;
    }
    out->node_id = service->node_id;
    out->accessible_topology = topology;
    return TRUE;
}

static const RpcMethod methods[] = {
    {"/csi.v1.Node/NodeStageVolume", &csi__v1__node_stage_volume_request__descriptor,
     &csi__v1__node_stage_volume_response__descriptor, stage},
    {"/csi.v1.Node/NodeUnstageVolume", &csi__v1__node_unstage_volume_request__descriptor,
     &csi__v1__node_unstage_volume_response__descriptor, unstage},
    {"/csi.v1.Node/NodePublishVolume", &csi__v1__node_publish_volume_request__descriptor,
     &csi__v1__node_publish_volume_response__descriptor, publish},
    {"/csi.v1.Node/NodeUnpublishVolume", &csi__v1__node_unpublish_volume_request__descriptor,
     &csi__v1__node_unpublish_volume_response__descriptor, unpublish},
    {"/csi.v1.Node/NodeGetVolumeStats", &csi__v1__node_get_volume_stats_request__descriptor,
     &csi__v1__node_get_volume_stats_response__descriptor, get_volume_stats},
    {"/csi.v1.Node/NodeExpandVolume", &csi__v1__node_expand_volume_request__descriptor,
     &csi__v1__node_expand_volume_response__descriptor, expand_volume},
    {"/csi.v1.Node/NodeGetCapabilities", &csi__v1__node_get_capabilities_request__descriptor,
     &csi__v1__node_get_capabilities_response__descriptor, get_capabilities},
    {"/csi.v1.Node/NodeGetInfo", &csi__v1__node_get_info_request__descriptor,
     &csi__v1__node_get_info_response__descriptor, get_info},
    {NULL, NULL, NULL, NULL},
};

const RpcMethod *node_service_methods(void)
{
    return methods;
}
