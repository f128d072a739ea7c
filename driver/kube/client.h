/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of the Kubernetes API: JSON in, JSON out, tried again in this one place.
 *
 * What is tried again: no connection, 429 and 5xx, after Retry-After or a growing delay, for as
 * long as the request's time allows; a 401 once, with a token that was read anew. POST and PUT only
 * when the server has certainly not done them (no connection, 429, 503 with Retry-After): a second
 * POST would find AlreadyExists, a second PUT a Conflict, both of our own making. A DELETE that is
 * repeated may find NotFound. Merge patches and applies are the same done twice.
 *
 * Writes are held to a rate, so that no fault of ours floods the API server.
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

/* Takes the config over. options may be NULL. Connects when first asked. */
KubeClient *kube_client_new(KubeConfig *config, const KubeClientOptions *options);
/* No request is under way. */
void kube_client_free(KubeClient *client);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KubeClient, kube_client_free)

/* Of the pod, or the context. */
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
    unsigned tries;       /* at most; 0: what the time allows */
    gboolean urgent;      /* not held to the rate of writes */
    const char *accept;   /* NULL: application/json */
    GCancellable *cancel; /* may be NULL */
} KubeRequest;

/* *answer (may be NULL) is the caller's, and NULL when the server sent none. KUBE_ERROR.
 * Strings in it may hold NUL, after which C sees no more of them. */
gboolean kube_request(KubeClient *client, const KubeRequest *request, json_t **answer,
                      GError **error);

/* One try, whose answer's bytes go to on_bytes as they come, none (size 0) when the server begins
 * to answer; FALSE from it ends the stream with its error. TRUE: the server ended the stream. */
gboolean kube_stream(KubeClient *client, const KubeRequest *request,
                     gboolean (*on_bytes)(const char *bytes, gsize size, void *data,
                                          GError **error),
                     void *data, GError **error);

/* PATCH by server-side apply; `object` has apiVersion, kind and metadata.name. force takes fields
 * over from other managers. */
gboolean kube_apply(KubeClient *client, const char *path, const char *field_manager, gboolean force,
                    const json_t *object, gint64 timeout_ms, GCancellable *cancel, json_t **answer,
                    GError **error);

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
