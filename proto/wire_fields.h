/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shape of a JSON object of the protocol: which fields it may have and of what type. What is
 * unknown or ill-typed is refused by name, so that a typing error is not a silent default.
 */
#ifndef HEARTH_PROTO_WIRE_FIELDS_H
#define HEARTH_PROTO_WIRE_FIELDS_H

#include <glib.h>
#include <jansson.h>

typedef enum WireFieldType {
    WIRE_FIELD_STRING, /* at most WIRE_FIELD_MAX_STRING bytes */
    WIRE_FIELD_COUNT,  /* an integer, not negative */
    WIRE_FIELD_BOOLEAN,
    WIRE_FIELD_OBJECT,
    WIRE_FIELD_STRINGS, /* an array of strings */
} WireFieldType;

#define WIRE_FIELD_MAX_STRING 4096
#define WIRE_FIELD_MAX_STRINGS 64

/* A table ends with a row whose name is NULL. */
typedef struct WireField {
    const char *name;
    WireFieldType type;
    gboolean required;
} WireField;

/* FALSE with WIRE_ERROR_INVALID_ARGUMENT; `what` says whose fields they are: "open", "origin". */
gboolean wire_fields_check(const char *what, const json_t *object, const WireField *table,
                           GError **error);

#endif
