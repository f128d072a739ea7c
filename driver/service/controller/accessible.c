/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the pool of topologyConstrainedPools for a volume: the first pool that fits one of the
 * preferred topologies, in their order, then one of the requisite ones. A volume that an earlier
 * call has begun stays in its pool, and a copy is made in its source's; if that pool is not
 * accessible, the scheduler has to choose another node.
 */
#include <string.h>
#include "driver/service/controller/internal.h"
#include "driver/service/node/domains.h"

void controller_set_domains(Controller *c, const char *driver_name, char *const *labels)
{
    g_free(c->domain_prefix);
    c->domain_prefix = domains_prefix(driver_name);
    if (c->domains)
        g_ptr_array_unref(c->domains);
    c->domains = g_ptr_array_new_with_free_func(g_free);
    for (; *labels; labels++)
        g_ptr_array_add(c->domains, g_strdup(domains_name(*labels)));
}

static gboolean is_known_label(const Controller *c, const char *label)
{
    for (guint i = 0; i < c->domains->len; i++) {
        if (strcmp(c->domains->pdata[i], label) == 0)
            return TRUE;
    }
    return FALSE;
}

static gboolean check_labels(const Controller *c, const GPtrArray *pools, GError **error)
{
    if (!c->domains)
        return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                           "topologyConstrainedPools needs the labels of nodes that it goes by: "
                           "start controller and node plugins with --domainlabels");
    for (guint i = 0; i < pools->len; i++) {
        const TopologyPool *pool = pools->pdata[i];
        GHashTableIter iter;
        gpointer label;
        g_hash_table_iter_init(&iter, pool->segments);
        while (g_hash_table_iter_next(&iter, &label, NULL)) {
            if (!is_known_label(c, label))
                return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                                   "topologyConstrainedPools: domainLabel \"%.64s\" of pool %s is "
                                   "not the name of a label in --domainlabels",
                                   (const char *)label, pool->pool);
        }
    }
    return TRUE;
}

/* The domains of a topology, label -> value, borrowed. */
static GHashTable *domains_of(const Controller *c, const Csi__V1__Topology *topology)
{
    GHashTable *domains = g_hash_table_new(g_str_hash, g_str_equal);
    const gsize length = strlen(c->domain_prefix);
    for (gsize i = 0; topology && i < topology->n_segments; i++) {
        const Csi__V1__Topology__SegmentsEntry *entry = topology->segments[i];
        if (g_str_has_prefix(entry->key, c->domain_prefix))
            g_hash_table_insert(domains, entry->key + length, entry->value);
    }
    return domains;
}

static const TopologyPool *find_pool(const Controller *c, const GPtrArray *pools, const char *only,
                                     Csi__V1__Topology *const *topologies, gsize n)
{
    for (gsize i = 0; i < n; i++) {
        g_autoptr(GHashTable) domains = domains_of(c, topologies[i]);
        for (guint k = 0; k < pools->len; k++) {
            const TopologyPool *pool = pools->pdata[k];
            if ((!only || strcmp(pool->pool, only) == 0) && topology_pool_fits(pool, domains))
                return pool;
        }
    }
    return NULL;
}

static void set_pools(VolumeParams *params, const TopologyPool *pool)
{
    g_free(params->pool);
    g_free(params->data_pool);
    params->pool = g_strdup(pool->pool);
    params->data_pool = g_strdup(pool->data_pool);
}

/* The pool of a source of ours, borrowed of the class's; NULL for one that has it elsewhere, whose
 * copy does not depend on it (driver/backend/rbd/clone.c). */
static const char *source_pool(const GPtrArray *pools, const Csi__V1__VolumeContentSource *from)
{
    g_autoptr(VolumeId) id = NULL;
    if (from && from->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT)
        id = snapshot_id_decode(from->snapshot->snapshot_id, NULL);
    else if (from && from->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME)
        id = volume_id_decode(from->volume->volume_id, NULL);
    for (guint i = 0; id && i < pools->len; i++) {
        const TopologyPool *pool = pools->pdata[i];
        if (g_strcmp0(pool->pool, id->pool) == 0)
            return pool->pool;
    }
    return NULL;
}

