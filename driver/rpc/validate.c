/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk follows the wire, not the decoded message. It accepts no more than protobuf-c does where
 * the two could read the same bytes differently (over-long tags and lengths, which protobuf-c
 * truncates to 32 bits, and known fields with a foreign wire type), so what it passes is what gets
 * decoded. Groups are refused by both.
 */
#include "driver/rpc/validate.h"

#include <string.h>

#include "common/error.h"

/* CSI nests seven deep and nothing recurses. */
#define MAX_DEPTH 32

enum { WIRE_VARINT = 0, WIRE_64BIT = 1, WIRE_BYTES = 2, WIRE_32BIT = 5 };

typedef struct WireField {
    guint32 id;
    guint wire_type;
    const guint8 *bytes; /* of WIRE_BYTES */
    size_t length;
} WireField;

static gboolean read_varint(const guint8 **cursor, const guint8 *end, guint64 *value)
{
    *value = 0;
    for (guint shift = 0; shift < 70 && *cursor < end; shift += 7) {
        guint8 byte = *(*cursor)++;
        if (shift == 63 && byte > 1)
            return FALSE;
        *value |= (guint64)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return TRUE;
    }
    return FALSE;
}

static gboolean read_field(const guint8 **cursor, const guint8 *end, WireField *field)
{
    guint64 tag, value;
    if (!read_varint(cursor, end, &tag) || tag > G_MAXUINT32 || tag >> 3 == 0)
        return FALSE;
    *field = (WireField){.id = tag >> 3, .wire_type = tag & 7};
    size_t skip;
    switch (field->wire_type) {
    case WIRE_VARINT:
        return read_varint(cursor, end, &value);
    case WIRE_64BIT:
        skip = 8;
        break;
    case WIRE_32BIT:
        skip = 4;
        break;
    case WIRE_BYTES:
        if (!read_varint(cursor, end, &value) || value > (guint64)(end - *cursor))
            return FALSE;
        field->bytes = *cursor;
        field->length = skip = value;
        break;
    default:
        return FALSE;
    }
    if (skip > (size_t)(end - *cursor))
        return FALSE;
    *cursor += skip;
    return TRUE;
}

static gboolean wire_type_fits(const ProtobufCFieldDescriptor *field, guint wire_type)
{
    guint own;
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return wire_type == WIRE_BYTES;
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        own = WIRE_64BIT;
        break;
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        own = WIRE_32BIT;
        break;
    default:
        own = WIRE_VARINT;
        break;
    }
    gboolean packed = field->label == PROTOBUF_C_LABEL_REPEATED && wire_type == WIRE_BYTES;
    return wire_type == own || packed;
}

/* The messages that enclose a field, from the outermost; used only in an error. */
typedef struct Trail {
    const struct Trail *outer;
    const ProtobufCFieldDescriptor *field;
    const guint8 *message, *end; /* the serialised message that holds the field, up to it */
} Trail;

static void append_path(GString *path, const Trail *trail)
{
    if (trail->outer) {
        append_path(path, trail->outer);
        g_string_append_c(path, '.');
    }
    g_string_append(path, trail->field->name);
    if (trail->field->label != PROTOBUF_C_LABEL_REPEATED)
        return;
    guint index = 0;
    WireField before;
    for (const guint8 *cursor = trail->message; cursor < trail->end;) {
        if (!read_field(&cursor, trail->end, &before))
            break;
        index += before.id == trail->field->id;
    }
    g_string_append_printf(path, "[%u]", index);
}

static gboolean refuse(const Trail *trail, const char *what, GError **error)
{
    GString *path = g_string_new(NULL);
    append_path(path, trail);
    hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT, "field %s %s", path->str, what);
    g_string_free(path, TRUE);
    return FALSE;
}

static gboolean malformed(const ProtobufCMessageDescriptor *descriptor, const Trail *outer,
                          GError **error)
{
    if (outer)
        return refuse(outer, "is malformed", error);
    return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT, "message %s is malformed",
                       descriptor->name);
}

