/*
 * The room for more volumes. Of a class without a dataset it is what the cluster has free, the same
 * on every node.
 *
 * Volumes of a class with a dataset of S bytes take no room; what is told of a node is how warm the
 * dataset is there. The scheduler scores a node 100 * (1 - request / capacity)
 * (StorageCapacityScoring), so a node that has the fraction w gets the capacity S / (1 - w): a
 * claim for S bytes scores 100 * w. A cold node has the capacity S and the score 0, and is still
 * good enough: whether a claim fits is judged by the maximum, which is no bound, for a claim may
 * ask for more than S.
 *
 * Source: k8s.io/kubernetes, plugin volumebinding; CSIStorageCapacity, storage.k8s.io/v1.
 */
#include <string.h>
#include "driver/service/capability.h"
#include "driver/service/controller_internal.h"
#include "driver/volume/capacity.h"
#include "driver/volume/dataset_key.h"
#include "driver/volume/topology.h"

/* A whole dataset would have no end of room. */
#define WARM_MOST 0.99

typedef struct Room {
    gint64 deadline_us;
    GHashTable *of_cluster; /* ID -> gint64 */
} Room;

/* File systems and pools of one cluster share its disks: the roomiest counts for all of them. */
static gboolean visit_room(const Backend *b, const VolumeId *place, const Secrets *secrets,
                           void *data, gboolean *stop, GError **error)
{
    (void)stop;
    Room *room = data;
    gint64 available = 0;
    if (!provision_capacity(b, place, NULL, secrets, room->deadline_us, &available, error))
        return FALSE;
    const char *cluster = place->cluster_id ? place->cluster_id : "";
    const gint64 *known = g_hash_table_lookup(room->of_cluster, cluster);
    if (!known || *known < available)
        g_hash_table_insert(room->of_cluster, g_strdup(cluster),
                            g_memdup2(&available, sizeof(available)));
    return TRUE;
}

static gint64 total(const Room *room)
{
    GHashTableIter iter;
    gpointer bytes;
    gint64 sum = 0;
    g_hash_table_iter_init(&iter, room->of_cluster);
    while (g_hash_table_iter_next(&iter, NULL, &bytes))
        sum += *(gint64 *)bytes;
    return sum;
}

/* The node that the request is of; NULL: it names none. */
static const char *node_of(const Csi__V1__GetCapacityRequest *r)
{
    const Csi__V1__Topology *topology = r->accessible_topology;
    for (size_t i = 0; topology && i < topology->n_segments; i++)
        if (strcmp(topology->segments[i]->key, TOPOLOGY_NODE) == 0)
            return topology->segments[i]->value;
    return NULL;
}

/* FALSE: nobody knows the dataset, so no node is better than another. */
static gboolean warm_capacity(const Controller *c, const VolumeParams *params,
                              const VolumeId *place, const char *node, gint64 *capacity)
{
    WarmthOf of;
    if (!c->warmth || !params->dataset)
        return FALSE;
    g_autofree char *path = dataset_name_parent(params->dataset, place->group);
    g_autofree char *key = dataset_key(place->cluster_id, place->fs_name, path);
    if (!key || !warmth_of(c->warmth, key, node, &of))
        return FALSE;
    const double warm = MIN((double)of.bytes / (double)of.total, WARM_MOST);
    *capacity = (gint64)MIN((double)of.total / (1 - warm), 9e18);
    return TRUE;
}

static Csi__V1__Int64Value *bound(RpcCall *call, gint64 bytes)
{
    Csi__V1__Int64Value *value = rpc_alloc(call, sizeof(*value));
    if (!value)
        return NULL;
    csi__v1__int64_value__init(value);
    value->value = bytes;
    return value;
}

static gboolean of_class(const Controller *c, RpcCall *call, const Csi__V1__GetCapacityRequest *r,
                         const Backend *b, const VolumeParams *params, gint64 deadline_us,
                         Csi__V1__GetCapacityResponse *out, GError **error)
{
    g_autoptr(VolumeId) place = b->ops->locate(b->impl, params, error);
    g_autoptr(Secrets) secrets = NULL;
    if (!place)
        return FALSE;
    out->minimum_volume_size = bound(call, CAPACITY_STEP);
    if (warm_capacity(c, params, place, node_of(r), &out->available_capacity)) {
        out->maximum_volume_size = bound(call, G_MAXINT64);
        return TRUE;
    }
    if (!controller_own_secrets(c, b, place->cluster_id, &secrets, error) ||
        !provision_capacity(b, place, params->data_pool ? params->data_pool : params->pool, secrets,
                            deadline_us, &out->available_capacity, error))
        return FALSE;
    out->maximum_volume_size = bound(call, params->dataset ? G_MAXINT64 : out->available_capacity);
    return TRUE;
}

CONTROLLER_HANDLER(controller_get_capacity)
{
    Controller *c = service;
    const Csi__V1__GetCapacityRequest *r = (const Csi__V1__GetCapacityRequest *)request;
    Csi__V1__GetCapacityResponse *out = (Csi__V1__GetCapacityResponse *)response;
    Room room = {.deadline_us = controller_deadline(call)};
    g_autoptr(GError) cause = NULL;
    if (r->n_volume_capabilities &&
        !capability_check_form(r->volume_capabilities, r->n_volume_capabilities, error))
        return FALSE;
    if (r->n_parameters == 0) { /* all there is */
        g_autoptr(GHashTable) of_cluster =
            g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
        room.of_cluster = of_cluster;
        gboolean good = controller_each_place(c, NULL, visit_room, &room, room.deadline_us, error);
        out->available_capacity = total(&room);
        return good;
    }
    g_autoptr(GHashTable) parameters = CONTEXT_TABLE(r->parameters, r->n_parameters);
    g_autoptr(VolumeParams) params = params_parse(parameters, error);
    const Backend *b = params ? controller_backend(c, params->type, error) : NULL;
    if (!b)
        return FALSE;
    /* Volumes that cannot be made have no room. */
    if (!capability_check_supported(r->volume_capabilities, r->n_volume_capabilities, params->type,
                                    &cause))
        return TRUE;
    return of_class(c, call, r, b, params, room.deadline_us, out, error);
}
