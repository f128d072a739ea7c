/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmup/events.h"
#include "common/field.h"
#include "common/size.h"
#include "driver/kube/event.h"

static void event_free(void *data)
{
    WarmupEvent *event = data;
    g_free(event->name);
    g_free(event->message);
    g_free(event);
}

/* Takes the message. about: what tells it from others of the run, or "". */
static void add(GPtrArray *events, const Warmup *w, const json_t *status, const char *reason,
                const char *about, char *message)
{
    g_autofree char *key = g_strdup_printf("%s|%s|%" G_GINT64_FORMAT "|%s|%s", w->uid,
                                           field_text(status, "run"), w->generation, reason, about);
    WarmupEvent *event = g_new(WarmupEvent, 1);
    *event = (WarmupEvent){.name = kube_event_name(w->name, key),
                           .warning = g_str_equal(reason, "Failed"),
                           .reason = reason,
                           .message = message};
    g_ptr_array_add(events, event);
}

/* As the spec names it; the caller's. */
static char *what(const Warmup *w)
{
    return w->claim ? g_strdup_printf("the dataset of claim %s", w->claim)
                    : g_strdup_printf("dataset %s", w->dataset);
}

static const json_t *find_node(const json_t *status, const char *name)
{
    const json_t *node;
    size_t i;
    json_array_foreach (json_object_get(status, "nodes"), i, node)
        if (g_str_equal(field_text(node, "name"), name))
            return node;
    return NULL;
}

static gboolean has_succeeded(const json_t *node)
{
    return g_str_equal(field_text(node, "state"), "Succeeded");
}

static void add_nodes(GPtrArray *events, const Warmup *w, const json_t *before, const json_t *after,
                      gboolean same_run)
{
    const json_t *nodes = json_object_get(after, "nodes"), *node;
    size_t i;
    if (json_array_size(nodes) > WARMUP_EVENTS_NODES)
        return;
    json_array_foreach (nodes, i, node) {
        const char *name = field_text(node, "name");
        if (!has_succeeded(node) || (same_run && has_succeeded(find_node(before, name))))
            continue;
        g_autofree char *size = size_format(field_count(node, "totalBytes"));
        add(events, w, after, "NodeWarm", name, g_strdup_printf("%s has %s of it", name, size));
    }
}

static const char *failure_of(const json_t *status)
{
    const json_t *condition;
    size_t i;
    json_array_foreach (json_object_get(status, "conditions"), i, condition)
        if (g_str_equal(field_text(condition, "type"), "Failed"))
            return field_text(condition, "message");
    return "";
}

GPtrArray *warmup_events(const Warmup *w, const json_t *before, const json_t *after)
{
    GPtrArray *events = g_ptr_array_new_with_free_func(event_free);
    const char *phase = field_text(after, "phase"), *was = field_text(before, "phase");
    const gboolean same_run = g_str_equal(field_text(before, "run"), field_text(after, "run"));
    const gboolean same_phase = same_run && g_str_equal(phase, was);
    const gboolean begun = *field_text(after, "run") && !same_run;
    const size_t nodes = json_array_size(json_object_get(after, "nodes"));
    g_autofree char *dataset = what(w);
    if (begun)
        add(events, w, after, "Started", "",
            g_strdup_printf("warming %s on %zu node%s", dataset, nodes, nodes == 1 ? "" : "s"));
    add_nodes(events, w, before, after, same_run);
    if (g_str_equal(phase, "Warm") && !same_phase)
        add(events, w, after, "Completed", "",
            g_strdup_printf("%s is warm on %s nodes", dataset, field_text(after, "warmNodes")));
    if (g_str_equal(phase, "Failed") && !same_phase)
        add(events, w, after, "Failed", failure_of(after), g_strdup(failure_of(after)));
    return events;
}
