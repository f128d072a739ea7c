/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/service/identity.h"
#include <string.h>
#include "csi.pb-c.h"

gboolean identity_check_name(const char *name, GError **error)
{
    gsize length = strlen(name);
    gboolean good =
        length > 0 && length <= 63 && g_ascii_isalnum(name[0]) && g_ascii_isalnum(name[length - 1]);
    for (const char *p = name; good && *p; p++)
        good = g_ascii_isalnum(*p) || *p == '-' || *p == '.';
    if (!good)
        hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                    "driver name \"%s\": use a domain name of at most 63 letters, digits, '-', '.'",
                    name);
    return good;
}

static gboolean get_plugin_info(RpcCall *call, const ProtobufCMessage *request,
                                ProtobufCMessage *response, void *service, GError **error)
{
    (void)request, (void)error;
    const IdentityConfig *config = service;
    Csi__V1__GetPluginInfoResponse *r = (Csi__V1__GetPluginInfoResponse *)response;
    r->name = rpc_strdup(call, config->driver_name);
    r->vendor_version = rpc_strdup(call, config->version);
    return TRUE;
}

static gboolean get_plugin_capabilities(RpcCall *call, const ProtobufCMessage *request,
                                        ProtobufCMessage *response, void *service, GError **error)
{
    static const Csi__V1__PluginCapability__Service__Type types[] = {
        CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__CONTROLLER_SERVICE,
        CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__VOLUME_ACCESSIBILITY_CONSTRAINTS,
        CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__GROUP_CONTROLLER_SERVICE,
    };
    (void)request, (void)error;
    const IdentityConfig *config = service;
    gsize n = G_N_ELEMENTS(types) - (config->group_controller ? 0 : 1);
    Csi__V1__GetPluginCapabilitiesResponse *r = (Csi__V1__GetPluginCapabilitiesResponse *)response;
    r->capabilities = rpc_alloc(call, n * sizeof(*r->capabilities));
    for (gsize i = 0; i < n && r->capabilities; i++) {
        Csi__V1__PluginCapability *capability = rpc_alloc(call, sizeof(*capability));
        Csi__V1__PluginCapability__Service *kind = rpc_alloc(call, sizeof(*kind));
        if (!capability || !kind)
            return TRUE; /* the call ends as RESOURCE_EXHAUSTED */
        csi__v1__plugin_capability__init(capability);
        csi__v1__plugin_capability__service__init(kind);
        kind->type = types[i];
        capability->type_case = CSI__V1__PLUGIN_CAPABILITY__TYPE_SERVICE;
        capability->service = kind;
        r->capabilities[r->n_capabilities++] = capability;
    }
    return TRUE;
}

static gboolean probe(RpcCall *call, const ProtobufCMessage *request, ProtobufCMessage *response,
                      void *service, GError **error)
{
    (void)call, (void)request, (void)response; /* no `ready` means ready */
    const IdentityConfig *config = service;
    g_autoptr(GError) cause = NULL;
    if (config->probe(config->probe_data, &cause))
        return TRUE;
    /* The spec's code for a plugin that is not healthy, for whatever reason. */
    return hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION, "%s", cause->message);
}

#define ROW(name, lower, handler)                                                                  \
    {                                                                                              \
        "/csi.v1.Identity/" name, &csi__v1__##lower##_request__descriptor,                         \
            &csi__v1__##lower##_response__descriptor, handler                                      \
    }

static const RpcMethod methods[] = {
    ROW("GetPluginInfo", get_plugin_info, get_plugin_info),
    ROW("GetPluginCapabilities", get_plugin_capabilities, get_plugin_capabilities),
    ROW("Probe", probe, probe),
    {NULL, NULL, NULL, NULL},
};

const RpcMethod *identity_methods(void)
{
    return methods;
}
