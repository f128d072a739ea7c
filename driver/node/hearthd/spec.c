/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/hearthd/spec.h"
#include <errno.h>
#include <string.h>
#include "common/volume_name.h"
#include "driver/backend/ceph/net_namespace.h"
#include "driver/cluster/config.h"
#include "driver/volume/dataset_name.h"
#include "driver/volume/params.h"
#include "driver/cluster/secrets.h"
#include "proto/wire_keys.h"

/* For connecting to Ceph; the deadline of the call bounds it further. */
#define CONNECT_TIMEOUT_SEC 20
/* For monitors to say which protocol they speak. */
#define GREETING_SEC 2
/* The value of "warm" that has a volume fetched when it is staged. */
#define ON_STAGE "onStage"

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
    json_decref(spec); /* taken from the caller */
}

gboolean node_spec_same_volume(const json_t *a, const json_t *b)
{
    static const char *const outer[] = {WIRE_KEY_CACHE, WIRE_KEY_READ_ONLY};
    static const char *const inner[] = {
        WIRE_KEY_TYPE,  WIRE_KEY_CLUSTER_ID, WIRE_KEY_FS_NAME,         WIRE_KEY_ROOT_PATH,
        WIRE_KEY_POOL,  WIRE_KEY_IMAGE,      WIRE_KEY_RADOS_NAMESPACE, WIRE_KEY_SNAPSHOT,
        WIRE_KEY_SHARED};
    const json_t *oa = json_object_get(a, WIRE_KEY_ORIGIN),
                 *ob = json_object_get(b, WIRE_KEY_ORIGIN);
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

static const char *const authority[] = {WIRE_KEY_USER_ID, WIRE_KEY_USER_KEY};

gboolean node_spec_same_authority(const json_t *a, const json_t *b)
{
    const json_t *oa = json_object_get(a, WIRE_KEY_ORIGIN),
                 *ob = json_object_get(b, WIRE_KEY_ORIGIN);
    for (guint i = 0; i < G_N_ELEMENTS(authority); i++)
        if (g_strcmp0(json_string_value(json_object_get(oa, authority[i])),
                      json_string_value(json_object_get(ob, authority[i]))) != 0)
            return FALSE;
    return TRUE;
}

gboolean node_spec_same_reads(const json_t *a, const json_t *b)
{
    return node_spec_same_authority(a, b) &&
           json_integer_value(json_object_get(a, WIRE_KEY_READ_TIMEOUT_SEC)) ==
               json_integer_value(json_object_get(b, WIRE_KEY_READ_TIMEOUT_SEC));
}

static void take_authority(json_t *spec, const json_t *newer)
{
    json_t *to = json_object_get(spec, WIRE_KEY_ORIGIN);
    const json_t *from = json_object_get(newer, WIRE_KEY_ORIGIN);
    for (guint i = 0; i < G_N_ELEMENTS(authority); i++) {
        const char *value = json_string_value(json_object_get(from, authority[i]));
        wipe(json_object_get(to, authority[i]));
        json_object_del(to, authority[i]);
        if (value)
            json_object_set_new(to, authority[i], json_string(value));
    }
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

static gboolean require(const char *value, const char *name, const char *volume, GError **error)
{
    return value ||
           hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                       "volume %s: the volume context has no %s; for a static volume put it into "
                       "volumeAttributes of the PersistentVolume",
                       volume, name);
}

/* An absolute path without "..": it comes from a PersistentVolume that a user may have written. */
static gboolean check_root_path(const VolumeAttributes *a, GError **error)
{
    if (!require(a->root_path, "rootPath", a->volume, error))
        return FALSE;
    g_auto(GStrv) parts = g_strsplit(a->root_path, "/", -1);
    if (a->root_path[0] == '/' && !g_strv_contains((const gchar *const *)parts, ".."))
        return TRUE;
    return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                       "volume %s: rootPath \"%s\": give an absolute path without \"..\"",
                       a->volume, a->root_path);
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

/* How hearthd configures its Ceph clients. An older hearthd refuses members that it does not know,
 * so only those are added that the cluster file asks for. */
static json_t *with_client(json_t *origin, const ClusterConfig *cluster, const char *net_namespace,
                           CrushLocation *node)
{
    json_auto_t *conf = json_object();
    for (char **o = cluster->ceph_conf; *o; o += 2)
        json_object_set_new(conf, o[0], json_string(o[1]));
    if (json_object_size(conf) > 0)
        json_object_set(origin, WIRE_KEY_CEPH_CONF, conf);
    g_autofree char *location =
        cluster->crush_labels && node ? crush_location_get(node, cluster->crush_labels) : NULL;
    return with(with(origin, WIRE_KEY_CRUSH_LOCATION, location), WIRE_KEY_NET_NAMESPACE_FILE_PATH,
                net_namespace);
}

/* The members that every origin in a Ceph cluster has. */
static json_t *ceph_origin(const NodeSpecSource *s, const char *type, const ClusterConfig *cluster,
                           const char *net_namespace, GError **error)
{
    g_autoptr(Secrets) secrets = secrets_new(s->secrets, SECRETS_PREFER_USER, error);
    if (!secrets)
        return NULL;
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
    json_t *origin =
        json_pack("{s:s, s:s, s:o, s:s, s:s, s:i}", WIRE_KEY_TYPE, type, WIRE_KEY_CLUSTER_ID,
                  cluster->cluster_id, WIRE_KEY_MONITORS, monitors, WIRE_KEY_USER_ID, secrets->user,
                  WIRE_KEY_USER_KEY, secrets->key, WIRE_KEY_TIMEOUT_SEC, CONNECT_TIMEOUT_SEC);
    return origin ? with_client(origin, cluster, net_namespace, s->crush_location) : NULL;
}

static json_t *cephfs_origin(const NodeSpecSource *s, GError **error)
{
    const VolumeAttributes *a = s->attributes;
    if (!require(a->cluster_id, "clusterID", a->volume, error) ||
        (!a->dataset && !check_root_path(a, error)))
        return NULL;
    g_autoptr(ClusterConfig) cluster = config_find(s->config_path, a->cluster_id, error);
    if (!cluster)
        return NULL;
    g_autofree char *path =
        a->dataset ? dataset_path(a->dataset, cluster, a->volume, error) : g_strdup(a->root_path);
    if (!path)
        return NULL;
    json_t *origin =
        ceph_origin(s, WIRE_TYPE_CEPHFS, cluster, cluster->cephfs_net_namespace, error);
    return with(with(origin, WIRE_KEY_ROOT_PATH, path), WIRE_KEY_FS_NAME, a->fs_name);
}

/* A static image's namespace is the cluster file's, unless its context names one. */
static json_t *rbd_origin(const NodeSpecSource *s, GError **error)
{
    const VolumeAttributes *a = s->attributes;
    if (!require(a->cluster_id, "clusterID", a->volume, error) ||
        !require(a->pool, "pool", a->volume, error) ||
        !require(a->image, "imageName", a->volume, error))
        return NULL;
    g_autoptr(ClusterConfig) cluster = config_find(s->config_path, a->cluster_id, error);
    if (!cluster)
        return NULL;
    const char *nspace = a->rados_namespace ? a->rados_namespace : cluster->rados_namespace;
    json_t *origin = ceph_origin(s, WIRE_TYPE_RBD, cluster, cluster->rbd_net_namespace, error);
    origin = with(with(origin, WIRE_KEY_POOL, a->pool), WIRE_KEY_IMAGE, a->image);
    return with(with(origin, WIRE_KEY_SNAPSHOT, a->snapshot), WIRE_KEY_RADOS_NAMESPACE, nspace);
}

static json_t *dir_origin(const NodeSpecSource *s, GError **error)
{
    const VolumeAttributes *a = s->attributes;
    return check_root_path(a, error) ? json_pack("{s:s, s:s}", WIRE_KEY_TYPE, WIRE_TYPE_DIR,
                                                 WIRE_KEY_ROOT_PATH, a->root_path)
                                     : NULL;
}

static json_t *(*const origins[])(const NodeSpecSource *s, GError **error) = {
    [VOLUME_CEPHFS] = cephfs_origin,
    [VOLUME_RBD] = rbd_origin,
    [VOLUME_DIR] = dir_origin,
};

/* What the context says of caching. */
typedef struct Caching {
    gboolean on, warm;
    gint64 quota_bytes;       /* 0: none */
    guint64 read_timeout_sec; /* 0: none */
} Caching;

static gboolean read_caching(const VolumeAttributes *a, Caching *caching, GError **error)
{
    const char *volume = a->volume, *cache = a->cache, *quota = a->cache_quota, *warm = a->warm;
    caching->on = TRUE;
    if (cache && !params_parse_switch(cache, &caching->on))
        return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                           "volume %s: cache \"%s\": use on or off", volume, cache);
    if (quota && !node_spec_parse_quantity(quota, &caching->quota_bytes))
        return hearth_fail(
            error, HEARTH_ERROR_INVALID_ARGUMENT,
            "volume %s: cacheQuota \"%s\": give bytes, or a number with Ki, Mi, Gi, Ti", volume,
            quota);
    if (warm && strcmp(warm, ON_STAGE) != 0 && strcmp(warm, "none") != 0)
        return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                           "volume %s: warm \"%s\": use none or onStage", volume, warm);
    if (a->read_timeout && !params_parse_seconds(a->read_timeout, &caching->read_timeout_sec))
        return hearth_fail(
            error, HEARTH_ERROR_INVALID_ARGUMENT,
            "volume %s: readTimeout \"%s\": give a time such as 30s or 5m, up to 24h", volume,
            a->read_timeout);
    caching->warm = warm && strcmp(warm, ON_STAGE) == 0;
    return TRUE;
}

