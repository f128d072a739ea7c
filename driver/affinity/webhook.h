/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mutating webhook: POST /mutate--v1-pod over TLS, an AdmissionReview in and one out
 * (review.h). Off by default, for clusters before Kubernetes 1.36; deploy/webhook has what it takes
 * in the cluster. Every controller serves it, not only the one with the lease, so each watches the
 * hints by itself: all of them, as the policy does, whoever wrote them.
 *
 * It refuses no pod: what it cannot understand is 400, and the API server then makes the pod as it
 * is (failurePolicy: Ignore), as it does when nobody answers.
 *
 * Memory: 150 bytes or so a hint, and what http/server.h allows for reviews under way.
 */
#ifndef HEARTH_DRIVER_AFFINITY_WEBHOOK_H
#define HEARTH_DRIVER_AFFINITY_WEBHOOK_H

#include "driver/kube/client.h"

/* The habit of controller-runtime: verb, group, version, kind. */
#define WEBHOOK_PATH "/mutate--v1-pod"

typedef struct Webhook Webhook;

typedef struct WebhookConfig {
    const char *address;     /* http/address.h */
    const char *certificate; /* a directory: http/certificate.h */
    /* A file, PEM: only who shows a certificate of these authorities is answered. NULL: anyone who
     * reaches the port is, and can ask which dataset a claim shows. http/authorities.h. */
    const char *client_ca;
} WebhookConfig;

/* Serves when it returns. address: http/address.h; certificate: a directory, http/certificate.h.
 * client is borrowed until webhook_free(). HEARTH_ERROR names the flag or the file. */
Webhook *webhook_new(KubeClient *client, const WebhookConfig *config, GError **error);
void webhook_free(Webhook *webhook);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Webhook, webhook_free)

guint16 webhook_port(const Webhook *webhook);

#endif
