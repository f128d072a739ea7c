/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protocol buffer messages from and to JSON, by their descriptors: what csi-call speaks with its
 * users. As proto3's JSON mapping, but for two things: 64-bit integers are printed as numbers, and
 * names are accepted as in csi.proto besides in lowerCamelCase.
 *
 *   map<string, ...>            object
 *   int64, int32                number or string of one; printed as number
 *   enum                        name or number; printed as name
 *   Timestamp                   "2006-01-02T15:04:05.000000006Z"; printed only
 *   BoolValue, Int64Value       true, 5: the value itself
 *
 * CSI has no bytes, floats or unsigned integers; fields of such types are refused.
 */
#ifndef HEARTH_TESTS_MESSAGE_JSON_H
#define HEARTH_TESTS_MESSAGE_JSON_H

#include <errno.h>
#include <gio/gio.h>
#include <jansson.h>
#include <protobuf-c/protobuf-c.h>
#include <stdlib.h>
#include <string.h>

#include "driver/rpc/validate.h"

/* "volume_id" -> "volumeId". */
static inline char *json_camel_name(const char *snake)
{
    char *camel = g_strdup(snake), *out = camel;
    for (const char *p = snake; *p; p++)
        *out++ = *p == '_' && p[1] ? g_ascii_toupper(*++p) : *p;
    *out = '\0';
    return camel;
}

static inline gboolean json_is_wrapper(const ProtobufCMessageDescriptor *type)
{
    return strcmp(type->short_name, "BoolValue") == 0 ||
           strcmp(type->short_name, "Int64Value") == 0;
}

/* ---- From JSON. Memory is malloc's, so that protobuf_c_message_free_unpacked() frees it. */

static inline ProtobufCMessage *message_from_json(const ProtobufCMessageDescriptor *type,
                                                  const json_t *json, const char *path,
                                                  GError **error);

static inline gboolean json_refuse(GError **error, const char *path, const char *what)
{
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT, "%s %s",
                *path ? path : "the request", what);
    return FALSE;
}

static inline void *json_calloc(size_t size)
{
    void *memory = calloc(1, MAX(size, 1));
    if (!memory)
        g_error("out of memory");
    return memory;
}

static inline gboolean json_to_integer(const json_t *json, gint64 min, gint64 max, gint64 *value)
{
    if (json_is_integer(json)) {
        *value = json_integer_value(json);
    } else if (json_is_string(json)) {
        char *end;
        errno = 0;
        *value = g_ascii_strtoll(json_string_value(json), &end, 10);
        if (errno || *end || end == json_string_value(json))
            return FALSE;
    } else {
        return FALSE;
    }
    return *value >= min && *value <= max;
}

static inline gboolean json_to_enum(const ProtobufCEnumDescriptor *type, const json_t *json,
                                    gint64 *value)
{
    if (json_is_string(json)) {
        const ProtobufCEnumValue *named =
            protobuf_c_enum_descriptor_get_value_by_name(type, json_string_value(json));
        if (named)
            *value = named->value;
        return named != NULL;
    }
    return json_to_integer(json, G_MININT32, G_MAXINT32, value);
}

/* Stores one value, an element of a repeated field or the field itself, at `slot`. */
static inline gboolean json_to_value(const ProtobufCFieldDescriptor *field, const json_t *json,
                                     void *slot, const char *path, GError **error)
{
    gint64 integer;
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        if (!json_is_string(json))
            return json_refuse(error, path, "must be a string");
        *(char **)slot = strdup(json_string_value(json));
        return TRUE;
    case PROTOBUF_C_TYPE_BOOL:
        if (!json_is_boolean(json))
            return json_refuse(error, path, "must be true or false");
        *(protobuf_c_boolean *)slot = json_is_true(json);
        return TRUE;
    case PROTOBUF_C_TYPE_INT64:
        if (!json_to_integer(json, G_MININT64, G_MAXINT64, &integer))
            return json_refuse(error, path, "must be a 64-bit integer");
        *(int64_t *)slot = integer;
        return TRUE;
    case PROTOBUF_C_TYPE_INT32:
        if (!json_to_integer(json, G_MININT32, G_MAXINT32, &integer))
            return json_refuse(error, path, "must be a 32-bit integer");
        *(int32_t *)slot = integer;
        return TRUE;
    case PROTOBUF_C_TYPE_ENUM:
        if (!json_to_enum(field->descriptor, json, &integer))
            return json_refuse(error, path, "must be the name or number of an enum value");
        *(int32_t *)slot = integer;
        return TRUE;
    case PROTOBUF_C_TYPE_MESSAGE:
        *(ProtobufCMessage **)slot = message_from_json(field->descriptor, json, path, error);
        return *(ProtobufCMessage **)slot != NULL;
    default:
        return json_refuse(error, path, "has a type that is not supported");
    }
}