/* Names that Kubernetes would not give are left out: anyone may have written the attributes. An
 * older hearthd does not know the member (hearthd.c). */
static void add_names(json_t *spec, const VolumeAttributes *a)
{
    json_auto_t *names = json_object();
    if (a->pvc_name && a->pvc_namespace) {
        g_autofree char *claim = g_strdup_printf("%s/%s", a->pvc_namespace, a->pvc_name);
        if (volume_name_is_claim(claim))
            json_object_set_new(names, WIRE_KEY_CLAIM, json_string(claim));
    }
    if (a->pv_name && volume_name_is_object(a->pv_name))
        json_object_set_new(names, WIRE_KEY_PERSISTENT_VOLUME, json_string(a->pv_name));
    if (json_object_size(names) > 0)
        json_object_set(spec, WIRE_KEY_NAMES, names);
}

json_t *node_spec_new(const NodeSpecSource *source, GError **error)
{
    const VolumeAttributes *a = source->attributes;
    Caching caching = {0};
    g_autoptr(GError) cause = NULL;
    if (!read_caching(a, &caching, error))
        return NULL;
    json_t *spec = NULL, *origin = origins[a->type](source, &cause);
    if (origin)
        spec = json_pack("{s:s, s:o, s:b, s:b}", WIRE_KEY_VOLUME, a->volume, WIRE_KEY_ORIGIN,
                         origin, WIRE_KEY_CACHE, caching.on, WIRE_KEY_READ_ONLY, source->read_only);
    if (cause) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return NULL;
    }
    if (!spec) {
        hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                    "volume %s: its context or its secrets are not UTF-8", a->volume);
        return NULL;
    }
    if (caching.quota_bytes > 0)
        json_object_set_new(spec, WIRE_KEY_CACHE_QUOTA, json_integer(caching.quota_bytes));
    if (caching.warm)
        json_object_set_new(spec, WIRE_KEY_WARM, json_true());
    if (caching.read_timeout_sec && a->is_snapshot)
        json_object_set_new(spec, WIRE_KEY_READ_TIMEOUT_SEC,
                            json_integer((json_int_t)caching.read_timeout_sec));
    add_names(spec, a);
    return spec;
}

