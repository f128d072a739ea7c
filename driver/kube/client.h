/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of the Kubernetes API: JSON in, JSON out. Only this file tries a request again:
 *   - without a connection, after 429 and 5xx: after Retry-After or a growing delay, as long as the
 *     request's time allows;
 *   - after 401: once, with a token that was read again;
 *   - POST and PUT only when the server has certainly not done them (no connection, 429, 503 with
 *     Retry-After): a second POST would find AlreadyExists, a second PUT a Conflict, both caused by
 *     us. A repeated DELETE may find NotFound. Merge patches and applies can be done twice.
 *
 * The rate of writes is limited, so that a bug of ours cannot flood the API server.
 */
#ifndef HEARTH_DRIVER_KUBE_CLIENT_H
#define HEARTH_DRIVER_KUBE_CLIENT_H

#include <gio/gio.h>
#include <jansson.h>
#include "driver/kube/config.h"

/* Thread-safe. */
typedef struct KubeClient KubeClient;

typedef struct KubeClientOptions {
    double writes_per_second; /* 0: 10 */
    double write_burst;       /* 0: 20 */
    gsize answer_max;         /* bytes of one answer; 0: 16 MiB */
} KubeClientOptions;

/* Takes the config over. options may be NULL. Connects at the first request. */
KubeClient *kube_client_new(KubeConfig *config, const KubeClientOptions *options);
/* No request is under way. */
void kube_client_free(KubeClient *client);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KubeClient, kube_client_free)

/* The namespace of the pod, or of the context. */
const char *kube_client_namespace(const KubeClient *client);

typedef enum KubeBody {
    KUBE_BODY_JSON,
    KUBE_BODY_MERGE_PATCH, /* RFC 7386 */
    KUBE_BODY_APPLY,       /* server-side apply: takes ?fieldManager, ?force */
} KubeBody;

typedef struct KubeRequest {
    const char *method;       /* GET POST PUT PATCH DELETE: a literal, which the counts keep */
    const char *path;         /* kube_path() */
    const char *const *query; /* name, value, ..., NULL; escaped here. NULL: none */
    const json_t *body;       /* NULL: none */
    KubeBody body_type;
    gint64 timeout_ms;    /* with all tries; 0: 30 s */
    unsigned tries;       /* at most; 0: as many as the time allows */
    gboolean urgent;      /* the rate of writes does not apply */
    const char *accept;   /* NULL: application/json */
    GCancellable *cancel; /* may be NULL */
} KubeRequest;

/* *answer (may be NULL) is the caller's, and NULL when the server sent none. KUBE_ERROR.
 * Strings in it may hold NUL, after which C sees no more of them. */
gboolean kube_request(KubeClient *client, const KubeRequest *request, json_t **answer,
                      GError **error);

/* One try. The bytes of the answer go to on_bytes as they arrive, and size 0 when the server begins
 * to answer; FALSE from on_bytes ends the stream with its error. TRUE: the server ended the stream.
 */
gboolean kube_stream(KubeClient *client, const KubeRequest *request,
                     gboolean (*on_bytes)(const char *bytes, gsize size, void *data,
                                          GError **error),
                     void *data, GError **error);

/* PATCH by server-side apply; the body has apiVersion, kind and metadata.name. force takes fields
 * over from other managers. The request's method, query and type of body are set here. */
gboolean kube_apply(KubeClient *client, const KubeRequest *request, const char *field_manager,
                    gboolean force, json_t **answer, GError **error);

/* PATCH by merge patch. */
gboolean kube_merge_patch(KubeClient *client, const char *path, const json_t *body,
                          gint64 timeout_ms, GCancellable *cancel, GError **error);

/* For metrics: each try by method and HTTP status, 0 when none came. Called with no lock held. */
void kube_client_each_count(KubeClient *client,
                            void (*each)(const char *method, int status, guint64 count, void *data),
                            void *data);

/* Waits; FALSE with CANCELLED when it is cancelled first. */
gboolean kube_pause(gint64 ms, GCancellable *cancel, GError **error);

#endif
