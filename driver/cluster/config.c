/* SPDX-License-Identifier: Apache-2.0 */
/* Every entry is checked, also when another one is wanted: a mistake is reported at once, with the
 * entry's number and ID. backend/ and node/ read the file for each call that needs a cluster. */
#include "driver/cluster/config.h"
#include "driver/cluster/ceph_conf.h"
#include "driver/volume/name.h"
#include <jansson.h>
#include <string.h>

void cluster_config_free(ClusterConfig *cluster)
{
    if (!cluster)
        return;
    g_free(cluster->cluster_id);
    g_strfreev(cluster->monitors);
    g_free(cluster->subvolume_group);
    g_free(cluster->rados_namespace);
    g_free(cluster->journal_namespace);
    g_strfreev(cluster->ceph_conf);
    g_strfreev(cluster->crush_labels);
    g_free(cluster->cephfs_net_namespace);
    g_free(cluster->rbd_net_namespace);
    g_free(cluster->net_namespace);
    g_free(cluster);
}

static void free_cluster(gpointer cluster)
{
    cluster_config_free(cluster);
}

#define refuse(error, ...) hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION, __VA_ARGS__)

/* Whether it may be one element of Ceph's option mon_host. */
static gboolean is_monitor(const json_t *value)
{
    const char *text = json_string_value(value);
    return text && *text && strlen(text) < 512 &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:,[]/") ==
               strlen(text);
}

static char **parse_monitors(const json_t *entry, const char *path, const char *where,
                             GError **error)
{
    const json_t *list = json_object_get(entry, "monitors");
    if (!json_is_array(list) || json_array_size(list) == 0) {
        refuse(error, "%s: %s has no \"monitors\"; list at least one address as \"HOST:PORT\"",
               path, where);
        return NULL;
    }
    gsize n = json_array_size(list);
    g_auto(GStrv) monitors = g_new0(char *, n + 1);
    for (gsize i = 0; i < n; i++) {
        const json_t *monitor = json_array_get(list, i);
        if (!is_monitor(monitor)) {
            refuse(
                error,
                "%s: %s: \"monitors\"[%" G_GSIZE_FORMAT
                "] is no monitor address; write \"HOST:PORT\" or \"[v2:HOST:PORT,v1:HOST:PORT]\"",
                path, where, i);
            return NULL;
        }
        monitors[i] = g_strdup(json_string_value(monitor));
    }
    return g_steal_pointer(&monitors);
}

static gboolean parse_rbd(const json_t *entry, ClusterConfig *cluster, const char *path,
                          const char *where, GError **error)
{
    const json_t *rbd = json_object_get(entry, "rbd");
    const json_t *name = json_object_get(rbd, "radosNamespace");
    const char *text = name ? json_string_value(name) : "";
    if ((rbd && !json_is_object(rbd)) || !text || (*text && !name_is_plain(text))) {
        refuse(
            error,
            "%s: %s: \"rbd.radosNamespace\" must be letters, digits, '.', '_', '-'; leave it out "
            "for the pool's default namespace",
            path, where);
        return FALSE;
    }
    cluster->rados_namespace = g_strdup(text);
    return TRUE;
}

static gboolean parse_journal(const json_t *cephfs, ClusterConfig *cluster, const char *path,
                              const char *where, GError **error)
{
    const json_t *nspace = json_object_get(cephfs, "radosNamespace");
    const char *name = nspace ? json_string_value(nspace) : CONFIG_DEFAULT_JOURNAL;
    if (!name || (*name && !name_is_plain(name))) {
        refuse(error,
               "%s: %s: \"cephFS.radosNamespace\" must be letters, digits, '.', '_', '-'; leave it "
               "out for ceph-csi's default",
               path, where);
        return FALSE;
    }
    cluster->journal_namespace = g_strdup(*name ? name : CONFIG_DEFAULT_JOURNAL);
    return TRUE;
}