void node_spec_change(json_t *spec, const json_t *changes)
{
    const json_t *quota = json_object_get(changes, WIRE_KEY_CACHE_QUOTA);
    const char *warm = json_string_value(json_object_get(changes, WIRE_KEY_WARM));
    if (json_integer_value(quota) > 0)
        json_object_set(spec, WIRE_KEY_CACHE_QUOTA, (json_t *)quota);
    else if (quota)
        json_object_del(spec, WIRE_KEY_CACHE_QUOTA);
    if (warm && strcmp(warm, ON_STAGE) == 0)
        json_object_set_new(spec, WIRE_KEY_WARM, json_true());
    else if (warm)
        json_object_del(spec, WIRE_KEY_WARM);
}

gboolean node_spec_update(json_t *spec, const json_t *newer)
{
    json_t *quota = json_object_get(newer, WIRE_KEY_CACHE_QUOTA);
    const json_t *now = json_object_get(spec, WIRE_KEY_CACHE_QUOTA);
    const gboolean same_quota = now == quota || json_equal(now, quota);
    const gboolean same_authority = node_spec_same_authority(spec, newer);
    if (!same_quota && quota)
        json_object_set(spec, WIRE_KEY_CACHE_QUOTA, quota);
    else if (!same_quota)
        json_object_del(spec, WIRE_KEY_CACHE_QUOTA);
    if (!same_authority)
        take_authority(spec, newer);
    return !same_quota || !same_authority;
}
