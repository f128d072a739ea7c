/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/service/node/domains.h"
#include <string.h>
#include "common/error.h"
#include "driver/kube/client.h"
#include "driver/kube/resource.h"

#define ASK_MS 30000

const char *domains_name(const char *label)
{
    const char *slash = strchr(label, '/');
    return slash ? slash + 1 : label;
}

char *domains_prefix(const char *driver_name)
{
    g_autofree char *lower = g_ascii_strdown(driver_name, -1);
    return g_strconcat("topology.", lower, "/", NULL);
}

/* Hearth's own, of which a node has one each. */
static gboolean is_taken(const char *name)
{
    return strcmp(name, "node") == 0 || strcmp(name, "tier") == 0;
}

char **domains_parse(const char *text, GError **error)
{
    g_auto(GStrv) labels = g_strsplit(text, ",", -1);
    for (char **label = labels; *label; label++) {
        g_strstrip(*label);
        const char *name = domains_name(*label), *why = NULL;
        if (!*name || strchr(name, '/'))
            why = "is no label of a node";
        else if (is_taken(name))
            why = "has the name of a topology that is Hearth's own";
        for (char **other = labels; !why && other < label; other++) {
            if (strcmp(domains_name(*other), name) == 0)
                why = "has the name of another";
        }
        if (why) {
            g_autofree char *valid = g_utf8_make_valid(*label, (gssize)strnlen(*label, 100));
            g_autofree char *shown = g_strescape(valid, NULL);
            hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                        "--domainlabels: \"%s\" %s; give [PREFIX/]NAME,[PREFIX/]NAME", shown, why);
            return NULL;
        }
    }
    return g_steal_pointer(&labels);
}

static json_t *ask(const char *kubeconfig, const char *node, GError **error)
{
    static const KubeResource nodes = {"", "v1", "nodes"};
    KubeConfig *config = kube_config_load(kubeconfig, error);
    if (!config)
        return NULL;
    g_autoptr(KubeClient) client = kube_client_new(config, NULL);
    g_autofree char *path = kube_path(&nodes, NULL, node, NULL);
    const KubeRequest request = {.method = "GET", .path = path, .timeout_ms = ASK_MS};
    json_t *answer = NULL;
    if (!kube_request(client, &request, &answer, error))
        g_prefix_error(error, "--domainlabels: asking Kubernetes for node %s: ", node);
    return answer;
}

GHashTable *domains_of_node(const char *kubeconfig, const char *node, char *const *labels,
                            GError **error)
{
    json_auto_t *answer = ask(kubeconfig, node, error);
    if (!answer)
        return NULL;
    const json_t *have = json_object_get(json_object_get(answer, "metadata"), "labels");
    g_autoptr(GHashTable) domains = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    for (char *const *label = labels; *label; label++) {
        const char *value = json_string_value(json_object_get(have, *label));
        if (!value) {
            hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                        "--domainlabels: node %s has no label %s; give it one, or leave the label "
                        "out",
                        node, *label);
            return NULL;
        }
        g_hash_table_insert(domains, g_strdup(domains_name(*label)), g_strdup(value));
    }
    return g_steal_pointer(&domains);
}
