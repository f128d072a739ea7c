/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmth/cleanup.h"
#include "driver/kube/error.h"
#include "driver/kube/list.h"
#include "driver/volume/topology.h"
#include "driver/warmth/labels.h"
#include "driver/warmth/resources.h"

#define ANSWER_MS 30000

static const KubeResource node_resource = {"", "v1", "nodes"};

/* A change to one object. */
typedef struct Act {
    const KubeResource *resource;
    char *namespace, *name;
    json_t *patch; /* NULL: delete it */
} Act;

static void act_free(void *data)
{
    Act *act = data;
    g_clear_pointer(&act->patch, json_decref);
    g_free(act->namespace);
    g_free(act->name);
    g_free(act);
}

typedef struct Gather {
    const KubeResource *resource;
    GPtrArray *acts;
} Gather;

static void add_act(const Gather *g, const json_t *object, json_t *patch)
{
    const json_t *meta = json_object_get(object, "metadata");
    Act *act = g_new(Act, 1);
    *act = (Act){g->resource, g_strdup(json_string_value(json_object_get(meta, "namespace"))),
                 g_strdup(json_string_value(json_object_get(meta, "name"))), patch};
    g_ptr_array_add(g->acts, act);
}

static void on_object(const json_t *object, void *data)
{
    add_act(data, object, NULL);
}

static void on_node(const json_t *object, void *data)
{
    json_auto_t *ours = json_object();
    json_t *value;
    const char *name;
    json_object_foreach (json_object_get(json_object_get(object, "metadata"), "labels"), name,
                         value)
        if (g_str_has_prefix(name, WARM_LABEL_PREFIX) || g_str_has_prefix(name, TOPOLOGY_PREFIX))
            json_object_set_new(ours, name, json_null());
    if (json_object_size(ours))
        add_act(data, object, json_pack("{s:{s:O}}", "metadata", "labels", ours));
}

static gboolean do_act(KubeClient *client, const Act *act, GError **error)
{
    g_autofree char *path = kube_path(act->resource, act->namespace, act->name, NULL);
    const KubeRequest request = {.method = act->patch ? "PATCH" : "DELETE",
                                 .path = path,
                                 .body = act->patch,
                                 .body_type = KUBE_BODY_MERGE_PATCH};
    g_autoptr(GError) cause = NULL;
    if (kube_request(client, &request, NULL, &cause) ||
        g_error_matches(cause, KUBE_ERROR, KUBE_ERROR_NOT_FOUND))
        return TRUE;
    if (error && !*error)
        g_propagate_error(error, g_steal_pointer(&cause));
    return FALSE;
}

static gboolean clean(KubeClient *client, const KubeSelection *selection,
                      void (*each)(const json_t *object, void *data), guint *done, GError **error)
{
    g_autoptr(GPtrArray) acts = g_ptr_array_new_with_free_func(act_free);
    Gather gather = {&selection->resource, acts};
    g_autoptr(GError) cause = NULL;
    gboolean good = TRUE;
    const KubeListing listing = {.timeout_ms = ANSWER_MS, .on_object = each, .data = &gather};
    if (!kube_list(client, selection, &listing, NULL, &cause)) {
        if (g_error_matches(cause, KUBE_ERROR, KUBE_ERROR_NOT_FOUND))
            return TRUE;
        if (error && !*error)
            g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    for (guint i = 0; i < acts->len; i++) {
        gboolean did = do_act(client, acts->pdata[i], error);
        *done += did;
        good = good && did;
    }
    return good;
}

gboolean warm_cleanup(KubeClient *client, WarmCleanup *done, GError **error)
{
    const KubeSelection nodes = {.resource = node_resource, .metadata = TRUE},
                        caches = {.resource = node_cache_resource, .metadata = TRUE},
                        hints = {
                            .resource = hint_resource, .labels = HINT_SELECTOR, .metadata = TRUE};
    *done = (WarmCleanup){0};
    gboolean good = clean(client, &caches, on_object, &done->node_caches, error);
    good &= clean(client, &hints, on_object, &done->hints, error);
    good &= clean(client, &nodes, on_node, &done->nodes, error);
    return good;
}