static gboolean walk(const ProtobufCMessageDescriptor *descriptor, const guint8 *bytes,
                     size_t length, const Trail *outer, guint depth, GError **error)
{
    const guint8 *end = bytes + length;
    for (const guint8 *cursor = bytes; cursor < end;) {
        const guint8 *start = cursor;
        WireField wire;
        if (depth > MAX_DEPTH || !read_field(&cursor, end, &wire))
            return malformed(descriptor, outer, error);
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(descriptor, wire.id);
        if (!field)
            continue;
        Trail trail = {.outer = outer, .field = field, .message = bytes, .end = start};
        if (!wire_type_fits(field, wire.wire_type))
            return refuse(&trail, "is malformed", error);
        if (field->type == PROTOBUF_C_TYPE_STRING) {
            if (memchr(wire.bytes, 0, wire.length))
                return refuse(&trail, "holds a NUL byte", error);
            if (!g_utf8_validate_len((const char *)wire.bytes, wire.length, NULL))
                return refuse(&trail, "is not valid UTF-8", error);
        } else if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
            if (!walk(field->descriptor, wire.bytes, wire.length, &trail, depth + 1, error))
                return FALSE;
        }
    }
    return TRUE;
}

gboolean rpc_validate_wire(const ProtobufCMessageDescriptor *descriptor, const guint8 *bytes,
                           size_t length, GError **error)
{
    static const guint8 nothing[1];
    return walk(descriptor, bytes ? bytes : nothing, length, NULL, 0, error);
}

gboolean rpc_is_map_entry(const ProtobufCMessageDescriptor *descriptor)
{
    return descriptor->n_fields == 2 && g_str_has_suffix(descriptor->short_name, "Entry") &&
           descriptor->fields[0].id == 1 && strcmp(descriptor->fields[0].name, "key") == 0 &&
           descriptor->fields[1].id == 2 && strcmp(descriptor->fields[1].name, "value") == 0;
}

gboolean rpc_field_is_set(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    const guint8 *base = (const guint8 *)message;
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
        return *(const guint32 *)(base + field->quantifier_offset) == field->id;
    if (field->type == PROTOBUF_C_TYPE_MESSAGE || field->type == PROTOBUF_C_TYPE_STRING)
        return *(void *const *)(base + field->offset) != NULL;
    if (field->label == PROTOBUF_C_LABEL_OPTIONAL && field->quantifier_offset)
        return *(const protobuf_c_boolean *)(base + field->quantifier_offset);
    return TRUE;
}

static const char *entry_key(const ProtobufCMessage *entry)
{
    const char *key = *(char *const *)((const guint8 *)entry + entry->descriptor->fields[0].offset);
    return key ? key : "";
}

/* From the end, keeps the first entry of every key; the kept ones stay in order. */
static size_t settle_map(ProtobufCMessage **entries, size_t n)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    size_t kept = n;
    for (size_t i = n; i-- > 0;) {
        if (g_hash_table_add(seen, (gpointer)entry_key(entries[i])))
            entries[--kept] = entries[i];
    }
    memmove(entries, entries + kept, (n - kept) * sizeof(*entries));
    return n - kept;
}

void rpc_settle_maps(ProtobufCMessage *message)
{
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        guint8 *base = (guint8 *)message;
        if (field->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        if (field->label != PROTOBUF_C_LABEL_REPEATED) {
            if (rpc_field_is_set(message, field))
                rpc_settle_maps(*(ProtobufCMessage **)(base + field->offset));
            continue;
        }
        size_t *n = (size_t *)(base + field->quantifier_offset);
        ProtobufCMessage **elements = *(ProtobufCMessage ***)(base + field->offset);
        const ProtobufCMessageDescriptor *type = field->descriptor;
        if (rpc_is_map_entry(type) && type->fields[0].type == PROTOBUF_C_TYPE_STRING) {
            if (*n > 1)
                *n = settle_map(elements, *n);
        } else {
            for (size_t k = 0; k < *n; k++)
                rpc_settle_maps(elements[k]);
        }
    }
}
