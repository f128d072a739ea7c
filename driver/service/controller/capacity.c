/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GetCapacity: the space for more volumes. For a class without a dataset it is the cluster's free
 * space, which is the same on every node and asked for once for all of them (free_space.h).
 *
 * Volumes of a class with a dataset of S bytes take no space, so the answer for a node says how
 * warm the dataset is there. The scheduler scores a node 100 * (1 - request / capacity)
 * (StorageCapacityScoring), so a node that has the fraction w of it gets the capacity S / (1 - w):
 * a claim for S bytes scores 100 * w. A cold node has the capacity S and the score 0, and still
 * fits: the scheduler compares a claim with the maximum volume size, which is unlimited here,
 * because a claim may ask for more than S.
 *
 * Source: k8s.io/kubernetes, plugin volumebinding; CSIStorageCapacity, storage.k8s.io/v1.
 */
#include <string.h>
#include "driver/service/capability.h"
#include "driver/service/controller/internal.h"
#include "driver/service/controller/free_space.h"
#include "driver/volume/capacity.h"
#include "common/dataset_key.h"
#include "driver/volume/topology.h"

/* In percent, as the scheduler's scores are; smaller differences are not worth writing. 100 would
 * be an infinite capacity. */
#define WARM_MOST 99

/* `data`: the space of each cluster, ID -> gint64. File systems and pools of one cluster share its
 * disks: the one with most space counts. */
static gboolean visit_room(const ProvisionTarget *location, void *data, gboolean *stop,
                           GError **error)
{
    (void)stop;
    GHashTable *of_cluster = data;
    gint64 available = 0;
    if (!provision_capacity(location, NULL, &available, error))
        return FALSE;
    const char *cluster = location->id->cluster_id ? location->id->cluster_id : "";
    const gint64 *known = g_hash_table_lookup(of_cluster, cluster);
    if (!known || *known < available)
        g_hash_table_insert(of_cluster, g_strdup(cluster),
                            g_memdup2(&available, sizeof(available)));
    return TRUE;
}

static gint64 total(GHashTable *of_cluster)
{
    GHashTableIter iter;
    gpointer bytes;
    gint64 bytes_of_all = 0;
    g_hash_table_iter_init(&iter, of_cluster);
    while (g_hash_table_iter_next(&iter, NULL, &bytes))
        bytes_of_all += *(gint64 *)bytes;
    return bytes_of_all;
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

/* FALSE: no node has reported the dataset, so none is better than another. */
static gboolean warm_capacity(const Controller *c, const VolumeParams *params,
                              const VolumeId *location, const char *node, gint64 *capacity)
{
    WarmthOf of;
    if (!c->warmth || !params->dataset)
        return FALSE;
    g_autofree char *path = dataset_name_parent(params->dataset, location->group);
    g_autofree char *key = dataset_key(location->cluster_id, location->fs_name, path);
    if (!key || !warmth_of(c->warmth, key, node, &of))
        return FALSE;
    const int percent = (int)MIN(100.0 * (double)of.bytes / (double)of.total + 0.5, WARM_MOST);
    *capacity = (gint64)MIN((double)of.total * 100 / (100 - percent), 9e18);
    return TRUE;
}

static Csi__V1__Int64Value *size_limit(RpcCall *call, gint64 bytes)
{
    Csi__V1__Int64Value *value = rpc_alloc(call, sizeof(*value));
    if (!value)
        return NULL;
    csi__v1__int64_value__init(value);
    value->value = bytes;
    return value;
}

typedef struct Question {
    const Controller *controller;
    const Backend *backend;
    const VolumeId *location;
    const char *pool; /* NULL: the location's own */
} Question;

static gboolean ask_cluster(void *data, gint64 deadline_us, gint64 *bytes, GError **error)
{
    const Question *q = data;
    g_autoptr(Secrets) secrets = NULL;
    if (!controller_own_secrets(q->controller, q->backend, q->location->cluster_id, &secrets,
                                error))
        return FALSE;
    const ProvisionTarget at = {q->backend, q->location, secrets, deadline_us};
    return provision_capacity(&at, q->pool, bytes, error);
}

static gboolean room_of_class(Question *q, gint64 deadline_us, gint64 *bytes, GError **error)
{
    g_autofree char *where = volume_id_location_text(q->location);
    g_autofree char *pool =
        q->pool ? g_strdup_printf("%s, pool %s", where, q->pool) : g_strdup(where);
    const RoomPool of = {.cluster = q->location->cluster_id ? q->location->cluster_id : "",
                         .name = pool,
                         .ask = ask_cluster,
                         .data = q};
    return room_of(q->controller->room, &of, deadline_us, bytes, error);
}

static gboolean capacity_of_class(const Controller *c, RpcCall *call,
                                  const Csi__V1__GetCapacityRequest *r, VolumeParams *params,
                                  Csi__V1__GetCapacityResponse *out, GError **error)
{
    gboolean none;
    g_autoptr(GError) cause = NULL;
    const Backend *b = controller_backend(c, params->type, error);
    if (!b)
        return FALSE;
    /* There is no space for volumes that cannot be made. */
    if (!capability_check_supported(r->volume_capabilities, r->n_volume_capabilities, params->type,
                                    &cause))
        return TRUE;
    if (!controller_capacity_pool(c, r->accessible_topology, params, &none, error))
        return FALSE;
    if (none)
        return TRUE; /* no volume of the class is made there */
    g_autoptr(VolumeId) location = b->ops->locate(b->impl, params, error);
    if (!location)
        return FALSE;
    out->minimum_volume_size = size_limit(call, capacity_step(params->type));
    if (warm_capacity(c, params, location, node_of(r), &out->available_capacity)) {
        out->maximum_volume_size = size_limit(call, G_MAXINT64);
        return TRUE;
    }
    Question question = {c, b, location, params->data_pool ? params->data_pool : params->pool};
    if (!room_of_class(&question, controller_deadline(call), &out->available_capacity, error))
        return FALSE;
    out->maximum_volume_size =
        size_limit(call, params->dataset ? G_MAXINT64 : out->available_capacity);
    return TRUE;
}

CONTROLLER_HANDLER(controller_get_capacity)
{
    Controller *c = service;
    const Csi__V1__GetCapacityRequest *r = (const Csi__V1__GetCapacityRequest *)request;
    Csi__V1__GetCapacityResponse *out = (Csi__V1__GetCapacityResponse *)response;
    if (r->n_volume_capabilities &&
        !capability_check_form(r->volume_capabilities, r->n_volume_capabilities, error))
        return FALSE;
    if (r->n_parameters == 0) { /* all there is */
        g_autoptr(GHashTable) of_cluster =
            g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
        gboolean good = controller_each_location(c, NULL, visit_room, of_cluster,
                                                 controller_deadline(call), error);
        out->available_capacity = total(of_cluster);
        return good;
    }
    g_autoptr(GHashTable) parameters = CONTEXT_TABLE(r->parameters, r->n_parameters);
    g_autoptr(VolumeParams) params = params_parse(parameters, error);
    return params && capacity_of_class(c, call, r, params, out, error);
}
