/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls about existing volumes: expand, modify, list, get. ListVolumes and ControllerGetVolume
 * carry no secret in CSI, so they use the driver's own user. Using a connection of an earlier
 * request would make the answer depend on what happened before. The order and tokens of lists are
 * in lists.c.
 */
#include "driver/service/controller/internal.h"
#include <string.h>
#include "driver/service/capability.h"
#include "driver/service/node/condition.h"

CONTROLLER_HANDLER(controller_expand_volume)
{
    Controller *c = service;
    const Csi__V1__ControllerExpandVolumeRequest *r =
        (const Csi__V1__ControllerExpandVolumeRequest *)request;
    Csi__V1__ControllerExpandVolumeResponse *out =
        (Csi__V1__ControllerExpandVolumeResponse *)response;
    if (!r->capacity_range ||
        (r->capacity_range->required_bytes == 0 && r->capacity_range->limit_bytes == 0))
        return hearth_fail(
            error, HEARTH_ERROR_INVALID_ARGUMENT,
            "capacity_range is missing or has neither required_bytes nor limit_bytes");
    g_autoptr(GHashTable) given = CONTEXT_TABLE(r->secrets, r->n_secrets);
    gint64 deadline_us = controller_deadline(call);
    ref_auto VolumeRef ref = {0};
    Csi__V1__VolumeCapability *capabilities[] = {r->volume_capability};
    if (r->volume_capability && !capability_check_form(capabilities, 1, error))
        return FALSE;
    if (!controller_resolve(c, r->volume_id, given, deadline_us, &ref, error))
        return FALSE;
    if (r->volume_capability && !capability_check_supported(capabilities, 1, ref.id->type, error))
        return FALSE;
    g_autoptr(BusyHold) hold = busy_take(c->busy, r->volume_id, NULL, error);
    CapacityRange range = {r->capacity_range->required_bytes, r->capacity_range->limit_bytes};
    /*
     * A quota takes effect on every node at once. The file system on an image has to be grown, and
     * so has the loop device of a block volume.
     */
    out->node_expansion_required = ref.id->type == VOLUME_RBD;
    return hold && provision_expand(&ref.at, range, &out->capacity_bytes, error);
}

CONTROLLER_HANDLER(controller_modify_volume)
{
    (void)response;
    Controller *c = service;
    const Csi__V1__ControllerModifyVolumeRequest *r =
        (const Csi__V1__ControllerModifyVolumeRequest *)request;
    g_autoptr(GHashTable) given = CONTEXT_TABLE(r->secrets, r->n_secrets);
    g_autoptr(GHashTable) wanted = CONTEXT_TABLE(r->mutable_parameters, r->n_mutable_parameters);
    gint64 deadline_us = controller_deadline(call);
    ref_auto VolumeRef ref = {0};
    if (*r->volume_id && r->n_mutable_parameters == 0)
        return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                           "mutable_parameters is empty; name what is to change");
    if (!controller_resolve(c, r->volume_id, given, deadline_us, &ref, error))
        return FALSE;
    json_auto_t *changes = mutable_parse(wanted, ref.id->type, error);
    g_autoptr(BusyHold) hold = changes ? busy_take(c->busy, r->volume_id, NULL, error) : NULL;
    return hold && provision_modify(&ref.at, changes, error);
}

#define WELL "the volume is there"

/* A page: after `token` at its location, and from the start at later locations. */
typedef struct Listing {
    RpcCall *call;
    const VolumeId *token; /* NULL: from the start */
    guint max;
    Csi__V1__ListVolumesResponse *out;
    gboolean more;
} Listing;

static gboolean add_entry(Listing *l, const ProvisionEntry *entry, GError **error)
{
    RpcCall *call = l->call;
    g_autofree char *text = volume_id_encode(entry->id, error);
    if (!text)
        return FALSE;
    Csi__V1__ListVolumesResponse__Entry *e = rpc_alloc(call, sizeof(*e));
    if (!e)
        return TRUE;
    csi__v1__list_volumes_response__entry__init(e);
    e->volume = controller_volume(call, text, entry->id, entry->record, entry->volume);
    e->status = rpc_alloc(call, sizeof(*e->status));
    if (e->status) {
        csi__v1__list_volumes_response__volume_status__init(e->status);
        e->status->volume_condition = condition_new(call, NULL, WELL);
    }
    l->out->entries[l->out->n_entries++] = e;
    return TRUE;
}

/* Stops when the page is full. */
static gboolean list_location(const ProvisionTarget *location, void *data, gboolean *stop,
                              GError **error)
{
    Listing *l = data;
    int order = controller_location_order(location->id, l->token);
    if (order < 0)
        return TRUE;
    g_autoptr(GPtrArray) list = provision_list(location, order == 0 ? l->token->name : NULL,
                                               l->max - (guint)l->out->n_entries, &l->more, error);
    if (!list)
        return FALSE;
    for (guint i = 0; i < list->len; i++) {
        if (!add_entry(l, list->pdata[i], error))
            return FALSE;
    }
    *stop = l->more;
    return TRUE;
}

CONTROLLER_HANDLER(controller_list_volumes)
{
    Controller *c = service;
    const Csi__V1__ListVolumesRequest *r = (const Csi__V1__ListVolumesRequest *)request;
    Listing l = {.call = call, .out = (Csi__V1__ListVolumesResponse *)response};
    if (!controller_page(r->max_entries, &l.max, error))
        return FALSE;
    g_autoptr(VolumeId) token = NULL;
    if (*r->starting_token && !(token = volume_id_decode(r->starting_token, NULL))) {
        controller_bad_token(error);
        return FALSE;
    }
    l.token = token;
    l.out->entries = rpc_alloc(call, l.max * sizeof(*l.out->entries));
    if (l.out->entries &&
        !controller_each_location(c, NULL, list_location, &l, controller_deadline(call), error))
        return FALSE;
    if (l.more && l.out->n_entries)
        l.out->next_token = l.out->entries[l.out->n_entries - 1]->volume->volume_id;
    return TRUE;
}

CONTROLLER_HANDLER(controller_get_volume)
{
    Controller *c = service;
    const Csi__V1__ControllerGetVolumeRequest *r =
        (const Csi__V1__ControllerGetVolumeRequest *)request;
    Csi__V1__ControllerGetVolumeResponse *out = (Csi__V1__ControllerGetVolumeResponse *)response;
    g_autoptr(VolumeRecord) record = NULL;
    g_autoptr(BackendVolume) volume = NULL;
    gint64 deadline_us = controller_deadline(call);
    ref_auto VolumeRef ref = {0};
    if (!controller_resolve(c, r->volume_id, NULL, deadline_us, &ref, error) ||
        !provision_inspect(&ref.at, &record, &volume, error))
        return FALSE;
    BackendVolume gone = {0};
    out->volume = controller_volume(call, r->volume_id, ref.id, record, volume ? volume : &gone);
    out->status = rpc_alloc(call, sizeof(*out->status));
    if (!out->status)
        return TRUE; /* the call ends as RESOURCE_EXHAUSTED */
    csi__v1__controller_get_volume_response__volume_status__init(out->status);
    const char *fault = NULL;
    if (!volume && record->backing)
        fault = "the snapshot that the volume shows is gone: it was removed by something else than "
                "this driver";
    else if (!volume)
        fault = "what the volume is in Ceph is gone: it was removed by something else than this "
                "driver; restore it from a snapshot, or delete the volume";
    out->status->volume_condition = condition_new(call, fault, WELL);
    return TRUE;
}
