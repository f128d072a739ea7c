/* SPDX-License-Identifier: Apache-2.0 */
/* The names of claim, volume, snapshot and cluster as metadata in Ceph, under ceph-csi's keys:
 * --setmetadata and --clustername. */
#include <string.h>
#include "driver/service/controller/internal.h"

#define K8S "csi.storage.k8s.io/"
#define CLUSTER_KEY "csi.ceph.com/cluster/name"
#define CLUSTER_NAME_MAX 253

gboolean controller_check_cluster_name(const char *name, GError **error)
{
    gsize length = strlen(name);
    gboolean good = length > 0 && length <= CLUSTER_NAME_MAX;
    for (const char *p = name; good && *p; p++)
        good = g_ascii_isalnum(*p) || strchr("._:/@-", *p);
    if (good)
        return TRUE;
    g_autofree char *valid = g_utf8_make_valid(name, (gssize)strnlen(name, 100));
    g_autofree char *shown = g_strescape(valid, NULL);
    return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                       "--clustername=\"%s\": use 1 to %d letters, digits, '.', '_', ':', '/', "
                       "'@', '-'; Ceph's mgr cannot keep a '%%' with a subvolume",
                       shown, CLUSTER_NAME_MAX);
}

void controller_set_metadata(Controller *c, gboolean set, const char *cluster_name)
{
    c->set_metadata = set;
    g_free(c->cluster_name);
    c->cluster_name = g_strdup(cluster_name);
}

static void set_text(json_t *texts, const char *key, const char *value)
{
    if (value && *value)
        json_object_set_new(texts, key, json_string(value));
}

void controller_describe_volume(const Controller *c, const ProvisionTarget *volume,
                                const VolumeParams *params)
{
    if (!c->set_metadata)
        return;
    json_auto_t *texts = json_object();
    set_text(texts, K8S "pv/name", params->pv_name);
    set_text(texts, K8S "pvc/name", params->pvc_name);
    set_text(texts, K8S "pvc/namespace", params->pvc_namespace);
    set_text(texts, CLUSTER_KEY, c->cluster_name);
    provision_describe(volume, NULL, texts);
}

void controller_describe_snapshot(const Controller *c, const ProvisionTarget *source,
                                  const char *snapshot, GHashTable *parameters)
{
    static const char *const keys[] = {K8S "volumesnapshot/name", K8S "volumesnapshot/namespace",
                                       K8S "volumesnapshotcontent/name"};
    if (!c->set_metadata)
        return;
    json_auto_t *texts = json_object();
    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++)
        set_text(texts, keys[i], g_hash_table_lookup(parameters, keys[i]));
    set_text(texts, CLUSTER_KEY, c->cluster_name);
    provision_describe(source, snapshot, texts);
}
