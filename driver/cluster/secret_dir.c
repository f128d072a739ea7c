/* SPDX-License-Identifier: Apache-2.0 */
/* The files are read into a map like a request's secrets, so that both follow one rule. */
#include "driver/cluster/secret_dir.h"
#include <string.h>

static void wipe(gpointer text)
{
    secrets_wipe(text);
}

/* The files there are among the keys of a Secret. */
static GHashTable *read_keys(const char *dir)
{
    static const char *const names[] = {"userID", "userKey", "adminID", "adminKey"};
    GHashTable *map = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, wipe);
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = g_build_filename(dir, names[i], NULL);
        char *text = NULL;
        if (g_file_get_contents(path, &text, NULL, NULL))
            g_hash_table_insert(map, (gpointer)names[i], text);
    }
    return map;
}

Secrets *secret_dir_read(const char *dir, const char *cluster_id, GError **error)
{
    g_autoptr(GHashTable) map = NULL;
    if (cluster_id && !strchr(cluster_id, '/') && cluster_id[0] != '.') {
        g_autofree char *own = g_build_filename(dir, cluster_id, NULL);
        map = read_keys(own);
        if (g_hash_table_size(map) == 0)
            g_clear_pointer(&map, g_hash_table_unref);
    }
    if (!map)
        map = read_keys(dir);
    g_autoptr(GError) cause = NULL;
    Secrets *secrets = secrets_new(map, SECRETS_PREFER_ADMIN, &cause);
    if (!secrets)
        hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                    "--secret-dir=%s has no usable user for cluster %s (%s); mount the "
                    "provisioner's Secret there",
                    dir, cluster_id ? cluster_id : "(any)", cause->message);
    return secrets;
}
