/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the API server is and who we are: in a pod from its service account, elsewhere from
 * a kubeconfig. What we do not speak (exec plugins, passwords, impersonation) is an error that
 * names it, never a request that goes out as someone else. Keys stay in memory: none is written to
 * a file for a library's sake.
 *
 * Sources: Kubernetes documentation, "Accessing the Kubernetes API from a Pod" and "kubeconfig
 * (v1)".
 */
#ifndef HEARTH_DRIVER_KUBE_CONFIG_H
#define HEARTH_DRIVER_KUBE_CONFIG_H

#include <glib.h>
#include "driver/kube/token.h"

typedef struct KubeConfig {
    char *server;    /* http[s]://HOST:PORT[/PATH], without a slash at the end */
    char *namespace; /* of the pod or the context; "default" when none is named */
    /* A file or its contents; neither: the system's authorities. */
    char *ca_file;
    GBytes *ca_data;
    gboolean insecure; /* any certificate will do */
    KubeToken *token;  /* NULL: none */
    /* A file or its contents (PEM); neither: no certificate of ours. */
    char *cert_file, *key_file;
    GBytes *cert_data, *key_data; /* the key is wiped when freed */
} KubeConfig;

#define KUBE_SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

/*
 * kubeconfig (may be NULL), else $KUBECONFIG, else the pod's service account. CONFIG names the file
 * and key, or what is missing.
 */
KubeConfig *kube_config_load(const char *kubeconfig, GError **error);
/* directory: KUBE_SERVICE_ACCOUNT, or a test's; host and port as $KUBERNETES_SERVICE_* give them.
 */
KubeConfig *kube_config_in_cluster(const char *directory, const char *host, const char *port,
                                   GError **error);
KubeConfig *kube_config_read(const char *path, GError **error);
/* Of a kubeconfig's text; `path` is where relative file names start, and is named by errors. */
KubeConfig *kube_config_parse(const char *text, gsize size, const char *path, GError **error);
void kube_config_free(KubeConfig *config);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KubeConfig, kube_config_free)

#endif
