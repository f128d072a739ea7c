/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/volume/qos.h"

#define BASE_SIZE "baseVolSizeBytes"
#define GIB ((gint64)1 << 30)

typedef struct Rule {
    const char *limit; /* set outright, as mutable parameters can */
    const char *base, *max, *per_gib;
} Rule;

static const Rule rules[] = {
    {"iopsPerSecond", "baseIops", "maxIops", "iopsPerGiB"},
    {"readIopsPerSecond", "baseReadIops", "maxReadIops", "readIopsPerGiB"},
    {"writeIopsPerSecond", "baseWriteIops", "maxWriteIops", "writeIopsPerGiB"},
    {"bytesPerSecond", "baseBps", "maxBps", "bpsPerGiB"},
    {"readBytesPerSecond", "baseReadBps", "maxReadBps", "readBpsPerGiB"},
    {"writeBytesPerSecond", "baseWriteBps", "maxWriteBps", "writeBpsPerGiB"},
};

static gint64 number(const json_t *object, const char *name)
{
    return (gint64)json_integer_value(json_object_get(object, name));
}

static gboolean has(const json_t *object, const char *name)
{
    return json_object_get(object, name) != NULL;
}

static gboolean has_rule(const json_t *object, const Rule *rule)
{
    return has(object, rule->base) || has(object, rule->max);
}

gboolean qos_check(const json_t *given, GError **error)
{
    for (gsize i = 0; i < G_N_ELEMENTS(rules); i++) {
        const Rule *rule = &rules[i];
        if (!has(given, rule->per_gib) || has_rule(given, rule))
            continue;
        return hearth_fail(
            error, HEARTH_ERROR_INVALID_ARGUMENT,
            "%s alone limits nothing: it adds to %s for each GiB above %s; give both in the "
            "same class, or leave %s out",
            rule->per_gib, rule->base, BASE_SIZE, rule->per_gib);
    }
    return TRUE;
}

static gint64 by_rule(const json_t *from, const Rule *rule, gint64 base_bytes, gint64 bytes)
{
    const gint64 max = number(from, rule->max);
    gint64 limit = number(from, rule->base), more = 0;
    if (limit == 0)
        return max;
    if (base_bytes > 0 && bytes > base_bytes &&
        (__builtin_mul_overflow((bytes - base_bytes) / GIB, number(from, rule->per_gib), &more) ||
         __builtin_add_overflow(limit, more, &limit)))
        limit = G_MAXINT64;
    return max > 0 ? MIN(limit, max) : limit;
}

json_t *qos_limits(const json_t *params, const json_t *changes, gint64 bytes)
{
    json_t *limits = NULL;
    const gint64 base_bytes = number(has(changes, BASE_SIZE) ? changes : params, BASE_SIZE);
    for (gsize i = 0; i < G_N_ELEMENTS(rules); i++) {
        const Rule *rule = &rules[i];
        const json_t *from = has_rule(changes, rule) ? changes : params;
        gint64 limit;
        if (has(changes, rule->limit))
            limit = number(changes, rule->limit);
        else if (has_rule(from, rule))
            limit = by_rule(from, rule, base_bytes, bytes);
        else
            continue;
        if (!limits)
            limits = json_object();
        json_object_set_new(limits, rule->limit, json_integer(limit));
    }
    return limits;
}

void qos_forget(json_t *now, const json_t *changes)
{
    for (gsize i = 0; i < G_N_ELEMENTS(rules); i++) {
        const Rule *rule = &rules[i];
        if (!has_rule(changes, rule) && !has(changes, rule->limit))
            continue;
        const char *const names[] = {rule->limit, rule->base, rule->max, rule->per_gib};
        for (gsize k = 0; k < G_N_ELEMENTS(names); k++)
            json_object_del(now, names[k]);
    }
}
