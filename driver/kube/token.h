/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bearer token we show. A service account's is a file that kubelet replaces before the old one
 * expires (after 48 minutes of an hour), so it is read anew when a minute has passed, and at once
 * when the API server refused it. A file that cannot be read for a moment leaves the token there
 * was: the API server judges it. Thread-safe.
 */
#ifndef HEARTH_DRIVER_KUBE_TOKEN_H
#define HEARTH_DRIVER_KUBE_TOKEN_H

#include <glib.h>

typedef struct KubeToken KubeToken;

/* One that never changes. NULL with CONFIG for one that no HTTP header can hold; `where` names it.
 */
KubeToken *kube_token_new(const char *token, const char *where, GError **error);
/* The file is read when first asked for. */
KubeToken *kube_token_new_file(const char *path);
void kube_token_free(KubeToken *token);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KubeToken, kube_token_free)

/* A copy, to be given to kube_token_wipe(); NULL with CONFIG. now_us is monotonic. */
char *kube_token_get(KubeToken *token, gint64 now_us, GError **error);
/* Overwrites and frees. NULL is fine. */
void kube_token_wipe(char *text);
/* The API server did not accept `refused`: whether there is another by now. */
gboolean kube_token_renew(KubeToken *token, const char *refused, gint64 now_us);

#endif
