/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/service/node/registration.h"
#include <string.h>
#include <sys/un.h>
#include "driver/rpc/server.h"
#include "pluginregistration.pb-c.h"

/* kubelet compares only the first number, with its own. */
#define CSI_VERSION "1.0.0"
/* kubelet waits 5 s for the answer. */
#define GRACE_MS 5000

struct Registration {
    RpcServer *server;
    char *driver_name, *endpoint;
    void (*refused)(void *data);
    void *refused_data;
};

gboolean registration_check_endpoint(const char *endpoint, GError **error)
{
    if (*endpoint == '/' && strlen(endpoint) < sizeof(((struct sockaddr_un *)NULL)->sun_path))
        return TRUE;
    return hearth_fail(
        error, HEARTH_ERROR_INVALID_ARGUMENT,
        "kubelet registration path \"%s\": give the path of the driver's socket on the "
        "host, /var/lib/kubelet/plugins/... of at most %zu bytes",
        endpoint, sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1);
}

static gboolean get_info(RpcCall *call, const ProtobufCMessage *request, ProtobufCMessage *response,
                         void *service, GError **error)
{
    (void)request, (void)error;
    const Registration *registration = service;
    Pluginregistration__PluginInfo *info = (Pluginregistration__PluginInfo *)response;
    info->type = rpc_strdup(call, "CSIPlugin");
    info->name = rpc_strdup(call, registration->driver_name);
    info->endpoint = rpc_strdup(call, registration->endpoint);
    info->supported_versions = rpc_alloc(call, sizeof(*info->supported_versions));
    if (info->supported_versions)
        info->supported_versions[info->n_supported_versions++] = rpc_strdup(call, CSI_VERSION);
    return TRUE;
}

static gboolean notify(RpcCall *call, const ProtobufCMessage *request, ProtobufCMessage *response,
                       void *service, GError **error)
{
    (void)call, (void)response, (void)error;
    const Registration *registration = service;
    const Pluginregistration__RegistrationStatus *status =
        (const Pluginregistration__RegistrationStatus *)request;
    if (status->plugin_registered) {
        g_message("kubelet has registered %s at %s", registration->driver_name,
                  registration->endpoint);
        return TRUE;
    }
    g_critical("kubelet does not register %s: %s. It looks for the driver at %s, which has to be "
               "the socket of --endpoint as the host sees it (--kubelet-registration-path), and "
               "writes what the driver tells of the node (--node-id) to its Node "
               "and CSINode",
               registration->driver_name, status->error, registration->endpoint);
    registration->refused(registration->refused_data);
    return TRUE;
}

#define ROW(name, request, response, handler)                                                      \
    {                                                                                              \
        "/pluginregistration.Registration/" name, &pluginregistration__##request##__descriptor,    \
            &pluginregistration__##response##__descriptor, handler                                 \
    }

static const RpcMethod methods[] = {
    ROW("GetInfo", info_request, plugin_info, get_info),
    ROW("NotifyRegistrationStatus", registration_status, registration_status_response, notify),
    {NULL, NULL, NULL, NULL},
};

Registration *registration_start(const RegistrationConfig *config, GError **error)
{
    g_autofree char *name = g_strconcat(config->driver_name, "-reg.sock", NULL);
    g_autofree char *path = g_build_filename(config->directory, name, NULL);
    RpcServerConfig server = {.socket_path = path, .workers = 1};
    g_autoptr(Registration) registration = g_new0(Registration, 1);
    registration->driver_name = g_strdup(config->driver_name);
    registration->endpoint = g_strdup(config->endpoint);
    registration->refused = config->refused;
    registration->refused_data = config->refused_data;
    registration->server = rpc_server_new(&server, error);
    if (!registration->server)
        return NULL;
    rpc_server_add(registration->server, methods, registration);
    if (!rpc_server_start(registration->server, error)) {
        g_prefix_error(error,
                       "to register with kubelet (--plugin-registration-path is to be kubelet's "
                       "plugins_registry): ");
        return NULL;
    }
    return g_steal_pointer(&registration);
}

void registration_stop(Registration *registration)
{
    if (!registration)
        return;
    if (!rpc_server_stop(registration->server, GRACE_MS))
        return; /* handlers that still run use it */
    g_free(registration->driver_name);
    g_free(registration->endpoint);
    g_free(registration);
}
