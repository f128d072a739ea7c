/* SPDX-License-Identifier: Apache-2.0 */
/*
 * {"version": 1, "kind": "snapshot", "requestName", "source": {"group", "name", "path", "handle"},
 * "bytes", "created": "<UTC>", "groupSnapshot": "<name>" (absent for one on its own)}; the handle
 * is of a volume of ceph-csi
 */
#include "driver/volume/snapshot_record.h"
#include <jansson.h>
#include <string.h>

#define RECORD_VERSION 1
#define KEY_PREFIX "snap."

void snapshot_record_free(SnapshotRecord *record)
{
    if (!record)
        return;
    g_free(record->request_name);
    g_free(record->source_group);
    g_free(record->source_name);
    g_free(record->source_handle);
    g_free(record->source_path);
    g_free(record->group_snapshot);
    g_free(record);
}

char *snapshot_record_key(const char *name)
{
    return g_strconcat(KEY_PREFIX, name, NULL);
}

const char *snapshot_record_key_name(const char *key)
{
    return g_str_has_prefix(key, KEY_PREFIX) ? key + strlen(KEY_PREFIX) : NULL;
}

char *snapshot_record_encode(const char *request_name, const VolumeId *source,
                             const char *source_path, gint64 bytes, const char *group_snapshot)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autofree char *created = g_date_time_format(now, "%Y-%m-%dT%H:%M:%SZ");
    json_auto_t *root =
        json_pack("{s:i, s:s, s:s, s:{s:s, s:s, s:s*, s:s*}, s:I, s:s}", "version", RECORD_VERSION,
                  "kind", "snapshot", "requestName", request_name, "source", "group",
                  source->group ? source->group : "", "name", source->name, "path", source_path,
                  "handle", source->handle, "bytes", (json_int_t)bytes, "created", created);
    if (group_snapshot)
        json_object_set_new(root, "groupSnapshot", json_string(group_snapshot));
    char *dumped = json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS);
    char *text = g_strdup(dumped);
    free(dumped);
    return text;
}

SnapshotRecord *snapshot_record_decode(const char *name, const char *text, gsize length,
                                       GError **error)
{
    json_error_t at;
    json_auto_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &at);
    json_int_t version = json_integer_value(json_object_get(root, "version"));
    const char *kind = json_string_value(json_object_get(root, "kind"));
    const char *request_name = json_string_value(json_object_get(root, "requestName"));
    const json_t *source = json_object_get(root, "source");
    const char *group = json_string_value(json_object_get(source, "group"));
    const char *volume = json_string_value(json_object_get(source, "name"));
    json_int_t bytes = json_integer_value(json_object_get(root, "bytes"));
    const char *created = json_string_value(json_object_get(root, "created"));
    g_autoptr(GDateTime) time = created ? g_date_time_new_from_iso8601(created, NULL) : NULL;
    SnapshotRecord *record = NULL;
    if (version > RECORD_VERSION) {
        hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                    "record snap.%s has format %d, this driver knows %d; run a later version", name,
                    (int)version, RECORD_VERSION);
    } else if (version < 1 || g_strcmp0(kind, "snapshot") != 0 || !request_name || !group ||
               !volume || bytes <= 0 || !time) {
        hearth_fail(error, HEARTH_ERROR_INTERNAL,
                    "record snap.%s is damaged; look at it (rados -N hearth get), and put it right "
                    "or remove it",
                    name);
    } else {
        record = g_new0(SnapshotRecord, 1);
        record->request_name = g_strdup(request_name);
        record->source_group = g_strdup(group);
        record->source_name = g_strdup(volume);
        record->source_handle = g_strdup(json_string_value(json_object_get(source, "handle")));
        record->source_path = g_strdup(json_string_value(json_object_get(source, "path")));
        record->group_snapshot =
            g_strdup(json_string_value(json_object_get(root, "groupSnapshot")));
        record->bytes = bytes;
        record->created = g_date_time_to_unix(time);
    }
    return record;
}
