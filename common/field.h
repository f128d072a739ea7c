/* SPDX-License-Identifier: Apache-2.0 */
/* Members of JSON objects that others wrote: what is not of the kind asked for is as if it were not
 * there. */
#ifndef HEARTH_COMMON_FIELD_H
#define HEARTH_COMMON_FIELD_H

#include <glib.h>
#include <jansson.h>

/* Borrowed; "": there is no such text. */
static inline const char *field_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

/* 0: there is no such number, or it is less. */
static inline guint64 field_count(const json_t *object, const char *name)
{
    return (guint64)MAX(json_integer_value(json_object_get(object, name)), 0);
}

#endif
