/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmth/labels.h"
#include <string.h>
#include "driver/volume/topology.h"

#define HYSTERESIS 10
#define STEPS 4

static const double edges[STEPS] = {25, 50, 75, 100};
static const char *const names[STEPS] = {"25", "50", "75", "100"};

typedef struct Dataset {
    char *id;
    guint64 bytes, total;
    int step; /* of names; -1: none */
    gint64 changed_ms;
    gboolean chosen;   /* among the WARM_LABELS_MAX */
    gboolean reported; /* by the latest report */
} Dataset;

struct WarmLabels {
    GHashTable *datasets; /* id -> Dataset */
    GHashTable *have;     /* name of a label of ours -> value */
    gint64 alive_ms, patched_ms;
    char *tier, *zone; /* tier NULL: not reported; zone NULL: none */
    gboolean reported; /* ever; before that the labels are not changed */
    gboolean gone;
    gboolean cleared; /* a patch that removes everything was returned, and no report came since */
};

static void dataset_free(void *data)
{
    Dataset *d = data;
    g_free(d->id);
    g_free(d);
}

WarmLabels *warm_labels_new(gint64 now_ms)
{
    WarmLabels *l = g_new0(WarmLabels, 1);
    l->datasets = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, dataset_free);
    l->have = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    l->alive_ms = now_ms;
    l->patched_ms = now_ms - WARM_PATCH_MS;
    return l;
}

void warm_labels_free(WarmLabels *l)
{
    if (!l)
        return;
    g_hash_table_unref(l->datasets);
    g_hash_table_unref(l->have);
    g_free(l->tier);
    g_free(l->zone);
    g_free(l);
}

static gboolean is_id(const char *text)
{
    return text && strspn(text, "0123456789abcdef") == WARM_LABEL_DIGITS &&
           strlen(text) == WARM_LABEL_DIGITS;
}

static gboolean is_reached(const Dataset *d, double percent, int step)
{
    /* 100 % means complete, however large the dataset is. */
    return step == STEPS - 1 ? d->bytes >= d->total : percent >= edges[step];
}

/* The step that the cached bytes lead to. */
static int target_step(const Dataset *d)
{
    int step = d->step;
    if (d->total == 0)
        return -1;
    const double percent = 100 * ((double)d->bytes / (double)d->total);
    while (step + 1 < STEPS && is_reached(d, percent, step + 1))
        step++;
    while (step >= 0 && percent < edges[step] - HYSTERESIS)
        step--;
    return step;
}

static void update_step(Dataset *d, gint64 now_ms)
{
    const int step = target_step(d);
    if (step == d->step || now_ms - d->changed_ms < WARM_DWELL_MS)
        return;
    d->step = step;
    d->changed_ms = now_ms;
}

static void update_steps(WarmLabels *l, gint64 now_ms)
{
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, l->datasets);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const Dataset *d = value;
        update_step(value, now_ms);
        if (d->step < 0 && !d->reported)
            g_hash_table_iter_remove(&iter);
    }
}

/* Starts from the step of the node's label, if it has one. */
static Dataset *dataset_new(const WarmLabels *l, const char *id)
{
    Dataset *d = g_new0(Dataset, 1);
    g_autofree char *label = g_strconcat(WARM_LABEL_PREFIX, id, NULL);
    const char *value = g_hash_table_lookup(l->have, label);
    d->id = g_strdup(id);
    d->step = -1;
    d->changed_ms = G_MININT64 / 2;
    for (int step = 0; step < STEPS; step++) {
        if (g_strcmp0(value, names[step]) == 0) {
            d->step = step;
            d->chosen = TRUE;
        }
    }
    return d;
}

void warm_labels_report(WarmLabels *l, const WarmDataset *datasets, gsize n, gint64 alive_ms,
                        gint64 now_ms)
{
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, l->datasets);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        Dataset *d = value;
        d->bytes = d->total = 0;
        d->reported = FALSE;
    }
    for (gsize i = 0; i < n; i++) {
        if (!is_id(datasets[i].id))
            continue;
        Dataset *d = g_hash_table_lookup(l->datasets, datasets[i].id);
        if (!d) {
            d = dataset_new(l, datasets[i].id);
            g_hash_table_insert(l->datasets, d->id, d);
        }
        d->bytes = datasets[i].bytes;
        d->total = datasets[i].total;
        d->reported = TRUE;
    }
    l->alive_ms = alive_ms;
    l->reported = TRUE;
    l->gone = FALSE;
    update_steps(l, now_ms);
}

