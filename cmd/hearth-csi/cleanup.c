/* SPDX-License-Identifier: Apache-2.0 */
/* hearth-csi cleanup: removes from Kubernetes what an uninstall of Hearth leaves behind. */
#include "cmd/hearth-csi/cleanup.h"
#include <stdio.h>
#include "driver/warmth/cleanup.h"

static const char about[] =
    "Removes what an uninstall leaves in Kubernetes: the node labels warm.csi.hearth.dev/ and\n"
    "topology.csi.hearth.dev/, NodeCaches and DatasetHints. Run it after the last controller and\n"
    "node plugin have ended. It changes nothing in Ceph, and no volume.\n\n"
    "Exit status: 0 done; 1 not all of it; 2 wrong usage.";

static int failed(const GError *error, int status)
{
    fprintf(stderr, "hearth-csi cleanup: %s\n", error->message);
    return status;
}

int cleanup_main(int argc, char **argv)
{
    g_autofree char *kubeconfig = NULL;
    g_autoptr(GError) error = NULL;
    const GOptionEntry entries[] = {
        {"kubeconfig", 0, 0, G_OPTION_ARG_FILENAME, &kubeconfig,
         "How to reach Kubernetes (KUBECONFIG, else the pod's service account)", "FILE"},
        {NULL, 0, 0, 0, NULL, NULL, NULL}};
    g_autoptr(GOptionContext) context = g_option_context_new("");
    g_option_context_set_summary(context, about);
    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &error))
        return failed(error, 2);
    if (argc > 1) {
        fprintf(stderr, "hearth-csi cleanup: \"%s\": it takes no arguments\n", argv[1]);
        return 2;
    }
    KubeConfig *config = kube_config_load(kubeconfig, &error);
    if (!config)
        return failed(error, 2);
    g_autoptr(KubeClient) client = kube_client_new(config, NULL);
    WarmCleanup done;
    gboolean good = warm_cleanup(client, &done, &error);
    printf("%u nodes freed of labels, %u NodeCaches and %u DatasetHints deleted\n", done.nodes,
           done.node_caches, done.hints);
    return good ? 0 : failed(error, 1);
}
