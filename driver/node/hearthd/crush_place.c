/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/hearthd/crush_place.h"
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

struct CrushPlace {
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

char *crush_location(const json_t *labels, char *const *names)
{
    GString *location = g_string_new(NULL);
    for (char *const *name = names; name && *name; name++) {
        const char *value = json_string_value(json_object_get(labels, *name));
        if (value && *value)
            add_bucket(location, *name, value);
    }
    return g_string_free(location, location->len == 0);
}

CrushPlace *crush_place_new(const char *kubeconfig, const char *node)
{
    CrushPlace *p = g_new0(CrushPlace, 1);
    p->kubeconfig = g_strdup(kubeconfig);
    p->node = g_strdup(node);
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

void crush_place_free(CrushPlace *p)
{
    if (!p)
        return;
    kube_client_free(p->client);
    g_clear_pointer(&p->labels, json_decref);
    pthread_mutex_destroy(&p->lock);
    g_free(p->kubeconfig);
    g_free(p->node);
    g_free(p);
}

static gboolean client_locked(CrushPlace *p, GError **error)
{
    KubeConfig *config = p->client ? NULL : kube_config_load(p->kubeconfig, error);
    if (config)
        p->client = kube_client_new(config, NULL);
    return p->client != NULL;
}

/* The Node's labels, the caller's. */
static json_t *read_labels(CrushPlace *p, GError **error)
{
    json_auto_t *node = NULL;
    g_autofree char *path = kube_path(&node_resource, NULL, p->node, NULL);
    const KubeRequest request = {.method = "GET", .path = path, .timeout_ms = READ_MS};
    if (!kube_request(p->client, &request, &node, error))
        return NULL;
    json_t *labels = json_object_get(json_object_get(node, "metadata"), "labels");
    labels = json_is_object(labels) ? json_incref(labels) : json_object();
    return labels;
}

static void renew(CrushPlace *p)
{
    g_autoptr(GError) error = NULL;
    pthread_mutex_lock(&p->lock);
    const gint64 now = g_get_monotonic_time();
    const gboolean due =
        p->read_us == 0 || now - p->read_us > (p->labels ? (gint64)KEPT_US : (gint64)PAUSE_US);
    gboolean ready = FALSE;
    if (due) {
        p->read_us = now;
        ready = client_locked(p, &error);
    }
    pthread_mutex_unlock(&p->lock);
    if (!due)
        return;
    json_t *labels = ready ? read_labels(p, &error) : NULL;
    if (!labels) {
        g_warning("node %s: its labels cannot be read, so reads go to no nearer copy (readAffinity "
                  "in config.json): %s",
                  p->node, error->message);
        return;
    }
    pthread_mutex_lock(&p->lock);
    json_auto_t *old = p->labels; /* freed after the lock */
    p->labels = labels;
    pthread_mutex_unlock(&p->lock);
}

char *crush_place_location(CrushPlace *p, char *const *names)
{
    renew(p);
    pthread_mutex_lock(&p->lock);
    json_auto_t *labels = json_incref(p->labels);
    pthread_mutex_unlock(&p->lock);
    char *location = labels ? crush_location(labels, names) : NULL;
    if (labels && !location)
        g_warning("node %s has none of the labels of readAffinity.crushLocationLabels in "
                  "config.json: reads go to no nearer copy",
                  p->node);
    return location;
}
