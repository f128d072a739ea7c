/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/hearthd/spec.h"
#include <errno.h>
#include <string.h>
#include "driver/backend/ceph/net_namespace.h"
#include "driver/volume/attributes.h"
#include "driver/cluster/config.h"
#include "driver/volume/dataset_name.h"
#include "driver/volume/id.h"
#include "driver/cluster/secrets.h"

/* For connecting to Ceph; the deadline of the call bounds it further. */
#define CONNECT_TIMEOUT_SEC 20
/* For monitors to say which protocol they speak. */
#define GREETING_SEC 2

static void wipe(json_t *value)
{
    const char *key;
    size_t index;
    json_t *child;
    if (json_is_string(value))
        explicit_bzero((char *)json_string_value(value), json_string_length(value));
    else if (json_is_object(value))
        json_object_foreach (value, key, child)
            wipe(child);
    else if (json_is_array(value))
        json_array_foreach (value, index, child)
            wipe(child);
}

void node_spec_free(json_t *spec)
{
    wipe(spec);
    json_decref(spec);
}
gboolean node_spec_same_volume(const json_t *a, const json_t *b)
{
    static const char *const outer[] = {"cache", "readOnly"};
    static const char *const inner[] = {"type",  "clusterID",      "fsName",   "rootPath", "pool",
                                        "image", "radosNamespace", "snapshot", "shared"};
    const json_t *oa = json_object_get(a, "origin"), *ob = json_object_get(b, "origin");
    for (guint i = 0; i < G_N_ELEMENTS(outer); i++) {
        const json_t *va = json_object_get(a, outer[i]), *vb = json_object_get(b, outer[i]);
        if (va != vb && !json_equal(va, vb))
            return FALSE;
    }
    for (guint i = 0; i < G_N_ELEMENTS(inner); i++) {
        const json_t *va = json_object_get(oa, inner[i]), *vb = json_object_get(ob, inner[i]);
        if (va != vb && !json_equal(va, vb))
            return FALSE;
    }
    return TRUE;
}

static const char *const authority[] = {"userID", "userKey"};

gboolean node_spec_same_authority(const json_t *a, const json_t *b)
{
    const json_t *oa = json_object_get(a, "origin"), *ob = json_object_get(b, "origin");
    for (guint i = 0; i < G_N_ELEMENTS(authority); i++)
        if (g_strcmp0(json_string_value(json_object_get(oa, authority[i])),
                      json_string_value(json_object_get(ob, authority[i]))) != 0)
            return FALSE;
    return TRUE;
}

gboolean node_spec_take_authority(json_t *spec, const json_t *newer)
{
    json_t *to = json_object_get(spec, "origin");
    const json_t *from = json_object_get(newer, "origin");
    if (node_spec_same_authority(spec, newer))
        return FALSE;
    for (guint i = 0; i < G_N_ELEMENTS(authority); i++) {
        const char *value = json_string_value(json_object_get(from, authority[i]));
        wipe(json_object_get(to, authority[i]));
        json_object_del(to, authority[i]);
        if (value)
            json_object_set_new(to, authority[i], json_string(value));
    }
    return TRUE;
}

gboolean node_spec_parse_quantity(const char *text, gint64 *bytes)
{
    static const struct {
        const char *suffix;
        gint64 factor;
    } units[] = {
        {"", 1},
        {"k", 1000},
        {"M", 1000 * 1000},
        {"G", 1000LL * 1000 * 1000},
        {"T", 1000LL * 1000 * 1000 * 1000},
        {"P", 1000LL * 1000 * 1000 * 1000 * 1000},
        {"Ki", 1LL << 10},
        {"Mi", 1LL << 20},
        {"Gi", 1LL << 30},
        {"Ti", 1LL << 40},
        {"Pi", 1LL << 50},
    };
    if (!g_ascii_isdigit(text[0]))
        return FALSE;
    char *rest;
    errno = 0;
    gint64 number = g_ascii_strtoll(text, &rest, 10);
    if (errno != 0)
        return FALSE;
    for (guint i = 0; i < G_N_ELEMENTS(units); i++)
        if (strcmp(rest, units[i].suffix) == 0)
            return !__builtin_mul_overflow(number, units[i].factor, bytes);
    return FALSE;
}

static const char *required(GHashTable *context, const char *key, const char *volume,
                            GError **error)
{
    const char *value = attributes_get(context, key);
    if (!value)
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT,
                    "volume %s: the volume context has no %s; for a static volume put it into "
                    "volumeAttributes of the PersistentVolume",
                    volume, key);
    return value;
}

