/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mutating webhook: POST /mutate--v1-pod over TLS, an AdmissionReview in and one out
 * (review.h). Off by default, for clusters before Kubernetes 1.36; deploy/webhook has its
 * manifests. Every controller serves it, not only the one with the lease, so each watches all hints
 * itself, as the policy does, including hints that Hearth did not write.
 *
 * It refuses no pod: it answers malformed requests with 400, and the API server then creates the
 * pod unchanged (failurePolicy: Ignore), as it does when there is no answer.
 *
 * Memory: about 150 bytes for each hint, and what http/server.h allows for reviews under way.
 */
#ifndef HEARTH_DRIVER_AFFINITY_WEBHOOK_H
#define HEARTH_DRIVER_AFFINITY_WEBHOOK_H

#include "driver/kube/client.h"

/* The path has the form that controller-runtime uses: verb, group, version, kind. */
#define WEBHOOK_PATH "/mutate--v1-pod"

typedef struct Webhook Webhook;

typedef struct WebhookConfig {
    const char *address;     /* http/address.h */
    const char *certificate; /* a directory: http/certificate.h */
    /* A file, PEM: only clients with a certificate of these authorities are answered. NULL: every
     * client is, and can ask which dataset a claim shows. http/authorities.h. */
    const char *client_ca;
} WebhookConfig;

/* Serves when it returns. address: http/address.h; certificate: a directory, http/certificate.h.
 * client is borrowed until webhook_free(). HEARTH_ERROR names the flag or the file. */
Webhook *webhook_new(KubeClient *client, const WebhookConfig *config, GError **error);
void webhook_free(Webhook *webhook);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Webhook, webhook_free)

guint16 webhook_port(const Webhook *webhook);

#endif