static inline size_t json_slot_size(const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT64:
        return sizeof(int64_t);
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_ENUM:
        return sizeof(int32_t);
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    default:
        return sizeof(void *);
    }
}

static inline gboolean json_to_map(const ProtobufCFieldDescriptor *field, const json_t *json,
                                   guint8 *base, const char *path, GError **error)
{
    if (!json_is_object(json))
        return json_refuse(error, path, "must be an object");
    const ProtobufCMessageDescriptor *type = field->descriptor;
    size_t *n = (size_t *)(base + field->quantifier_offset);
    ProtobufCMessage **entries = json_calloc(json_object_size(json) * sizeof(*entries));
    *(ProtobufCMessage ***)(base + field->offset) = entries;
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)json, key, value) {
        g_autofree char *inner = g_strdup_printf("%s[\"%s\"]", path, key);
        guint8 *entry = json_calloc(type->sizeof_message);
        protobuf_c_message_init(type, entry);
        entries[(*n)++] = (ProtobufCMessage *)entry;
        *(char **)(entry + type->fields[0].offset) = strdup(key);
        if (!json_to_value(&type->fields[1], value, entry + type->fields[1].offset, inner, error))
            return FALSE;
    }
    return TRUE;
}

static inline gboolean json_to_field(const ProtobufCFieldDescriptor *field, const json_t *json,
                                     guint8 *base, const char *path, GError **error)
{
    if (field->label != PROTOBUF_C_LABEL_REPEATED) {
        guint32 *which = (guint32 *)(base + field->quantifier_offset);
        if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
            if (*which)
                return json_refuse(error, path, "excludes another field of its oneof that is set");
            if (!json_to_value(field, json, base + field->offset, path, error))
                return FALSE;
            *which = field->id;
            return TRUE;
        }
        return json_to_value(field, json, base + field->offset, path, error);
    }
    if (field->type == PROTOBUF_C_TYPE_MESSAGE && rpc_is_map_entry(field->descriptor))
        return json_to_map(field, json, base, path, error);
    if (!json_is_array(json))
        return json_refuse(error, path, "must be an array");
    size_t *n = (size_t *)(base + field->quantifier_offset), size = json_slot_size(field);
    guint8 *elements = json_calloc(json_array_size(json) * size);
    *(guint8 **)(base + field->offset) = elements;
    for (size_t i = 0; i < json_array_size(json); i++) {
        g_autofree char *inner = g_strdup_printf("%s[%zu]", path, i);
        if (!json_to_value(field, json_array_get(json, i), elements + i * size, inner, error))
            return FALSE;
        ++*n;
    }
    return TRUE;
}

static inline const ProtobufCFieldDescriptor *
json_find_field(const ProtobufCMessageDescriptor *type, const char *name)
{
    for (unsigned i = 0; i < type->n_fields; i++) {
        g_autofree char *camel = json_camel_name(type->fields[i].name);
        if (strcmp(name, type->fields[i].name) == 0 || strcmp(name, camel) == 0)
            return &type->fields[i];
    }
    return NULL;
}

/* NULL with G_IO_ERROR_INVALID_ARGUMENT naming the field; never its value. */
static inline ProtobufCMessage *message_from_json(const ProtobufCMessageDescriptor *type,
                                                  const json_t *json, const char *path,
                                                  GError **error)
{
    guint8 *message = json_calloc(type->sizeof_message);
    protobuf_c_message_init(type, message);
    gboolean ok = TRUE;
    const char *name;
    json_t *value;
    if (json_is_wrapper(type) && !json_is_object(json)) {
        ok = json_to_value(&type->fields[0], json, message + type->fields[0].offset, path, error);
    } else if (!json_is_object(json)) {
        ok = json_refuse(error, path, "must be an object");
    } else {
        json_object_foreach ((json_t *)json, name, value) {
            g_autofree char *inner = g_strdup_printf("%s%s%s", path, *path ? "." : "", name);
            const ProtobufCFieldDescriptor *field = json_find_field(type, name);
            if (!field)
                ok = json_refuse(error, inner, "is not a field");
            else if (!json_is_null(value))
                ok = json_to_field(field, value, message, inner, error);
            if (!ok)
                break;
        }
    }
    if (!ok) {
        protobuf_c_message_free_unpacked((ProtobufCMessage *)message, NULL);
        return NULL;
    }
    return (ProtobufCMessage *)message;
}