/* The pool in which the request's volume has been begun, borrowed; NULL: in none. */
static gboolean find_begun(const Creation *n, const Secrets *secrets, const char **begun,
                           GError **error)
{
    const GPtrArray *pools = n->params->topology_pools;
    *begun = NULL;
    for (guint i = 0; i < pools->len && !*begun; i++) {
        const TopologyPool *pool = pools->pdata[i];
        VolumeParams there = *n->params;
        gboolean recorded = FALSE;
        g_autofree char *text = NULL;
        there.pool = pool->pool;
        g_autoptr(VolumeId) id =
            controller_location(n->backend, &there, n->request->name, &text, error);
        const ProvisionTarget at = {n->backend, id, secrets, n->deadline_us};
        if (!id || !provision_recorded(&at, &recorded, error))
            return FALSE;
        if (recorded)
            *begun = pool->pool;
    }
    return TRUE;
}

gboolean controller_choose_pool(const Creation *n, const TopologyPool **chosen, GError **error)
{
    const Controller *c = n->controller;
    const Csi__V1__CreateVolumeRequest *r = n->request;
    VolumeParams *params = n->params;
    const GPtrArray *pools = params->topology_pools;
    const Csi__V1__TopologyRequirement *wanted = r->accessibility_requirements;
    g_autoptr(Secrets) secrets = NULL;
    const char *begun = NULL;
    *chosen = NULL;
    if (!pools)
        return TRUE;
    if (!check_labels(c, pools, error))
        return FALSE;
    if (!wanted || wanted->n_preferred + wanted->n_requisite == 0)
        return params->pool ||
               hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                           "the request says nothing of where the volume is to be accessible, and "
                           "the class has no pool beside topologyConstrainedPools: use "
                           "volumeBindingMode: WaitForFirstConsumer, or add a pool");
    if (!controller_secrets(n->backend, n->given, &secrets, error) ||
        !find_begun(n, secrets, &begun, error))
        return FALSE;
    const char *of_source = source_pool(pools, r->volume_content_source);
    const char *only = begun ? begun : of_source;
    const TopologyPool *pool = find_pool(c, pools, only, wanted->preferred, wanted->n_preferred);
    if (!pool)
        pool = find_pool(c, pools, only, wanted->requisite, wanted->n_requisite);
    if (!pool && only)
        return hearth_fail(error, HEARTH_ERROR_RESOURCE_EXHAUSTED,
                           "volume %s %s pool %s, which topologyConstrainedPools does not give to "
                           "the topologies asked for; another node may do",
                           r->name, begun ? "has been begun in" : "is copied from", only);
    if (!pool)
        return hearth_fail(error, HEARTH_ERROR_RESOURCE_EXHAUSTED,
                           "volume %s: no pool of topologyConstrainedPools is given to any of the "
                           "topologies asked for; see the labels of nodes",
                           r->name);
    set_pools(params, pool);
    *chosen = pool;
    return TRUE;
}

gboolean controller_capacity_pool(const Controller *c, const Csi__V1__Topology *topology,
                                  VolumeParams *params, gboolean *none, GError **error)
{
    *none = FALSE;
    if (!params->topology_pools || !topology)
        return TRUE;
    if (!check_labels(c, params->topology_pools, error))
        return FALSE;
    Csi__V1__Topology *topologies[] = {(Csi__V1__Topology *)topology};
    const TopologyPool *pool = find_pool(c, params->topology_pools, NULL, topologies, 1);
    *none = !pool;
    if (pool)
        set_pools(params, pool);
    return TRUE;
}

void controller_accessible(const Controller *c, RpcCall *call, const TopologyPool *pool,
                           Csi__V1__Volume *volume)
{
    if (!pool || !volume)
        return;
    Csi__V1__Topology *topology = rpc_alloc(call, sizeof(*topology));
    Csi__V1__Topology **list = rpc_alloc(call, sizeof(Csi__V1__Topology *));
    Csi__V1__Topology__SegmentsEntry **segments =
        rpc_alloc(call, g_hash_table_size(pool->segments) * sizeof(*segments));
    if (!topology || !list || !segments)
        return; /* the call ends as RESOURCE_EXHAUSTED */
    csi__v1__topology__init(topology);
    topology->segments = segments;
    GHashTableIter iter;
    gpointer label, value;
    g_hash_table_iter_init(&iter, pool->segments);
    while (g_hash_table_iter_next(&iter, &label, &value)) {
        Csi__V1__Topology__SegmentsEntry *entry = rpc_alloc(call, sizeof(*entry));
        if (!entry)
            return;
        g_autofree char *key = g_strconcat(c->domain_prefix, label, NULL);
        csi__v1__topology__segments_entry__init(entry);
        entry->key = rpc_strdup(call, key);
        entry->value = rpc_strdup(call, value);
        segments[topology->n_segments++] = entry;
    }
    list[0] = topology;
    volume->accessible_topology = list;
    volume->n_accessible_topology = 1;
}