/* An absolute path without "..": it comes from a PersistentVolume that a user may have written. */
static const char *root_path(GHashTable *context, const char *volume, GError **error)
{
    const char *path = attributes_root_path(context);
    if (!path)
        path = required(context, "rootPath", volume, error);
    if (!path)
        return NULL;
    g_auto(GStrv) parts = g_strsplit(path, "/", -1);
    if (path[0] == '/' && !g_strv_contains((const gchar *const *)parts, ".."))
        return path;
    g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT,
                "volume %s: rootPath \"%s\": give an absolute path without \"..\"", volume, path);
    return NULL;
}

/* A dataset's, whose last name is the mgr's; the caller's. */
static char *dataset_path(const char *text, const ClusterConfig *cluster, const char *volume,
                          GError **error)
{
    g_autoptr(DatasetName) name = dataset_name_parse(text, error);
    if (!name) {
        g_prefix_error(error, "volume %s: ", volume);
        return NULL;
    }
    g_autofree char *parent = dataset_name_parent(name, cluster->subvolume_group);
    return g_strconcat(parent, "/*", NULL);
}

/* Adds a member unless the value is NULL. Frees the origin when the value is not UTF-8. */
static json_t *with(json_t *origin, const char *name, const char *value)
{
    if (!origin || !value || json_object_set_new(origin, name, json_string(value)) == 0)
        return origin;
    node_spec_free(origin);
    return NULL;
}

/* How hearthd is to make its clients. A hearthd of before refuses what it does not know, so nothing
 * is said that is not asked for. */
static json_t *with_client(json_t *origin, const ClusterConfig *cluster, const char *net_namespace,
                           CrushPlace *place)
{
    json_t *conf = json_object();
    for (char **o = cluster->ceph_conf; *o; o += 2)
        json_object_set_new(conf, o[0], json_string(o[1]));
    if (json_object_size(conf) > 0)
        json_object_set(origin, "cephConf", conf);
    json_decref(conf);
    g_autofree char *location =
        cluster->crush_labels && place ? crush_place_location(place, cluster->crush_labels) : NULL;
    return with(with(origin, "crushLocation", location), "netNamespaceFilePath", net_namespace);
}

/* What is the same for all that is in a Ceph cluster. */
static json_t *ceph_origin(const char *type, const ClusterConfig *cluster, GHashTable *secret_map,
                           CrushPlace *place, GError **error)
{
    g_autoptr(Secrets) secrets = secrets_new(secret_map, SECRETS_PREFER_USER, error);
    if (!secrets)
        return NULL;
    const char *net_namespace =
        strcmp(type, "rbd") == 0 ? cluster->rbd_net_namespace : cluster->cephfs_net_namespace;
    gint64 until_us = g_get_monotonic_time() + GREETING_SEC * G_USEC_PER_SEC;
    g_auto(GStrv) explicit_monitors =
        net_namespace_reach(net_namespace, cluster->monitors, until_us, error);
    if (!explicit_monitors) {
        g_prefix_error(error, "cluster %s: ", cluster->cluster_id);
        return NULL;
    }
    json_t *monitors = json_array();
    for (char **m = explicit_monitors; *m; m++)
        json_array_append_new(monitors, json_string(*m));
    json_t *origin = json_pack("{s:s, s:s, s:o, s:s, s:s, s:i}", "type", type, "clusterID",
                               cluster->cluster_id, "monitors", monitors, "userID", secrets->user,
                               "userKey", secrets->key, "timeoutSec", CONNECT_TIMEOUT_SEC);
    return origin ? with_client(origin, cluster, net_namespace, place) : NULL;
}

static json_t *cephfs_origin(const char *volume, GHashTable *context, GHashTable *secrets,
                             const char *config_path, CrushPlace *place, GError **error)
{
    const char *cluster_id = required(context, "clusterID", volume, error);
    const char *dataset = attributes_get(context, "dataset");
    const char *path = cluster_id && !dataset ? root_path(context, volume, error) : NULL;
    g_autoptr(ClusterConfig) cluster =
        path || (cluster_id && dataset) ? config_find(config_path, cluster_id, error) : NULL;
    g_autofree char *of_dataset =
        cluster && dataset ? dataset_path(dataset, cluster, volume, error) : NULL;
    if (!cluster || (dataset && !of_dataset))
        return NULL;
    if (dataset)
        path = of_dataset;
    json_t *origin = ceph_origin("cephfs", cluster, secrets, place, error);
    return with(with(origin, "rootPath", path), "fsName", attributes_get(context, "fsName"));
}

