/* SPDX-License-Identifier: Apache-2.0 */
/*
 * {"version": 1, "kind": "volume", "requestName", "group", "bytes", "parameters": {...},
 *  "source": "<ID>", "sourceAt": "<ID>", "backing": {"group", "name", "snapshot", "path"},
 *  "mutable": {...},
 *  "claim": {"pv", "pvc", "namespace"}, "created": "<UTC>", "first": "<NAME>"}; the source is
 * absent for a volume that starts empty, the backing for one with bytes of its own; the claim is
 * for people. Version 2 has "moved": "<NAME>", too: the volume has that name and a record under it.
 */
#include "driver/volume/record.h"
#include <string.h>

#define RECORD_VERSION 1
#define RECORD_VERSION_MOVED 2
#define KEY_PREFIX "vol."

char *volume_record_key(const char *name)
{
    return g_strconcat(KEY_PREFIX, name, NULL);
}

const char *volume_record_key_name(const char *key)
{
    return g_str_has_prefix(key, KEY_PREFIX) ? key + strlen(KEY_PREFIX) : NULL;
}

void volume_backing_free(VolumeBacking *backing)
{
    if (!backing)
        return;
    g_free(backing->group);
    g_free(backing->name);
    g_free(backing->snapshot);
    g_free(backing->path);
    g_free(backing);
}

void volume_record_free(VolumeRecord *record)
{
    if (!record)
        return;
    g_free(record->name);
    g_free(record->request_name);
    g_free(record->moved);
    g_free(record->first);
    g_free(record->group);
    g_free(record->source);
    g_free(record->source_at);
    g_clear_pointer(&record->params, json_decref);
    g_clear_pointer(&record->changes, json_decref);
    volume_backing_free(record->backing);
    g_free(record->pv);
    g_free(record->pvc);
    g_free(record->namespace);
    g_free(record);
}

static void set_text(json_t *object, const char *name, const char *value)
{
    if (value)
        json_object_set_new(object, name, json_string(value));
}

/* As g_malloc() has it; the caller's. */
static char *text_of(const json_t *root)
{
    char *dumped = json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS);
    char *text = g_strdup(dumped);
    free(dumped);
    return text;
}

char *volume_record_encode(const VolumeRequest *r, const VolumeBacking *backing, gint64 bytes)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autofree char *created = g_date_time_format(now, "%Y-%m-%dT%H:%M:%SZ");
    json_auto_t *root = json_object();
    json_object_set_new(root, "version", json_integer(RECORD_VERSION));
    set_text(root, "kind", "volume");
    set_text(root, "requestName", r->name);
    set_text(root, "group", r->id->group ? r->id->group : "");
    set_text(root, "source", r->source);
    set_text(root, "sourceAt", r->source_at);
    set_text(root, "first", r->first);
    json_object_set_new(root, "bytes", json_integer(bytes));
    json_object_set_new(root, "parameters", params_to_json(r->params));
    if (backing)
        json_object_set_new(root, "backing",
                            json_pack("{s:s, s:s, s:s, s:s}", "group", backing->group, "name",
                                      backing->name, "snapshot", backing->snapshot, "path",
                                      backing->path));
    if (json_object_size(r->changes) > 0)
        json_object_set(root, "mutable", (json_t *)r->changes);
    json_t *claim = json_object();
    set_text(claim, "pv", r->params->pv_name);
    set_text(claim, "pvc", r->params->pvc_name);
    set_text(claim, "namespace", r->params->pvc_namespace);
    json_object_set_new(root, "claim", claim);
    set_text(root, "created", created);
    return text_of(root);
}

/* FALSE for a backing that is damaged; NULL for none. */
static gboolean decode_backing(const json_t *root, VolumeBacking **backing)
{
    const json_t *from = json_object_get(root, "backing");
    VolumeBacking b = {
        .group = (char *)json_string_value(json_object_get(from, "group")),
        .name = (char *)json_string_value(json_object_get(from, "name")),
        .snapshot = (char *)json_string_value(json_object_get(from, "snapshot")),
        .path = (char *)json_string_value(json_object_get(from, "path")),
    };
    *backing = NULL;
    if (!from)
        return TRUE;
    if (!b.group || !b.name || !b.snapshot || !b.path)
        return FALSE;
    *backing = g_new0(VolumeBacking, 1);
    **backing = (VolumeBacking){g_strdup(b.group), g_strdup(b.name), g_strdup(b.snapshot),
                                g_strdup(b.path)};
    return TRUE;
}

