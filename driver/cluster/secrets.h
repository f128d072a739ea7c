/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Ceph user of a request, from the secrets ceph-csi uses: userID/userKey, adminID/adminKey.
 * Copies are wiped when freed. No function here puts a key into an error.
 */
#ifndef HEARTH_DRIVER_CLUSTER_SECRETS_H
#define HEARTH_DRIVER_CLUSTER_SECRETS_H

#include <glib.h>
#include "common/error.h"

typedef struct Secrets {
    char *user; /* without "client." */
    char *key;
} Secrets;

/* ceph-csi gives the controller adminID first and the node userID first; both fall back. */
typedef enum SecretsPrefer { SECRETS_PREFER_ADMIN, SECRETS_PREFER_USER } SecretsPrefer;

/* `map` is name -> value. INVALID_ARGUMENT names the missing key and where it comes from. */
Secrets *secrets_new(GHashTable *map, SecretsPrefer prefer, GError **error);
void secrets_free(Secrets *secrets);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Secrets, secrets_free)

/* Overwrites and frees. NULL is fine. */
void secrets_wipe(char *text);

#endif