/* ---- To JSON */

static inline json_t *message_to_json(const ProtobufCMessage *message);

static inline json_t *json_of_timestamp(const ProtobufCMessage *message)
{
    const guint8 *base = (const guint8 *)message;
    const ProtobufCFieldDescriptor *fields = message->descriptor->fields;
    gint64 seconds = *(const int64_t *)(base + fields[0].offset);
    gint32 nanos = *(const int32_t *)(base + fields[1].offset);
    g_autoptr(GDateTime) time = g_date_time_new_from_unix_utc(seconds);
    if (!time)
        return json_pack("{s:I, s:i}", "seconds", (json_int_t)seconds, "nanos", (int)nanos);
    g_autofree char *text = g_date_time_format(time, "%Y-%m-%dT%H:%M:%S");
    return nanos ? json_sprintf("%s.%09dZ", text, (int)nanos) : json_sprintf("%sZ", text);
}

static inline json_t *json_of_value(const ProtobufCFieldDescriptor *field, const void *slot)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        return json_string(*(char *const *)slot ? *(char *const *)slot : "");
    case PROTOBUF_C_TYPE_BOOL:
        return json_boolean(*(const protobuf_c_boolean *)slot);
    case PROTOBUF_C_TYPE_INT64:
        return json_integer(*(const int64_t *)slot);
    case PROTOBUF_C_TYPE_INT32:
        return json_integer(*(const int32_t *)slot);
    case PROTOBUF_C_TYPE_ENUM: {
        const ProtobufCEnumValue *value =
            protobuf_c_enum_descriptor_get_value(field->descriptor, *(const int32_t *)slot);
        return value ? json_string(value->name) : json_integer(*(const int32_t *)slot);
    }
    case PROTOBUF_C_TYPE_MESSAGE:
        return message_to_json(*(ProtobufCMessage *const *)slot);
    default:
        return json_null();
    }
}

static inline gboolean json_is_default(const ProtobufCFieldDescriptor *field, const void *slot)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        return !*(char *const *)slot || !**(char *const *)slot;
    case PROTOBUF_C_TYPE_BOOL:
        return !*(const protobuf_c_boolean *)slot;
    case PROTOBUF_C_TYPE_INT64:
        return *(const int64_t *)slot == 0;
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_ENUM:
        return *(const int32_t *)slot == 0;
    default:
        return FALSE;
    }
}

static inline json_t *json_of_repeated(const ProtobufCFieldDescriptor *field, const guint8 *base)
{
    size_t n = *(const size_t *)(base + field->quantifier_offset);
    const guint8 *elements = *(const guint8 *const *)(base + field->offset);
    const ProtobufCMessageDescriptor *type = field->descriptor;
    gboolean is_map = field->type == PROTOBUF_C_TYPE_MESSAGE && rpc_is_map_entry(type);
    json_t *json = is_map ? json_object() : json_array();
    for (size_t i = 0; i < n; i++) {
        const void *slot = elements + i * json_slot_size(field);
        if (is_map) {
            const guint8 *entry = *(const guint8 *const *)slot;
            const char *key = *(char *const *)(entry + type->fields[0].offset);
            json_object_set_new(json, key ? key : "",
                                json_of_value(&type->fields[1], entry + type->fields[1].offset));
        } else {
            json_array_append_new(json, json_of_value(field, slot));
        }
    }
    return json;
}

/* Fields with their default value are left out. */
static inline json_t *message_to_json(const ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    const guint8 *base = (const guint8 *)message;
    if (json_is_wrapper(type))
        return json_of_value(&type->fields[0], base + type->fields[0].offset);
    if (strcmp(type->short_name, "Timestamp") == 0)
        return json_of_timestamp(message);
    json_t *json = json_object();
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        g_autofree char *name = json_camel_name(field->name);
        gboolean in_oneof = field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF;
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            if (*(const size_t *)(base + field->quantifier_offset) > 0)
                json_object_set_new(json, name, json_of_repeated(field, base));
        } else if (rpc_field_is_set(message, field) &&
                   (in_oneof || !json_is_default(field, base + field->offset))) {
            json_object_set_new(json, name, json_of_value(field, base + field->offset));
        }
    }
    return json;
}

#endif
