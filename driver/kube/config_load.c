/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the configuration: a kubeconfig (kubeconfig.c), or the service account of a pod. */
#include <string.h>
#include "driver/kube/config.h"
#include "driver/kube/error.h"

static gboolean is_number(const char *text)
{
    return *text && strspn(text, "0123456789") == strlen(text);
}

KubeConfig *kube_config_in_cluster(const char *directory, const char *host, const char *port,
                                   GError **error)
{
    if (!host || !*host || !port || !is_number(port)) {
        g_set_error(error, KUBE_ERROR, KUBE_ERROR_CONFIG,
                    "no API server is known: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT "
                    "are not set, so this is no pod; give --kubeconfig or set KUBECONFIG");
        return NULL;
    }
    g_autoptr(KubeConfig) c = g_new0(KubeConfig, 1);
    const gboolean v6 = strchr(host, ':') != NULL;
    c->server = v6 ? g_strdup_printf("https://[%s]:%s", host, port)
                   : g_strdup_printf("https://%s:%s", host, port);
    c->ca_file = g_build_filename(directory, "ca.crt", NULL);
    if (!g_file_test(c->ca_file, G_FILE_TEST_IS_REGULAR)) {
        g_set_error(error, KUBE_ERROR, KUBE_ERROR_CONFIG,
                    "%s is not there: the pod needs automountServiceAccountToken: true",
                    c->ca_file);
        return NULL;
    }
    g_autofree char *token_file = g_build_filename(directory, "token", NULL);
    c->token = kube_token_new_file(token_file);
    char *token = kube_token_get(c->token, g_get_monotonic_time(), error);
    if (!token)
        return NULL;
    kube_token_wipe(token);
    g_autofree char *namespace_file = g_build_filename(directory, "namespace", NULL);
    if (g_file_get_contents(namespace_file, &c->namespace, NULL, NULL))
        g_strstrip(c->namespace);
    if (!c->namespace || !*c->namespace) {
        g_free(c->namespace);
        c->namespace = g_strdup("default");
    }
    return g_steal_pointer(&c);
}

KubeConfig *kube_config_load(const char *kubeconfig, GError **error)
{
    const char *path = kubeconfig && *kubeconfig ? kubeconfig : g_getenv("KUBECONFIG");
    if (!path || !*path)
        return kube_config_in_cluster(KUBE_SERVICE_ACCOUNT, g_getenv("KUBERNETES_SERVICE_HOST"),
                                      g_getenv("KUBERNETES_SERVICE_PORT"), error);
    return kube_config_read(path, error);
}