/* NULL: there is none, or it is null, which Helm writes for a value that is not set. */
static const json_t *member(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_null(value) ? NULL : value;
}

static gboolean parse_net_namespace(const json_t *entry, const char *kind, char **net_namespace,
                                    const char *path, const char *where, GError **error)
{
    const json_t *value = member(json_object_get(entry, kind), "netNamespaceFilePath");
    const char *text = value ? json_string_value(value) : "";
    if (!text || (*text && *text != '/')) {
        refuse(error,
               "%s: %s: \"%s.netNamespaceFilePath\" must be the absolute path of a network "
               "namespace's file on the nodes; leave it out for the nodes' own network",
               path, where, kind);
        return FALSE;
    }
    *net_namespace = *text ? g_strdup(text) : NULL;
    return TRUE;
}

/* Whether it is a label's name; the part after the '/' is the type of a CRUSH bucket. */
static gboolean is_crush_label(const json_t *value)
{
    const char *text = json_string_value(value);
    const char *type = text ? strrchr(text, '/') : NULL;
    type = type ? type + 1 : text;
    return type && name_is_plain(type) && strlen(text) < 320;
}

static gboolean parse_affinity(const json_t *entry, ClusterConfig *cluster, const char *path,
                               const char *where, GError **error)
{
    const json_t *affinity = member(entry, "readAffinity");
    const json_t *enabled = member(affinity, "enabled");
    const json_t *labels = json_object_get(affinity, "crushLocationLabels");
    if (affinity && (!json_is_object(affinity) || (enabled && !json_is_boolean(enabled)))) {
        refuse(error,
               "%s: %s: \"readAffinity\" must be an object whose \"enabled\" is true or false",
               path, where);
        return FALSE;
    }
    if (!json_is_true(enabled))
        return TRUE;
    gsize n = json_array_size(labels);
    gboolean good = n > 0 && n <= 32;
    for (gsize i = 0; good && i < n; i++)
        good = is_crush_label(json_array_get(labels, i));
    if (!good) {
        refuse(error,
               "%s: %s: \"readAffinity.crushLocationLabels\" must list labels of nodes, as "
               "\"topology.kubernetes.io/zone\"; or set \"enabled\" to false",
               path, where);
        return FALSE;
    }
    cluster->crush_labels = g_new0(char *, n + 1);
    for (gsize i = 0; i < n; i++)
        cluster->crush_labels[i] = g_strdup(json_string_value(json_array_get(labels, i)));
    return TRUE;
}

static gboolean parse_ceph_conf(const json_t *entry, ClusterConfig *cluster, const char *path,
                                const char *where, GError **error)
{
    g_autofree char *why = NULL;
    cluster->ceph_conf = ceph_conf_parse(member(entry, "cephConf"), &why);
    if (!cluster->ceph_conf)
        refuse(error, "%s: %s: \"cephConf\": %s", path, where, why);
    return cluster->ceph_conf != NULL;
}

/* Reads the settings of Ceph's clients. */
static gboolean parse_clients(const json_t *entry, ClusterConfig *cluster, const char *path,
                              const char *where, GError **error)
{
    if (!parse_net_namespace(entry, "cephFS", &cluster->cephfs_net_namespace, path, where, error))
        return FALSE;
    if (!parse_net_namespace(entry, "rbd", &cluster->rbd_net_namespace, path, where, error))
        return FALSE;
    if (!parse_affinity(entry, cluster, path, where, error))
        return FALSE;
    return parse_ceph_conf(entry, cluster, path, where, error);
}

