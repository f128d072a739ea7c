/* SPDX-License-Identifier: Apache-2.0 */
/* The Controller service's table of methods, and its methods about the service itself. */
#include "driver/service/controller/internal.h"

#define PROBE_MS 2000

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

static CONTROLLER_HANDLER(get_capabilities)
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
    ROW("CreateVolume", create_volume, controller_create_volume),
    ROW("DeleteVolume", delete_volume, controller_delete_volume),
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
