/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address of the API server and our identity: in a pod from its service account, elsewhere from
 * a kubeconfig. Unsupported members (exec plugins, passwords, impersonation) are errors that name
 * them, so no request goes out with another identity. Keys stay in memory: none is written to a
 * file for a library.
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
    gboolean insecure; /* the certificate is not checked */
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
/* Parses the text of a kubeconfig; relative file names are relative to `path`, which errors name.
 */
KubeConfig *kube_config_parse(const char *text, gsize size, const char *path, GError **error);
void kube_config_free(KubeConfig *config);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KubeConfig, kube_config_free)

#endif