static ClusterConfig *parse_entry(const json_t *entry, gsize index, const char *path,
                                  GError **error)
{
    g_autoptr(ClusterConfig) cluster = g_new0(ClusterConfig, 1);
    const char *id = json_string_value(json_object_get(entry, "clusterID"));
    if (!id || !*id) {
        refuse(error, "%s: entry %" G_GSIZE_FORMAT " has no \"clusterID\" (a non-empty string)",
               path, index);
        return NULL;
    }
    cluster->cluster_id = g_strdup(id);
    g_autofree char *where = g_strdup_printf("entry %" G_GSIZE_FORMAT " (%s)", index, id);
    cluster->monitors = parse_monitors(entry, path, where, error);
    if (!cluster->monitors)
        return NULL;

    const json_t *cephfs = json_object_get(entry, "cephFS");
    const json_t *group = json_object_get(cephfs, "subvolumeGroup");
    if (cephfs && !json_is_object(cephfs)) {
        refuse(error, "%s: %s: \"cephFS\" must be an object", path, where);
        return NULL;
    }
    const char *name = group ? json_string_value(group) : CONFIG_DEFAULT_GROUP;
    if (name && !*name)
        name = CONFIG_DEFAULT_GROUP;
    /* Ceph keeps names with a leading '_' for itself (_nogroup, _deleting). */
    if (!name || !name_is_plain(name) || *name == '_') {
        refuse(
            error,
            "%s: %s: \"cephFS.subvolumeGroup\" must be letters, digits, '.', '_', '-', and begin "
            "with a letter or digit",
            path, where);
        return NULL;
    }
    cluster->subvolume_group = g_strdup(name);
    if (!parse_journal(cephfs, cluster, path, where, error))
        return NULL;
    if (!parse_rbd(entry, cluster, path, where, error))
        return NULL;
    if (!parse_clients(entry, cluster, path, where, error))
        return NULL;
    return g_steal_pointer(&cluster);
}

GPtrArray *config_load(const char *path, GError **error)
{
    g_autofree char *text = NULL;
    gsize length = 0;
    g_autoptr(GError) cause = NULL;
    if (!g_file_get_contents(path, &text, &length, &cause)) {
        refuse(error,
               "%s; it is ceph-csi's config.json with the clusters' monitors: mount the ConfigMap "
               "there or set --cluster-config",
               cause->message);
        return NULL;
    }
    json_error_t at;
    json_auto_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &at);
    if (!json_is_array(root)) {
        if (root)
            refuse(error, "%s must be an array of clusters", path);
        else
            refuse(error, "%s: line %d: %s", path, at.line, at.text);
        return NULL;
    }
    g_autoptr(GPtrArray) clusters = g_ptr_array_new_with_free_func(free_cluster);
    gboolean good = TRUE;
    for (gsize i = 0; good && i < json_array_size(root); i++) {
        ClusterConfig *cluster = parse_entry(json_array_get(root, i), i, path, error);
        for (guint j = 0; cluster && j < clusters->len; j++) {
            const ClusterConfig *other = clusters->pdata[j];
            if (strcmp(other->cluster_id, cluster->cluster_id) != 0)
                continue;
            refuse(error, "%s: entries %u and %" G_GSIZE_FORMAT " have the same clusterID \"%s\"",
                   path, j, i, cluster->cluster_id);
            g_clear_pointer(&cluster, cluster_config_free);
        }
        good = cluster != NULL;
        if (good)
            g_ptr_array_add(clusters, cluster);
    }
    return good ? g_steal_pointer(&clusters) : NULL;
}

ClusterConfig *config_find(const char *path, const char *cluster_id, GError **error)
{
    g_autoptr(GPtrArray) clusters = config_load(path, error);
    if (!clusters)
        return NULL;
    g_autoptr(GString) known = g_string_new(NULL);
    for (guint i = 0; i < clusters->len; i++) {
        ClusterConfig *cluster = clusters->pdata[i];
        if (strcmp(cluster->cluster_id, cluster_id) == 0)
            return g_ptr_array_steal_index(clusters, i);
        g_string_append_printf(known, "%s%s", i ? ", " : "", cluster->cluster_id);
    }
    hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT, "clusterID \"%s\" is not in %s; known: %s",
                cluster_id, path, known->len ? known->str : "none");
    return NULL;
}