void warm_labels_place(WarmLabels *l, const char *tier, const char *zone)
{
    g_free(l->tier);
    g_free(l->zone);
    l->tier = g_strdup(tier);
    l->zone = g_strdup(zone);
}

void warm_labels_gone(WarmLabels *l)
{
    l->gone = TRUE;
}

void warm_labels_have(WarmLabels *l, const json_t *node_labels)
{
    const char *name;
    json_t *value;
    g_hash_table_remove_all(l->have);
    /* The cast is the macro's: it does not change the object. */
    json_object_foreach ((json_t *)node_labels, name, value) {
        if (g_str_has_prefix(name, WARM_LABEL_PREFIX) || strcmp(name, TOPOLOGY_TIER) == 0 ||
            strcmp(name, TOPOLOGY_ZONE) == 0)
            g_hash_table_insert(l->have, g_strdup(name), g_strdup(json_string_value(value)));
    }
}

/* A dataset that has a label counts for a tenth more. */
static double weight(const Dataset *d)
{
    return (double)d->bytes * (d->chosen ? 1.1 : 1);
}

static gint by_weight(gconstpointer left, gconstpointer right)
{
    const Dataset *a = *(const Dataset *const *)left, *b = *(const Dataset *const *)right;
    const double difference = weight(b) - weight(a);
    if (difference == 0)
        return strcmp(a->id, b->id);
    return difference > 0 ? 1 : -1;
}

/* The tier or the zone; the present label until the node has reported them. */
static void want_location(const WarmLabels *l, GHashTable *labels, const char *name,
                          const char *reported)
{
    const char *value = l->tier ? reported : g_hash_table_lookup(l->have, name);
    if (value)
        g_hash_table_insert(labels, g_strdup(name), (gpointer)value);
}

/* Label -> value; the values are borrowed. */
static GHashTable *wanted_labels(WarmLabels *l)
{
    GHashTable *labels = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GPtrArray) warm = g_ptr_array_new();
    GHashTableIter iter;
    gpointer value;
    want_location(l, labels, TOPOLOGY_TIER, l->tier);
    want_location(l, labels, TOPOLOGY_ZONE, l->zone);
    g_hash_table_iter_init(&iter, l->datasets);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        Dataset *d = value;
        if (d->step >= 0)
            g_ptr_array_add(warm, d);
        else
            d->chosen = FALSE;
    }
    g_ptr_array_sort(warm, by_weight);
    for (guint i = 0; i < warm->len; i++) {
        Dataset *d = warm->pdata[i];
        d->chosen = i < WARM_LABELS_MAX;
        if (d->chosen)
            g_hash_table_insert(labels, g_strconcat(WARM_LABEL_PREFIX, d->id, NULL),
                                (gpointer)names[d->step]);
    }
    return labels;
}

/* The merge patch from the present labels to the wanted ones; NULL: they are the same. */
static json_t *difference(const WarmLabels *l, GHashTable *labels)
{
    json_auto_t *changes = json_object();
    GHashTableIter iter;
    gpointer name, value;
    g_hash_table_iter_init(&iter, labels);
    while (g_hash_table_iter_next(&iter, &name, &value)) {
        if (g_strcmp0(g_hash_table_lookup(l->have, name), value) != 0)
            json_object_set_new(changes, name, json_string(value));
    }
    g_hash_table_iter_init(&iter, l->have);
    while (g_hash_table_iter_next(&iter, &name, NULL)) {
        if (!g_hash_table_contains(labels, name))
            json_object_set_new(changes, name, json_null());
    }
    if (json_object_size(changes) == 0)
        return NULL;
    return json_pack("{s:{s:O}}", "metadata", "labels", changes);
}

json_t *warm_labels_patch(WarmLabels *l, gint64 now_ms)
{
    const gboolean dead = l->gone || now_ms - l->alive_ms > WARM_STALE_MS;
    /* A node that comes back starts from nothing. */
    if (dead)
        g_hash_table_remove_all(l->datasets);
    else
        l->cleared = FALSE;
    if (!dead && !l->reported)
        return NULL;
    update_steps(l, now_ms);
    /* The first removal does not wait after an earlier patch; its repetition does. */
    if (now_ms - l->patched_ms < WARM_PATCH_MS && !(dead && !l->cleared))
        return NULL;
    g_autoptr(GHashTable) labels = wanted_labels(l);
    json_t *patch = difference(l, labels);
    if (patch) {
        l->patched_ms = now_ms;
        l->cleared = dead;
    }
    return patch;
}
