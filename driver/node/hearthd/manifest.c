/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/hearthd/manifest.h"
#include <string.h>
#include "common/field.h"
#include "proto/wire.h"
#include "proto/wire_keys.h"

/* For an answer, beyond the time that is asked to be waited. */
#define ANSWER_MS 5000

static gboolean is_dataset(const char *text)
{
    return text && strlen(text) == HEARTHD_DATASET_DIGITS &&
           strspn(text, "0123456789abcdef") == HEARTHD_DATASET_DIGITS;
}

static char *copy_string(const json_t *object, const char *name)
{
    return g_strdup(json_string_value(json_object_get(object, name)));
}

gboolean hearthd_manifest(HearthdLink *link, const char *volume, gint64 wait_ms, HearthdManifest *m,
                          GError **error)
{
    *m = (HearthdManifest){0};
    json_auto_t *request =
        json_pack("{s:s, s:s, s:I}", WIRE_KEY_OP, WIRE_OP_MANIFEST, WIRE_KEY_VOLUME, volume,
                  WIRE_KEY_WAIT_MS, (json_int_t)MAX(wait_ms, 0));
    json_auto_t *reply = hearthd_call(link, request, -1, NULL, MAX(wait_ms, 0) + ANSWER_MS, error);
    if (!reply)
        return FALSE;
    m->ready = g_strcmp0(json_string_value(json_object_get(reply, WIRE_KEY_STATE)),
                         WIRE_MANIFEST_READY) == 0;
    m->dataset = copy_string(reply, WIRE_KEY_DATASET);
    m->path = copy_string(reply, WIRE_KEY_PATH);
    m->objects = copy_string(reply, WIRE_KEY_OBJECTS);
    m->readable = json_is_true(json_object_get(reply, WIRE_KEY_READABLE));
    m->files = field_count(reply, WIRE_KEY_FILES);
    m->directories = field_count(reply, WIRE_KEY_DIRECTORIES);
    m->bytes = field_count(reply, WIRE_KEY_BYTES);
    if (!m->ready || (is_dataset(m->dataset) && m->path && m->objects))
        return TRUE;
    hearthd_manifest_clear(m);
    return hearth_fail(
        error, HEARTH_ERROR_INTERNAL,
        "hearthd's answer to \"manifest\" of volume %s lacks the dataset or its places", volume);
}

gboolean hearthd_await_manifest(HearthdLink *link, const char *volume, gint64 timeout_ms,
                                GError **error)
{
    g_auto(HearthdManifest) manifest = {0};
    if (!hearthd_manifest(link, volume, timeout_ms, &manifest, error))
        return FALSE;
    return manifest.ready ||
           hearth_fail(error, HEARTH_ERROR_ABORTED,
                       "the manifest of %s is being built again; ask again", volume);
}

json_t *hearthd_refused(HearthdLink *link, gint64 timeout_ms)
{
    json_auto_t *request = json_pack("{s:s}", WIRE_KEY_OP, WIRE_OP_REFUSED);
    json_auto_t *reply = hearthd_call(link, request, -1, NULL, timeout_ms, NULL);
    json_t *list = json_incref(json_object_get(reply, WIRE_KEY_VOLUMES));
    return list;
}

json_t *hearthd_datasets(HearthdLink *link, gint64 timeout_ms, GError **error)
{
    json_auto_t *all = json_array();
    g_autofree char *after = g_strdup("");
    for (gboolean more = TRUE; more;) {
        json_auto_t *request =
            json_pack("{s:s, s:s}", WIRE_KEY_OP, WIRE_OP_DATASETS, WIRE_KEY_AFTER, after);
        json_auto_t *page = hearthd_call(link, request, -1, NULL, timeout_ms, error);
        if (!page)
            return NULL;
        const json_t *list = json_object_get(page, WIRE_KEY_DATASETS);
        const size_t n = json_array_size(list);
        more = n && json_is_true(json_object_get(page, WIRE_KEY_MORE));
        json_array_extend(all, (json_t *)list);
        g_free(after);
        after = copy_string(n ? json_array_get(list, n - 1) : NULL, WIRE_KEY_DATASET);
        more = more && after;
    }
    return g_steal_pointer(&all);
}