/* A static image's namespace is the cluster file's, unless its context names one. */
static json_t *rbd_origin(const char *volume, GHashTable *context, GHashTable *secrets,
                          const char *config_path, CrushPlace *place, GError **error)
{
    const char *cluster_id = required(context, "clusterID", volume, error);
    const char *pool = cluster_id ? required(context, "pool", volume, error) : NULL;
    const char *image = attributes_image(volume, context);
    if (pool && !image)
        image = required(context, "imageName", volume, error);
    g_autoptr(ClusterConfig) cluster =
        pool && image ? config_find(config_path, cluster_id, error) : NULL;
    if (!cluster)
        return NULL;
    const char *nspace = attributes_get(context, "radosNamespace");
    json_t *origin = ceph_origin("rbd", cluster, secrets, place, error);
    origin = with(with(origin, "pool", pool), "image", image);
    origin = with(origin, "snapshot", attributes_get(context, "snapshot"));
    return with(origin, "radosNamespace", nspace ? nspace : cluster->rados_namespace);
}

json_t *node_spec_new(const char *volume, GHashTable *context, GHashTable *secrets,
                      const char *config_path, CrushPlace *place, gboolean read_only,
                      GError **error)
{
    VolumeType type;
    if (!attributes_check(volume, context, error) ||
        !attributes_type(volume, context, &type, error))
        return NULL;
    const char *cache = attributes_get(context, "cache");
    if (cache && strcmp(cache, "on") != 0 && strcmp(cache, "off") != 0) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT,
                    "volume %s: cache \"%s\": use on or off", volume, cache);
        return NULL;
    }
    const char *quota = attributes_get(context, "cacheQuota");
    gint64 quota_bytes = 0;
    if (quota && !node_spec_parse_quantity(quota, &quota_bytes)) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT,
                    "volume %s: cacheQuota \"%s\": give bytes, or a number with Ki, Mi, Gi, Ti",
                    volume, quota);
        return NULL;
    }
    const char *warm = attributes_get(context, "warm");
    if (warm && strcmp(warm, "onStage") != 0 && strcmp(warm, "none") != 0) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT,
                    "volume %s: warm \"%s\": use none or onStage", volume, warm);
        return NULL;
    }
    json_t *origin = NULL;
    if (type == VOLUME_CEPHFS) {
        origin = cephfs_origin(volume, context, secrets, config_path, place, error);
    } else if (type == VOLUME_RBD) {
        origin = rbd_origin(volume, context, secrets, config_path, place, error);
    } else {
        const char *path = root_path(context, volume, error);
        origin = path ? json_pack("{s:s, s:s}", "type", "dir", "rootPath", path) : NULL;
    }
    json_t *spec = NULL;
    if (origin)
        spec = json_pack("{s:s, s:o, s:b, s:b}", "volume", volume, "origin", origin, "cache",
                         !cache || strcmp(cache, "on") == 0, "readOnly", read_only);
    if (spec && quota_bytes > 0)
        json_object_set_new(spec, "cacheQuota", json_integer(quota_bytes));
    if (spec && warm && strcmp(warm, "onStage") == 0)
        json_object_set_new(spec, "warm", json_true());
    if (!spec && error && !*error)
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT,
                    "volume %s: its context or its secrets are not UTF-8", volume);
    return spec;
}

void node_spec_change(json_t *spec, const json_t *changes)
{
    const json_t *quota = json_object_get(changes, "cacheQuota");
    const char *warm = json_string_value(json_object_get(changes, "warm"));
    if (json_integer_value(quota) > 0)
        json_object_set(spec, "cacheQuota", (json_t *)quota);
    else if (quota)
        json_object_del(spec, "cacheQuota");
    if (warm && strcmp(warm, "onStage") == 0)
        json_object_set_new(spec, "warm", json_true());
    else if (warm)
        json_object_del(spec, "warm");
}

gboolean node_spec_update(json_t *spec, const json_t *newer)
{
    static const char *const names[] = {"cacheQuota"};
    gboolean changed = FALSE;
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        json_t *now = json_object_get(spec, names[i]), *wanted = json_object_get(newer, names[i]);
        if (now == wanted || json_equal(now, wanted))
            continue;
        changed = TRUE;
        if (wanted)
            json_object_set(spec, names[i], wanted);
        else
            json_object_del(spec, names[i]);
    }
    return changed;
}