VolumeRecord *volume_record_decode(const char *name, const char *text, gsize length, GError **error)
{
    json_error_t at;
    json_auto_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &at);
    json_int_t version = json_integer_value(json_object_get(root, "version"));
    const char *kind = json_string_value(json_object_get(root, "kind"));
    const char *request_name = json_string_value(json_object_get(root, "requestName"));
    const char *group = json_string_value(json_object_get(root, "group"));
    json_int_t bytes = json_integer_value(json_object_get(root, "bytes"));
    json_t *params = json_object_get(root, "parameters");
    VolumeRecord *record = NULL;
    g_autoptr(VolumeBacking) backing = NULL;
    const char *moved = json_string_value(json_object_get(root, "moved"));
    if (version > RECORD_VERSION_MOVED) {
        hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                    "record vol.%s has format %d, this driver knows %d; run a later version", name,
                    (int)version, RECORD_VERSION_MOVED);
    } else if (version < 1 || g_strcmp0(kind, "volume") != 0 || !request_name || !group ||
               bytes <= 0 || !json_is_object(params) || !decode_backing(root, &backing) ||
               (version == RECORD_VERSION_MOVED) != (moved != NULL)) {
        hearth_fail(error, HEARTH_ERROR_INTERNAL,
                    "record vol.%s is damaged; look at it (rados -N hearth get), and put it right "
                    "or remove it",
                    name);
    } else {
        record = g_new0(VolumeRecord, 1);
        record->name = g_strdup(name);
        record->request_name = g_strdup(request_name);
        record->moved = g_strdup(moved);
        record->first = g_strdup(json_string_value(json_object_get(root, "first")));
        record->group = g_strdup(group);
        record->source = g_strdup(json_string_value(json_object_get(root, "source")));
        record->source_at = g_strdup(json_string_value(json_object_get(root, "sourceAt")));
        record->bytes = bytes;
        const char *created = json_string_value(json_object_get(root, "created"));
        g_autoptr(GDateTime) time = created ? g_date_time_new_from_iso8601(created, NULL) : NULL;
        record->created = time ? g_date_time_to_unix(time) : 0;
        record->params = json_incref(params);
        json_t *changes = json_object_get(root, "mutable");
        record->changes = json_is_object(changes) ? json_incref(changes) : json_object();
        record->backing = g_steal_pointer(&backing);
        const json_t *claim = json_object_get(root, "claim");
        record->pv = g_strdup(json_string_value(json_object_get(claim, "pv")));
        record->pvc = g_strdup(json_string_value(json_object_get(claim, "pvc")));
        record->namespace = g_strdup(json_string_value(json_object_get(claim, "namespace")));
    }
    return record;
}

char *volume_record_change(const char *name, const char *text, gsize length, const json_t *changes,
                           GError **error)
{
    g_autoptr(VolumeRecord) record = volume_record_decode(name, text, length, error);
    if (!record)
        return NULL;
    json_auto_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
    json_object_set_new(root, "mutable", mutable_merge(record->changes, changes));
    return text_of(root);
}

char *volume_record_move(const char *name, const char *text, const char *to, GError **error)
{
    g_autoptr(VolumeRecord) record = volume_record_decode(name, text, strlen(text), error);
    if (!record)
        return NULL;
    json_auto_t *root = json_loadb(text, strlen(text), JSON_REJECT_DUPLICATES, NULL);
    json_object_set_new(root, "version", json_integer(RECORD_VERSION_MOVED));
    set_text(root, "moved", to);
    return text_of(root);
}

static const char *source_text(const char *source)
{
    return source ? source : "nothing";
}

/* The first member that differs, or NULL. */
static const char *difference(json_t *a, json_t *b)
{
    const char *name;
    json_t *value;
    json_object_foreach (a, name, value) {
        json_t *other = json_object_get(b, name);
        if (!other || !json_equal(value, other))
            return name;
    }
    json_object_foreach (b, name, value) {
        if (!json_object_get(a, name))
            return name;
    }
    return NULL;
}

gboolean volume_record_check_same(const VolumeRecord *record, const VolumeRequest *r,
                                  CapacityRange range, GError **error)
{
    if (strcmp(record->request_name, r->name) != 0)
        return hearth_fail(error, HEARTH_ERROR_ALREADY_EXISTS,
                           "volume %s belongs to another request, \"%s\"; use another name",
                           r->id->name, record->request_name);
    if (!capacity_fits(range, r->params->type, record->bytes))
        return hearth_fail(error, HEARTH_ERROR_ALREADY_EXISTS,
                           "volume %s exists with %" G_GINT64_FORMAT
                           " bytes, which the request (required %" G_GINT64_FORMAT
                           ", limit %" G_GINT64_FORMAT ") does not ask for",
                           r->id->name, record->bytes, range.required, range.limit);
    if (g_strcmp0(record->source, r->source) != 0)
        return hearth_fail(error, HEARTH_ERROR_ALREADY_EXISTS,
                           "volume %s exists and was made from %s, not from %s", r->id->name,
                           source_text(record->source), source_text(r->source));
    json_auto_t *wanted = params_to_json(r->params);
    const char *name = difference(record->params, wanted);
    if (!name && strcmp(record->group, r->id->group ? r->id->group : "") != 0)
        name = "subvolumeGroup";
    if (!name && r->changes)
        name = difference(record->changes, (json_t *)r->changes);
    if (name)
        hearth_fail(error, HEARTH_ERROR_ALREADY_EXISTS, "volume %s exists with another %s",
                    r->id->name, name);
    return name == NULL;
}
