/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hearthctl doctor: whether kubelet has registered the node plugin, and by which topology.
 *
 * Kubelet keeps the topology keys of a driver in the CSINode and their values in labels of the
 * Node. It rejects a plugin that reports another value than the label. In earlier releases the tier
 * and the zone of a node were topology (driver/volume/topology.h). Where these keys are still
 * present, a node with a new tier or zone is not registered again.
 */
#include <string.h>
#include "cmd/hearthctl/doctor/doctor.h"
#include "common/field.h"
#include "driver/kube/client.h"
#include "driver/kube/config.h"
#include "driver/kube/error.h"
#include "driver/kube/resource.h"
#include "driver/volume/topology.h"

#define ANSWER_MS 5000
#define CHECK "registration"

static const KubeResource csinodes = {"storage.k8s.io", "v1", "csinodes"},
                          nodes = {"", "v1", "nodes"},
                          node_caches = {"csi.hearth.dev", "v1alpha1", "nodecaches"};

/* A new reference, or NULL. */
static json_t *get(KubeClient *client, const KubeResource *resource, const char *name,
                   GError **error)
{
    g_autofree char *path = kube_path(resource, NULL, name, NULL);
    const KubeRequest request = {
        .method = "GET", .path = path, .timeout_ms = ANSWER_MS, .tries = 1};
    json_t *answer = NULL;
    return kube_request(client, &request, &answer, error) ? answer : NULL;
}

static gboolean has_key(const json_t *driver, const char *key)
{
    const json_t *one;
    size_t i;
    json_array_foreach (json_object_get(driver, "topologyKeys"), i, one) {
        if (g_strcmp0(json_string_value(one), key) == 0)
            return TRUE;
    }
    return FALSE;
}

/* Our driver is recognised by its topology keys, because its name can be configured. */
static const json_t *driver_of(const json_t *csinode)
{
    const json_t *driver;
    size_t i;
    json_array_foreach (json_object_get(json_object_get(csinode, "spec"), "drivers"), i, driver) {
        if (has_key(driver, TOPOLOGY_NODE) || has_key(driver, TOPOLOGY_TIER))
            return driver;
    }
    return NULL;
}

/* Adds a finding, and returns TRUE, if kubelet would reject the value. */
static gboolean check_value(Doctor *d, const json_t *labels, const char *key, const char *says)
{
    const char *label = field_text(labels, key);
    if (!*says || !*label || strcmp(label, says) == 0)
        return FALSE;
    findings_add(d->findings, FINDING_BAD, CHECK,
                 "kubectl cordon the node, drain it, delete the Node and let it register again; or "
                 "restore the old value",
                 "kubelet rejects the plugin at its next start: the Node's label %s is %s and "
                 "cannot change, but the plugin reports %s",
                 key, label, says);
    return TRUE;
}

static void check_keys(Doctor *d, KubeClient *client, const json_t *driver)
{
    static const struct {
        const char *key, *field;
    } movable[] = {{TOPOLOGY_TIER, "tier"}, {TOPOLOGY_ZONE, "zone"}};
    json_auto_t *node = get(client, &nodes, d->node, NULL),
                *cache = get(client, &node_caches, d->node, NULL);
    const json_t *labels = json_object_get(json_object_get(node, "metadata"), "labels"),
                 *status = json_object_get(cache, "status");
    g_autoptr(GString) old = g_string_new(NULL);
    gboolean collides = FALSE;
    for (gsize i = 0; i < G_N_ELEMENTS(movable); i++) {
        if (!has_key(driver, movable[i].key))
            continue;
        g_string_append_printf(old, "%s%s", old->len ? " and " : "", movable[i].key);
        collides |= check_value(d, labels, movable[i].key, field_text(status, movable[i].field));
    }
    if (old->len && !collides)
        findings_add(d->findings, FINDING_WARN, CHECK,
                     "upgrade the node plugin; if they are among topology.domainLabels, this is "
                     "intended",
                     "kubelet has registered it with %s as topology, as earlier releases reported: "
                     "a node whose value changes is not registered again",
                     old->str);
    else if (!old->len)
        findings_add(d->findings, FINDING_OK, CHECK, NULL, "%s, as node %s",
                     field_text(driver, "name"), field_text(driver, "nodeID"));
}

static void check_csinode(Doctor *d, KubeClient *client)
{
    g_autoptr(GError) error = NULL;
    json_auto_t *csinode = get(client, &csinodes, d->node, &error);
    const json_t *driver = driver_of(csinode);
    if (!csinode)
        findings_add(d->findings, FINDING_UNKNOWN, CHECK, NULL, "%s", error->message);
    else if (!driver)
        findings_add(d->findings, FINDING_BAD, CHECK,
                     "kubectl -n hearth logs of the node's hearth-node pod, and kubelet's log",
                     "kubelet has not registered the node plugin of %s: no pod gets a volume here",
                     d->node);
    else
        check_keys(d, client, driver);
}

void doctor_kubernetes(Doctor *d)
{
    g_autoptr(GError) error = NULL;
    /* Without Kubernetes, or in a pod without a ServiceAccount token, there is nothing to check. */
    if (!d->kubeconfig && !g_getenv("KUBECONFIG") &&
        !g_file_test(KUBE_SERVICE_ACCOUNT "/token", G_FILE_TEST_EXISTS))
        return;
    KubeConfig *config = kube_config_load(d->kubeconfig, &error);
    if (!config || !d->node || !*d->node) {
        findings_add(d->findings, FINDING_UNKNOWN, CHECK, NULL, "%s",
                     config ? "the name of this node is not known: give --node" : error->message);
        kube_config_free(config);
        return;
    }
    g_autoptr(KubeClient) client = kube_client_new(config, NULL);
    check_csinode(d, client);
}
