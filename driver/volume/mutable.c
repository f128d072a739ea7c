/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One row for each mutable parameter, with its kind of value and the types of volume that enforce
 * it. The Controller parses them for CreateVolume and ControllerModifyVolume; the result is a JSON
 * object, as the record keeps it.
 */
#include "driver/volume/mutable.h"
#include <string.h>
#include "driver/volume/params.h"
#include "driver/volume/qos.h"

typedef enum Kind { KIND_SIZE, KIND_WARM, KIND_LIMIT } Kind;

typedef struct Row {
    const char *name;
    Kind kind;
    int types;
} Row;

static const Row rows[] = {
    {"cacheQuota", KIND_SIZE, 1 << VOLUME_CEPHFS},
    {"warm", KIND_WARM, 1 << VOLUME_CEPHFS},
    {"iopsPerSecond", KIND_LIMIT, 1 << VOLUME_RBD},
    {"bytesPerSecond", KIND_LIMIT, 1 << VOLUME_RBD},
    {"readIopsPerSecond", KIND_LIMIT, 1 << VOLUME_RBD},
    {"writeIopsPerSecond", KIND_LIMIT, 1 << VOLUME_RBD},
    {"readBytesPerSecond", KIND_LIMIT, 1 << VOLUME_RBD},
    {"writeBytesPerSecond", KIND_LIMIT, 1 << VOLUME_RBD},
    {"baseIops", KIND_LIMIT, 1 << VOLUME_RBD},
    {"maxIops", KIND_LIMIT, 1 << VOLUME_RBD},
    {"baseReadIops", KIND_LIMIT, 1 << VOLUME_RBD},
    {"maxReadIops", KIND_LIMIT, 1 << VOLUME_RBD},
    {"baseWriteIops", KIND_LIMIT, 1 << VOLUME_RBD},
    {"maxWriteIops", KIND_LIMIT, 1 << VOLUME_RBD},
    {"baseBps", KIND_LIMIT, 1 << VOLUME_RBD},
    {"maxBps", KIND_LIMIT, 1 << VOLUME_RBD},
    {"baseReadBps", KIND_LIMIT, 1 << VOLUME_RBD},
    {"maxReadBps", KIND_LIMIT, 1 << VOLUME_RBD},
    {"baseWriteBps", KIND_LIMIT, 1 << VOLUME_RBD},
    {"maxWriteBps", KIND_LIMIT, 1 << VOLUME_RBD},
    {"iopsPerGiB", KIND_LIMIT, 1 << VOLUME_RBD},
    {"readIopsPerGiB", KIND_LIMIT, 1 << VOLUME_RBD},
    {"writeIopsPerGiB", KIND_LIMIT, 1 << VOLUME_RBD},
    {"bpsPerGiB", KIND_LIMIT, 1 << VOLUME_RBD},
    {"readBpsPerGiB", KIND_LIMIT, 1 << VOLUME_RBD},
    {"writeBpsPerGiB", KIND_LIMIT, 1 << VOLUME_RBD},
    {"baseVolSizeBytes", KIND_LIMIT, 1 << VOLUME_RBD},
};

/* The error, and NULL for the value that is missing. */
#define refuse(error, ...)                                                                         \
    (hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT, __VA_ARGS__), (json_t *)NULL)

static json_t *parse_value(const Row *row, const char *value, GError **error)
{
    guint64 number;
    g_autofree char *valid = g_utf8_make_valid(value, (gssize)strnlen(value, 100));
    g_autofree char *text = g_strescape(valid, NULL);
    switch (row->kind) {
    case KIND_WARM:
        if (strcmp(value, "none") == 0 || strcmp(value, "onStage") == 0)
            return json_string(value);
        return refuse(error, "mutable parameter warm=\"%s\": use none or onStage", text);
    case KIND_SIZE:
    case KIND_LIMIT:
        if (params_parse_size(value, &number))
            return json_integer((json_int_t)number);
        return refuse(error,
                      "mutable parameter %s=\"%s\": write a number or a quantity such as 100Gi; 0 "
                      "for none",
                      row->name, text);
    }
    return NULL;
}

static const Row *find_row(const char *name)
{
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    }
    return NULL;
}

static json_t *parse_one(const char *name, const char *value, VolumeType type, GError **error)
{
    const Row *row = find_row(name);
    if (!row) {
        g_autofree char *valid = g_utf8_make_valid(name, (gssize)strnlen(name, 100));
        g_autofree char *text = g_strescape(valid, NULL);
        g_autoptr(GString) known = g_string_new(NULL);
        for (guint i = 0; i < G_N_ELEMENTS(rows); i++)
            g_string_append_printf(known, "%s%s", i ? ", " : "", rows[i].name);
        return refuse(error, "mutable parameter \"%s\" is not known; known: %s", text, known->str);
    }
    if (!(row->types & 1 << type))
        return refuse(error, "mutable parameter %s: nothing enforces it for type=%s; leave it out",
                      name, volume_type_name(type));
    return parse_value(row, value, error);
}

json_t *mutable_parse(GHashTable *map, VolumeType type, GError **error)
{
    json_auto_t *object = json_object();
    GHashTableIter iter;
    gpointer name, value;
    g_hash_table_iter_init(&iter, map);
    while (g_hash_table_iter_next(&iter, &name, &value)) {
        json_t *parsed = parse_one(name, value, type, error);
        if (!parsed)
            return NULL;
        json_object_set_new(object, name, parsed);
    }
    return qos_check(object, error) ? g_steal_pointer(&object) : NULL;
}

gboolean mutable_has_limits(const json_t *given)
{
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (rows[i].kind == KIND_LIMIT && json_object_get(given, rows[i].name))
            return TRUE;
    }
    return FALSE;
}

json_t *mutable_merge(const json_t *now, const json_t *changes)
{
    json_t *merged = json_copy((json_t *)now);
    qos_forget(merged, changes);
    json_object_update(merged, (json_t *)changes);
    return merged;
}

const char *mutable_difference(const json_t *given, const json_t *now)
{
    const char *name;
    json_t *value;
    json_object_foreach ((json_t *)given, name, value) {
        json_t *other = json_object_get(now, name);
        if (!other || !json_equal(value, other))
            return name;
    }
    return NULL;
}
