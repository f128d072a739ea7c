/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Secret made with `echo` ends with a newline, and an ID is often given as "client.x". Both are
 * accepted, and mean the user without them.
 */
#include "driver/cluster/secrets.h"
#include <string.h>
#include "driver/cluster/ceph_key.h"

typedef struct Pair {
    const char *id, *key;
} Pair;

void secrets_wipe(char *text)
{
    if (!text)
        return;
    explicit_bzero(text, strlen(text));
    g_free(text);
}

void secrets_free(Secrets *secrets)
{
    if (!secrets)
        return;
    g_free(secrets->user);
    secrets_wipe(secrets->key);
    g_free(secrets);
}

static gboolean valid(const char *text)
{
    if (!*text || !g_utf8_validate(text, -1, NULL))
        return FALSE;
    for (const char *p = text; *p; p++) {
        if (g_ascii_iscntrl(*p) || *p == ' ')
            return FALSE;
    }
    return TRUE;
}

/* A trimmed copy, or NULL with the error. */
static char *copy_value(GHashTable *map, const char *name, const char *partner, GError **error)
{
    const char *value = g_hash_table_lookup(map, name);
    if (!value) {
        hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                    "the secret has \"%s\" but no \"%s\"; add it to the Kubernetes Secret that the "
                    "StorageClass names",
                    partner, name);
        return NULL;
    }
    char *copy = g_strstrip(g_strdup(value));
    if (!valid(copy)) {
        secrets_wipe(copy);
        hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                    "secret key \"%s\" is empty or has blanks or control characters", name);
        return NULL;
    }
    return copy;
}

/* Ceph's libraries print a key they cannot decode to stderr, so none may reach them. */
static gboolean is_usable(const char *key, const char *name, const char *user, GError **error)
{
    CephVersion version;
    const CephKeyType type = ceph_key_type(key);
    if (type == CEPH_KEY_BAD)
        return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                           "\"%s\" in the secret is no Ceph key; use what `ceph auth print-key "
                           "client.%s` prints",
                           name, user);
    if (type != CEPH_KEY_AES256K || !ceph_library_version(&version) ||
        ceph_version_has_aes256k(version))
        return TRUE;
    return hearth_fail(
        error, HEARTH_ERROR_FAILED_PRECONDITION,
        "\"%s\" in the secret is a key of type aes256k, which Ceph's libraries %d.%d.%d here "
        "do not know; use an image of Hearth with those of " CEPH_VERSIONS_WITH_AES256K " or later",
        name, version.major, version.minor, version.patch);
}

Secrets *secrets_new(GHashTable *map, SecretsPrefer prefer, GError **error)
{
    static const Pair admin = {"adminID", "adminKey"}, user = {"userID", "userKey"};
    const Pair *order[] = {&user, &admin};
    if (prefer == SECRETS_PREFER_ADMIN) {
        order[0] = &admin;
        order[1] = &user;
    }
    for (guint i = 0; i < G_N_ELEMENTS(order); i++) {
        const Pair *p = order[i];
        if (!map || (!g_hash_table_contains(map, p->id) && !g_hash_table_contains(map, p->key)))
            continue;
        g_autoptr(Secrets) secrets = g_new0(Secrets, 1);
        g_autofree char *id = copy_value(map, p->id, p->key, error);
        if (!id)
            return NULL;
        secrets->user = g_strdup(g_str_has_prefix(id, "client.") ? id + 7 : id);
        secrets->key = copy_value(map, p->key, p->id, error);
        if (!secrets->key)
            return NULL;
        if (!is_usable(secrets->key, p->key, secrets->user, error))
            return NULL;
        return g_steal_pointer(&secrets);
    }
    hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                "the request has no secret with userID and userKey (or adminID and adminKey); name "
                "one in the StorageClass by csi.storage.k8s.io/provisioner-secret-name and "
                "-namespace");
    return NULL;
}
