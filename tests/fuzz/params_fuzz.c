/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters: lines of "name=value". What is taken must survive its own JSON form, and what is
 * refused must say so in valid UTF-8. Names and sizes are exercised by the same input.
 */
#include "tests/fuzz/fuzz.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "driver/volume/name.h"
#include "driver/volume/params.h"

static void check_name(const char *text)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *name = name_backend("csi-vol-", text, 80, &error);
    if (name ? !name_is_plain(name) || strlen(name) > 80
             : !error || !g_utf8_validate(error->message, -1, NULL))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, size);
    g_autoptr(GHashTable) map = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++) {
        char *equals = strchr(*line, '=');
        guint64 bytes;
        check_name(*line);
        if (params_parse_size(*line, &bytes) && bytes > G_MAXINT64)
            abort();
        /* As on the wire: what is not UTF-8 was refused before. */
        if (equals && g_utf8_validate(*line, -1, NULL))
            g_hash_table_insert(map, g_strndup(*line, (gsize)(equals - *line)),
                                g_strdup(equals + 1));
    }
    g_autoptr(GError) error = NULL;
    g_autoptr(VolumeParams) params = params_parse(map, &error);
    if (!params) {
        if (!error || !g_utf8_validate(error->message, -1, NULL))
            abort();
        return 0;
    }
    json_t *json = params_to_json(params);
    char *dumped = json_dumps(json, 0);
    if (!dumped || (params->type == VOLUME_CEPHFS && (!params->cluster_id || !params->fs_name)))
        abort();
    free(dumped);
    json_decref(json);
    return 0;
}
