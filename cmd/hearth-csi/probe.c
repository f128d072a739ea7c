/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hearth-csi probe: for kubelet's probes of a plugin, instead of a sidecar with livenessprobe. A
 * plugin that answers that Ceph or hearthd is missing is alive: a restart would not help. It is
 * only not ready.
 */
#include "cmd/hearth-csi/probe.h"
#include <stdio.h>
#include <string.h>
#include "csi.pb-c.h"
#include "common/error.h"
#include "driver/rpc/client.h"

/* Longer than a plugin takes to find out that Ceph or hearthd is missing. */
#define TIMEOUT_MS 10000

static const char about[] =
    "Asks the plugin behind the socket whether it is alive. For probes of Kubernetes.\n\n"
    "Exit status: 0 it answers, and with --ready, that it is ready; 1 it does not; 2 wrong usage.";

static gboolean answered(const GError *error)
{
    return error->domain == HEARTH_ERROR && error->code != HEARTH_ERROR_DEADLINE_EXCEEDED;
}

int probe_main(int argc, char **argv)
{
    g_autofree char *endpoint = NULL;
    gboolean ready = FALSE;
    g_autoptr(GError) error = NULL;
    const GOptionEntry entries[] = {
        {"endpoint", 0, 0, G_OPTION_ARG_STRING, &endpoint,
         "The plugin's socket (CSI_ENDPOINT, else unix:///csi/csi.sock)", "unix://PATH"},
        {"ready", 0, 0, G_OPTION_ARG_NONE, &ready, "Also require that it is ready", NULL},
        {NULL, 0, 0, 0, NULL, NULL, NULL}};
    g_autoptr(GOptionContext) context = g_option_context_new("");
    g_option_context_set_summary(context, about);
    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &error) || argc > 1) {
        fprintf(stderr, "hearth-csi probe: %s\n", error ? error->message : "it takes no arguments");
        return 2;
    }
    const char *given = endpoint ? endpoint : g_getenv("CSI_ENDPOINT");
    const char *path = given && *given ? given : "unix:///csi/csi.sock";
    if (g_str_has_prefix(path, "unix://"))
        path += strlen("unix://");
    g_autoptr(RpcClient) client = rpc_client_connect(path, &error);
    Csi__V1__ProbeRequest request = CSI__V1__PROBE_REQUEST__INIT;
    ProtobufCMessage *response =
        client ? rpc_client_call(client, "/csi.v1.Identity/Probe", &request.base,
                                 &csi__v1__probe_response__descriptor, TIMEOUT_MS, &error)
               : NULL;
    if (response) {
        protobuf_c_message_free_unpacked(response, NULL);
        return 0;
    }
    fprintf(stderr, "%s\n", error->message);
    return !ready && answered(error) ? 0 : 1;
}
