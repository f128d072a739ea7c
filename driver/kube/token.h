/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our bearer token. That of a service account is a file that kubelet replaces before it expires
 * (after 48 minutes of an hour). So it is read again after a minute, and at once when the API
 * server has refused it. When the file cannot be read the old token is kept, and the API server
 * decides. Thread-safe.
 */
#ifndef HEARTH_DRIVER_KUBE_TOKEN_H
#define HEARTH_DRIVER_KUBE_TOKEN_H

#include <glib.h>

typedef struct KubeToken KubeToken;

/* A token that never changes. NULL with CONFIG when an HTTP header cannot hold it; `where` names
 * it.
 */
KubeToken *kube_token_new(const char *token, const char *where, GError **error);
/* The file is read by the first kube_token_get(). */
KubeToken *kube_token_new_file(const char *path);
void kube_token_free(KubeToken *token);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KubeToken, kube_token_free)

/* A copy, to be given to kube_token_wipe(); NULL with CONFIG. now_us is monotonic. */
char *kube_token_get(KubeToken *token, gint64 now_us, GError **error);
/* Overwrites and frees. NULL is fine. */
void kube_token_wipe(char *text);
/* The API server has refused this token: whether there is another now. */
gboolean kube_token_renew(KubeToken *token, const char *refused, gint64 now_us);

#endif
