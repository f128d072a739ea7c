/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/affinity/preferences.h"
#include <string.h>
#include "driver/warmth/labels.h"

#define PREFERRED "preferredDuringSchedulingIgnoredDuringExecution"
#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"
#define NODE_AFFINITY "/spec/affinity/nodeAffinity"
/* As a JSON pointer has it (RFC 6901). */
#define ANNOTATION_PATH "/metadata/annotations/csi.hearth.dev~1prefers"

/* Strings of the API may hold NUL, which no name of ours does. */
static const char *text_of(const json_t *value)
{
    const char *text = json_string_value(value);
    return text && strlen(text) == json_string_length(value) ? text : NULL;
}

static const json_t *get(const json_t *object, const char *a, const char *b)
{
    return json_object_get(json_object_get(object, a), b);
}

/* ---- reading the pod ---- */

static gint by_name(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* In the order of their names, borrowed; one may be there twice. */
static GPtrArray *claims_of(const json_t *pod)
{
    GPtrArray *claims = g_ptr_array_new();
    const json_t *volume;
    size_t i;
    json_array_foreach (get(pod, "spec", "volumes"), i, volume) {
        const char *claim = text_of(get(volume, "persistentVolumeClaim", "claimName"));
        if (claim)
            g_ptr_array_add(claims, (gpointer)claim);
    }
    g_ptr_array_sort(claims, by_name);
    return claims;
}

/* prefix: whether any label of ours counts, or this one. */
static gboolean term_speaks_of(const json_t *term, const char *label, gboolean prefix)
{
    const json_t *expression;
    size_t i;
    json_array_foreach (json_object_get(term, "matchExpressions"), i, expression) {
        const json_t *key = json_object_get(expression, "key");
        const char *text = text_of(key), *start = json_string_value(key);
        if ((text && g_str_equal(text, label)) ||
            (prefix && start && g_str_has_prefix(start, WARM_LABEL_PREFIX)))
            return TRUE;
    }
    return FALSE;
}

static gboolean speaks_of(const json_t *affinity, const char *label, gboolean prefix)
{
    const json_t *term;
    size_t i;
    json_array_foreach (json_object_get(affinity, PREFERRED), i, term) {
        if (term_speaks_of(json_object_get(term, "preference"), label, prefix))
            return TRUE;
    }
    json_array_foreach (get(affinity, REQUIRED, "nodeSelectorTerms"), i, term) {
        if (term_speaks_of(term, label, prefix))
            return TRUE;
    }
    return FALSE;
}

/* ---- the patch ---- */

static GPtrArray *labels_to_add(const json_t *pod, const char *namespace,
                                const PreferencesHints *hints)
{
    const json_t *affinity = get(json_object_get(pod, "spec"), "affinity", "nodeAffinity");
    /* What was added here before says so. */
    const gboolean ours =
        get(json_object_get(pod, "metadata"), "annotations", PREFERENCES_ANNOTATION) != NULL;
    g_autoptr(GPtrArray) claims = claims_of(pod);
    GPtrArray *labels = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < claims->len; i++) {
        char dataset[DATASET_KEY_DIGITS + 1] = "";
        if ((i > 0 && g_str_equal(claims->pdata[i], claims->pdata[i - 1])) ||
            !hints->find(namespace, claims->pdata[i], dataset, hints->data) || !*dataset)
            continue;
        g_autofree char *label = g_strconcat(WARM_LABEL_PREFIX, dataset, NULL);
        if (!speaks_of(affinity, label, !ours) &&
            !g_ptr_array_find_with_equal_func(labels, label, g_str_equal, NULL))
            g_ptr_array_add(labels, g_steal_pointer(&label));
    }
    return labels;
}

static void add(json_t *patch, const char *path, json_t *value)
{
    json_array_append_new(patch,
                          json_pack("{s:s, s:s, s:o}", "op", "add", "path", path, "value", value));
}

static void add_terms(json_t *patch, const char *label)
{
    static const struct {
        int weight;
        const char *step;
    } steps[] = {{100, "100"}, {75, "75"}, {50, "50"}, {25, "25"}};
    for (gsize i = 0; i < G_N_ELEMENTS(steps); i++)
        add(patch, NODE_AFFINITY "/" PREFERRED "/-",
            json_pack("{s:i, s:{s:[{s:s, s:s, s:[s]}]}}", "weight", steps[i].weight, "preference",
                      "matchExpressions", "key", label, "operator", "In", "values", steps[i].step));
}

static void add_annotation(json_t *patch, const json_t *metadata, GPtrArray *labels)
{
    const json_t *annotations = json_object_get(metadata, "annotations");
    const json_t *before = json_object_get(annotations, PREFERENCES_ANNOTATION);
    g_autoptr(GString) value = g_string_new(NULL);
    if (json_is_string(before)) {
        g_string_append_len(value, json_string_value(before), (gssize)json_string_length(before));
        g_string_append_c(value, ',');
    }
    for (guint i = 0; i < labels->len; i++)
        g_string_append_printf(value, "%s%s", i ? "," : "", (const char *)labels->pdata[i]);
    if (!json_is_object(annotations))
        add(patch, "/metadata/annotations", json_object());
    add(patch, ANNOTATION_PATH, json_stringn(value->str, value->len));
}

json_t *preferences_patch(const json_t *pod, const char *namespace, const PreferencesHints *hints)
{
    g_autoptr(GPtrArray) labels = labels_to_add(pod, namespace, hints);
    if (labels->len == 0)
        return NULL;
    const json_t *affinity = get(pod, "spec", "affinity");
    const json_t *of_nodes = json_object_get(affinity, "nodeAffinity");
    json_t *patch = json_array();
    if (!json_is_object(affinity))
        add(patch, "/spec/affinity", json_object());
    if (!json_is_object(of_nodes))
        add(patch, NODE_AFFINITY, json_object());
    if (!json_is_array(json_object_get(of_nodes, PREFERRED)))
        add(patch, NODE_AFFINITY "/" PREFERRED, json_array());
    for (guint i = 0; i < labels->len; i++)
        add_terms(patch, labels->pdata[i]);
    add_annotation(patch, json_object_get(pod, "metadata"), labels);
    return patch;
}
