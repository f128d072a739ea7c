/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shape of a JSON object of the protocol: which fields it may have and of what type. What is
 * unknown or ill-typed is refused by name, so that a typing error is not a silent default.
 */
#ifndef HEARTH_CACHE_CONTROL_FIELDS_H
#define HEARTH_CACHE_CONTROL_FIELDS_H

#include <glib.h>
#include <jansson.h>

typedef enum FieldType {
    FIELD_STRING, /* at most FIELD_MAX_STRING bytes */
    FIELD_COUNT,  /* an integer, not negative */
    FIELD_BOOLEAN,
    FIELD_OBJECT,
    FIELD_STRINGS, /* an array of strings */
} FieldType;

#define FIELD_MAX_STRING 4096
#define FIELD_MAX_STRINGS 64

/* A table ends with a row whose name is NULL. */
typedef struct Field {
    const char *name;
    FieldType type;
    gboolean required;
} Field;

/* FALSE with WIRE_ERROR_INVALID_ARGUMENT; `what` says whose fields they are: "open", "origin". */
gboolean fields_check(const char *what, const json_t *object, const Field *table, GError **error);

#endif
