/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/wire_fields.h"
#include "proto/wire.h"
#include <string.h>

static const char *const type_names[] = {
    [WIRE_FIELD_STRING] = "a string of at most 4096 bytes",
    [WIRE_FIELD_COUNT] = "an integer of 0 or more",
    [WIRE_FIELD_BOOLEAN] = "true or false",
    [WIRE_FIELD_OBJECT] = "an object",
    [WIRE_FIELD_STRINGS] = "an array of 1 to 64 strings",
};

static gboolean is_string(const json_t *value)
{
    return json_is_string(value) && json_string_length(value) <= WIRE_FIELD_MAX_STRING;
}

static gboolean has_type(const json_t *value, WireFieldType type)
{
    switch (type) {
    case WIRE_FIELD_STRING:
        return is_string(value);
    case WIRE_FIELD_COUNT:
        return json_is_integer(value) && json_integer_value(value) >= 0;
    case WIRE_FIELD_BOOLEAN:
        return json_is_boolean(value);
    case WIRE_FIELD_OBJECT:
        return json_is_object(value);
    case WIRE_FIELD_STRINGS:
        break;
    }
    size_t n = json_array_size(value);
    if (!json_is_array(value) || n < 1 || n > WIRE_FIELD_MAX_STRINGS)
        return FALSE;
    for (size_t i = 0; i < n; i++)
        if (!is_string(json_array_get(value, i)))
            return FALSE;
    return TRUE;
}

static const WireField *find(const WireField *table, const char *name)
{
    for (const WireField *f = table; f->name; f++)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
}

static char *known_names(const WireField *table)
{
    GString *names = g_string_new(NULL);
    for (const WireField *f = table; f->name; f++)
        g_string_append_printf(names, "%s%s", names->len ? ", " : "", f->name);
    return g_string_free(names, FALSE);
}

gboolean wire_fields_check(const char *what, const json_t *object, const WireField *table,
                           GError **error)
{
    const char *name;
    json_t *value;
    json_object_foreach ((json_t *)object, name, value) {
        const WireField *f = find(table, name);
        if (!f) {
            g_autofree char *known = known_names(table);
            return wire_fail(error, WIRE_ERROR_INVALID_ARGUMENT,
                             "%s: unknown field '%.64s'; the fields are: %s", what, name, known);
        }
        if (!has_type(value, f->type))
            return wire_fail(error, WIRE_ERROR_INVALID_ARGUMENT, "%s: field '%s' must be %s", what,
                             name, type_names[f->type]);
    }
    for (const WireField *f = table; f->name; f++) {
        if (f->required && !json_object_get(object, f->name))
            return wire_fail(error, WIRE_ERROR_INVALID_ARGUMENT, "%s: field '%s' is missing", what,
                             f->name);
    }
    return TRUE;
}
