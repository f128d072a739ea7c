/* SPDX-License-Identifier: Apache-2.0 */
/*
 * {"version": 1, "kind": "groupSnapshot", "requestName", "created": "<UTC>", "taken",
 *  "attempt", "before", "members": [{"volume", "group", "snapshot", "bytes"}, ...]}
 *
 * "taken" is not in records of before, whose snapshots count as soon as all are there.
 */
#include "driver/volume/group_record.h"
#include <jansson.h>
#include <string.h>

#define RECORD_VERSION 1
#define KEY_PREFIX "group."
/* "-01234567-63" */
#define ATTEMPT_AND_NUMBER 12

static void free_member(gpointer data)
{
    GroupMember *member = data;
    g_free(member->volume);
    g_free(member->snapshot);
    g_free(member->group);
    g_free(member);
}

GroupMember *group_member_new(const char *volume, const char *group, const char *snapshot,
                              gint64 bytes)
{
    GroupMember *member = g_new0(GroupMember, 1);
    member->volume = g_strdup(volume);
    member->group = g_strdup(group ? group : "");
    member->snapshot = g_strdup(snapshot);
    member->bytes = bytes;
    return member;
}

GPtrArray *group_members_new(void)
{
    return g_ptr_array_new_with_free_func(free_member);
}

void group_record_free(GroupRecord *record)
{
    if (!record)
        return;
    g_free(record->request_name);
    g_free(record->attempt);
    g_free(record->before);
    g_clear_pointer(&record->members, g_ptr_array_unref);
    g_free(record);
}

char *group_record_key(const char *name)
{
    return g_strconcat(KEY_PREFIX, name, NULL);
}

const char *group_record_key_name(const char *key)
{
    return g_str_has_prefix(key, KEY_PREFIX) ? key + strlen(KEY_PREFIX) : NULL;
}

char *group_record_snapshot(const VolumeId *group, const char *attempt, guint number)
{
    if (!*attempt)
        return g_strdup_printf("%s-%u", group->name, number);
    const gsize room = snapshot_id_room(group);
    g_autofree char *start =
        g_strndup(group->name, room > ATTEMPT_AND_NUMBER ? room - ATTEMPT_AND_NUMBER : 0);
    return g_strdup_printf("%s-%s-%u", start, attempt, number);
}

void group_record_begin(GroupRecord *record, const VolumeId *group)
{
    g_free(record->before);
    record->before = record->attempt;
    record->attempt = g_strdup_printf("%08x", g_random_int());
    record->created = g_get_real_time() / G_USEC_PER_SEC;
    record->taken = FALSE;
    for (guint i = 0; i < record->members->len; i++) {
        GroupMember *m = record->members->pdata[i];
        g_free(m->snapshot);
        m->snapshot = group_record_snapshot(group, record->attempt, i);
    }
}

char *group_record_encode(const GroupRecord *record)
{
    g_autoptr(GDateTime) time = g_date_time_new_from_unix_utc(record->created);
    g_autofree char *created = g_date_time_format(time, "%Y-%m-%dT%H:%M:%SZ");
    json_t *list = json_array();
    for (guint i = 0; i < record->members->len; i++) {
        const GroupMember *m = record->members->pdata[i];
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:I}", "volume", m->volume, "group",
                                              m->group, "snapshot", m->snapshot, "bytes",
                                              (json_int_t)m->bytes));
    }
    json_auto_t *root = json_pack(
        "{s:i, s:s, s:s, s:s, s:b, s:s, s:s*, s:o}", "version", RECORD_VERSION, "kind",
        "groupSnapshot", "requestName", record->request_name, "created", created, "taken",
        record->taken, "attempt", record->attempt, "before", record->before, "members", list);
    char *dumped = json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS);
    char *text = g_strdup(dumped);
    free(dumped);
    return text;
}

/* NULL for a list that is none. */
static GPtrArray *decode_members(const json_t *list)
{
    g_autoptr(GPtrArray) members = group_members_new();
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);
        const char *volume = json_string_value(json_object_get(entry, "volume"));
        const char *snapshot = json_string_value(json_object_get(entry, "snapshot"));
        const char *group = json_string_value(json_object_get(entry, "group"));
        json_int_t bytes = json_integer_value(json_object_get(entry, "bytes"));
        if (!group || !volume || !*volume || !snapshot || !*snapshot || bytes <= 0)
            return NULL;
        g_ptr_array_add(members, group_member_new(volume, group, snapshot, bytes));
    }
    gboolean good = members->len > 0 && members->len <= GROUP_MAX_MEMBERS;
    return good ? g_steal_pointer(&members) : NULL;
}

GroupRecord *group_record_decode(const char *name, const char *text, gsize length, GError **error)
{
    json_error_t at;
    json_auto_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &at);
    json_int_t version = json_integer_value(json_object_get(root, "version"));
    const char *kind = json_string_value(json_object_get(root, "kind"));
    const char *request_name = json_string_value(json_object_get(root, "requestName"));
    const char *created = json_string_value(json_object_get(root, "created"));
    const char *attempt = json_string_value(json_object_get(root, "attempt"));
    const char *before = json_string_value(json_object_get(root, "before"));
    g_autoptr(GDateTime) time = created ? g_date_time_new_from_iso8601(created, NULL) : NULL;
    g_autoptr(GPtrArray) members = decode_members(json_object_get(root, "members"));
    GroupRecord *record = NULL;
    if (version > RECORD_VERSION) {
        hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                    "record group.%s has format %d, this driver knows %d; run a later version",
                    name, (int)version, RECORD_VERSION);
    } else if (version < 1 || g_strcmp0(kind, "groupSnapshot") != 0 || !request_name || !time ||
               !members) {
        hearth_fail(error, HEARTH_ERROR_INTERNAL,
                    "record group.%s is damaged; look at it, and put it right or remove it", name);
    } else {
        record = g_new0(GroupRecord, 1);
        record->request_name = g_strdup(request_name);
        record->created = g_date_time_to_unix(time);
        record->taken = !json_is_false(json_object_get(root, "taken"));
        record->attempt = g_strdup(attempt ? attempt : "");
        record->before = g_strdup(before);
        record->members = g_steal_pointer(&members);
    }
    return record;
}
