/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/hearthd/crush_location.h"
#include <pthread.h>
#include <string.h>
#include "driver/kube/client.h"
#include "driver/kube/resource.h"

/* The longest time that a pod waits for the API server. */
#define READ_MS 3000
#define KEPT_US (10 * 60 * G_USEC_PER_SEC)
/* Between two tries that fail. */
#define PAUSE_US (30 * G_USEC_PER_SEC)

static const KubeResource node_resource = {"", "v1", "nodes"};

struct CrushLocation {
    char *kubeconfig, *node;
    pthread_mutex_t lock; /* guards the fields below; not held during a request to the API server */
    KubeClient *client;   /* made once */
    json_t *labels;       /* NULL: not known */
    gint64 read_us;       /* when they were read, or last tried to be; 0: never */
};

static void add_bucket(GString *location, const char *label, const char *value)
{
    const char *slash = strrchr(label, '/');
    const char *type = slash ? slash + 1 : label;
    if (strcmp(type, "hostname") == 0)
        type = "host";
    g_autofree char *name = g_strdelimit(g_strdup(value), ".", '-');
    g_string_append_printf(location, "%s%s=%s", location->len ? " " : "", type, name);
}

char *crush_location_from_labels(const json_t *labels, char *const *names)
{
    GString *location = g_string_new(NULL);
    for (char *const *name = names; name && *name; name++) {
        const char *value = json_string_value(json_object_get(labels, *name));
        if (value && *value)
            add_bucket(location, *name, value);
    }
    return g_string_free(location, location->len == 0);
}

CrushLocation *crush_location_new(const char *kubeconfig, const char *node)
{
    CrushLocation *c = g_new0(CrushLocation, 1);
    c->kubeconfig = g_strdup(kubeconfig);
    c->node = g_strdup(node);
    pthread_mutex_init(&c->lock, NULL);
    return c;
}

void crush_location_free(CrushLocation *c)
{
    if (!c)
        return;
    kube_client_free(c->client);
    g_clear_pointer(&c->labels, json_decref);
    pthread_mutex_destroy(&c->lock);
    g_free(c->kubeconfig);
    g_free(c->node);
    g_free(c);
}

static gboolean client_locked(CrushLocation *c, GError **error)
{
    KubeConfig *config = c->client ? NULL : kube_config_load(c->kubeconfig, error);
    if (config)
        c->client = kube_client_new(config, NULL);
    return c->client != NULL;
}

/* The Node's labels, the caller's. */
static json_t *read_labels(CrushLocation *c, GError **error)
{
    json_auto_t *node = NULL;
    g_autofree char *path = kube_path(&node_resource, NULL, c->node, NULL);
    const KubeRequest request = {.method = "GET", .path = path, .timeout_ms = READ_MS};
    if (!kube_request(c->client, &request, &node, error))
        return NULL;
    json_t *labels = json_object_get(json_object_get(node, "metadata"), "labels");
    labels = json_is_object(labels) ? json_incref(labels) : json_object();
    return labels;
}

static void renew(CrushLocation *c)
{
    g_autoptr(GError) error = NULL;
    pthread_mutex_lock(&c->lock);
    const gint64 now = g_get_monotonic_time();
    const gboolean due =
        c->read_us == 0 || now - c->read_us > (c->labels ? (gint64)KEPT_US : (gint64)PAUSE_US);
    gboolean ready = FALSE;
    if (due) {
        c->read_us = now;
        ready = client_locked(c, &error);
    }
    pthread_mutex_unlock(&c->lock);
    if (!due)
        return;
    json_t *labels = ready ? read_labels(c, &error) : NULL;
    if (!labels) {
        g_warning("node %s: its labels cannot be read, so reads go to no nearer copy (readAffinity "
                  "in config.json): %s",
                  c->node, error->message);
        return;
    }
    pthread_mutex_lock(&c->lock);
    json_auto_t *old = c->labels; /* freed after the lock */
    c->labels = labels;
    pthread_mutex_unlock(&c->lock);
}

char *crush_location_get(CrushLocation *c, char *const *names)
{
    renew(c);
    pthread_mutex_lock(&c->lock);
    json_auto_t *labels = json_incref(c->labels);
    pthread_mutex_unlock(&c->lock);
    char *location = labels ? crush_location_from_labels(labels, names) : NULL;
    if (labels && !location)
        g_warning("node %s has none of the labels of readAffinity.crushLocationLabels in "
                  "config.json: reads go to no nearer copy",
                  c->node);
    return location;
}
