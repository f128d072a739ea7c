/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/kube/resource.h"

static void append(GString *path, const char *part)
{
    g_string_append_c(path, '/');
    g_string_append_uri_escaped(path, part, NULL, FALSE);
}

char *kube_path(const KubeResource *resource, const char *namespace, const char *name,
                const char *subresource)
{
    GString *path = g_string_new(*resource->group ? "/apis" : "/api");
    if (*resource->group)
        append(path, resource->group);
    append(path, resource->version);
    if (namespace) {
        append(path, "namespaces");
        append(path, namespace);
    }
    append(path, resource->plural);
    if (name)
        append(path, name);
    if (name && subresource)
        append(path, subresource);
    return g_string_free(path, FALSE);
}
