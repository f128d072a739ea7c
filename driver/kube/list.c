/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/kube/list.h"
#include "driver/kube/error.h"

#define PAGE 250
#define ACCEPT_METADATA "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

/* What the server answers is not a list. */
static gboolean malformed(const char *path, const char *why, GError **error)
{
    g_set_error(error, KUBE_ERROR, KUBE_ERROR_MALFORMED, "GET %s: %s", path, why);
    return FALSE;
}

static gboolean take_page(const char *path, const json_t *page, const KubeListing *listing,
                          char **next, char **version, GError **error)
{
    const json_t *items = json_object_get(page, "items");
    const json_t *meta = json_object_get(page, "metadata");
    const char *rv = json_string_value(json_object_get(meta, "resourceVersion"));
    /* Go writes an empty list as null at times. */
    if (!json_is_object(page) || (items && !json_is_array(items) && !json_is_null(items)))
        return malformed(path, "the answer has no items", error);
    if (!rv || !*rv)
        return malformed(path, "the list has no resourceVersion", error);
    size_t i;
    json_t *object;
    json_array_foreach (items, i, object) {
        if (!json_is_object(object))
            return malformed(path, "an item is no object", error);
        listing->on_object(object, listing->data);
    }
    g_free(*next);
    *next = g_strdup(json_string_value(json_object_get(meta, "continue")));
    g_free(*version);
    *version = g_strdup(rv);
    return TRUE;
}

gboolean kube_list(KubeClient *client, const KubeSelection *s, const KubeListing *listing,
                   char **resource_version, GError **error)
{
    g_autofree char *path = kube_path(&s->resource, s->namespace, NULL, NULL);
    g_autofree char *limit = g_strdup_printf("%u", listing->page ? listing->page : PAGE);
    g_autofree char *next = NULL, *version = NULL;
    do {
        const char *query[9] = {"limit", limit};
        guint n = 2;
        if (s->labels)
            query[n++] = "labelSelector", query[n++] = s->labels;
        if (s->fields)
            query[n++] = "fieldSelector", query[n++] = s->fields;
        if (next && *next)
            query[n++] = "continue", query[n++] = next;
        const KubeRequest r = {.method = "GET",
                               .path = path,
                               .query = query,
                               .accept = s->metadata ? ACCEPT_METADATA : NULL,
                               .timeout_ms = listing->timeout_ms,
                               .cancel = listing->cancel};
        json_auto_t *answer = NULL;
        if (!kube_request(client, &r, &answer, error))
            return FALSE;
        if (!take_page(path, answer, listing, &next, &version, error))
            return FALSE;
    } while (next && *next);
    if (resource_version)
        *resource_version = g_steal_pointer(&version);
    return TRUE;
}
