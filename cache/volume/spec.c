/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/volume/spec.h"
#include "cache/control/fields.h"
#include "proto/wire.h"
#include <gio/gio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_VOLUME_ID 512
#define DEFAULT_TIMEOUT_SEC 25
#define MAX_TIMEOUT_SEC 600

static const Field open_fields[] = {
    {"volume", FIELD_STRING, TRUE},     {"origin", FIELD_OBJECT, TRUE},
    {"cache", FIELD_BOOLEAN, FALSE},    {"cacheQuota", FIELD_COUNT, FALSE},
    {"readOnly", FIELD_BOOLEAN, FALSE}, {"warm", FIELD_BOOLEAN, FALSE},
    {"mountGroup", FIELD_COUNT, FALSE}, {NULL, 0, FALSE},
};

static const Field cephfs_fields[] = {
    {"type", FIELD_STRING, TRUE},
    {"clusterID", FIELD_STRING, FALSE},
    {"monitors", FIELD_STRINGS, TRUE},
    {"fsName", FIELD_STRING, FALSE},
    {"rootPath", FIELD_STRING, TRUE},
    {"userID", FIELD_STRING, TRUE},
    {"userKey", FIELD_STRING, TRUE},
    {"timeoutSec", FIELD_COUNT, FALSE},
    {"cephConf", FIELD_OBJECT, FALSE},
    {"crushLocation", FIELD_STRING, FALSE},
    {"netNamespaceFilePath", FIELD_STRING, FALSE},
    {NULL, 0, FALSE},
};

static const Field rbd_fields[] = {
    {"type", FIELD_STRING, TRUE},
    {"clusterID", FIELD_STRING, FALSE},
    {"monitors", FIELD_STRINGS, TRUE},
    {"pool", FIELD_STRING, TRUE},
    {"radosNamespace", FIELD_STRING, FALSE},
    {"image", FIELD_STRING, TRUE},
    {"snapshot", FIELD_STRING, FALSE},
    {"shared", FIELD_BOOLEAN, FALSE},
    {"userID", FIELD_STRING, TRUE},
    {"userKey", FIELD_STRING, TRUE},
    {"timeoutSec", FIELD_COUNT, FALSE},
    {"cephConf", FIELD_OBJECT, FALSE},
    {"crushLocation", FIELD_STRING, FALSE},
    {"netNamespaceFilePath", FIELD_STRING, FALSE},
    {NULL, 0, FALSE},
};

static const Field dir_fields[] = {
    {"type", FIELD_STRING, TRUE},
    {"rootPath", FIELD_STRING, TRUE},
    {NULL, 0, FALSE},
};

static gboolean refuse(GError **error, const char *text)
{
    g_set_error_literal(error, WIRE_ERROR, WIRE_ERROR_INVALID_ARGUMENT, text);
    return FALSE;
}

static const char *get_string(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static char *join_monitors(const json_t *array)
{
    GString *joined = g_string_new(NULL);
    for (size_t i = 0; i < json_array_size(array); i++) {
        const char *one = json_string_value(json_array_get(array, i));
        if (one[0])
            g_string_append_printf(joined, "%s%s", joined->len ? "," : "", one);
    }
    return g_string_free(joined, FALSE);
}

static char *image_place(const VolumeSpec *s)
{
    return g_strconcat(s->pool, "/", s->rados_namespace, s->rados_namespace[0] ? "/" : "", s->image,
                       s->snapshot[0] ? "@" : "", s->snapshot, NULL);
}

/* How the cluster's clients are made. */
static gboolean read_client(VolumeSpec *spec, const json_t *origin, GError **error)
{
    json_t *conf = json_object_get(origin, "cephConf"), *value;
    const char *name, *location = get_string(origin, "crushLocation"),
                      *path = get_string(origin, "netNamespaceFilePath");
    gsize n = 0;
    spec->conf = g_new0(char *, 2 * json_object_size(conf) + 1);
    json_object_foreach (conf, name, value) {
        if (!json_is_string(value))
            return refuse(error, "origin: field 'cephConf' must have strings for values");
        spec->conf[n++] = (char *)name;
        spec->conf[n++] = (char *)json_string_value(value);
    }
    spec->ceph = (CephClient){.cluster = spec->cluster_id,
                              .conf = spec->conf,
                              .crush_location = location[0] ? location : NULL,
                              .net_namespace = path[0] ? path : NULL};
    return TRUE;
}

static gboolean read_origin(VolumeSpec *spec, const json_t *origin, GError **error)
{
    static const struct {
        const char *type;
        const Field *fields;
    } types[] = {{"cephfs", cephfs_fields}, {"rbd", rbd_fields}, {"dir", dir_fields}};
    guint i = 0;
    spec->type = get_string(origin, "type");
    while (i < G_N_ELEMENTS(types) && strcmp(spec->type, types[i].type) != 0)
        i++;
    if (i == G_N_ELEMENTS(types)) {
        g_set_error(error, WIRE_ERROR, WIRE_ERROR_INVALID_ARGUMENT,
                    "origin: field 'type' is '%.32s'; use cephfs, rbd or dir", spec->type);
        return FALSE;
    }
    if (!fields_check("origin", origin, types[i].fields, error))
        return FALSE;
    spec->is_image = strcmp(spec->type, "rbd") == 0;
    spec->root_path = get_string(origin, "rootPath");
    spec->pool = get_string(origin, "pool");
    spec->rados_namespace = get_string(origin, "radosNamespace");
    spec->image = get_string(origin, "image");
    spec->snapshot = get_string(origin, "snapshot");
    spec->shared = json_is_true(json_object_get(origin, "shared"));
    if (!spec->is_image && spec->root_path[0] != '/')
        return refuse(error, "origin: field 'rootPath' must be an absolute path");
    if (spec->is_image && (!spec->pool[0] || !spec->image[0]))
        return refuse(error, "origin: fields 'pool' and 'image' must not be empty");
    if (spec->snapshot[0] && !spec->read_only)
        return refuse(error, "origin: a snapshot can only be opened with 'readOnly'");
    spec->place = spec->is_image ? image_place(spec) : g_strdup(spec->root_path);
    spec->cluster_id = get_string(origin, "clusterID");
    spec->fs_name = get_string(origin, "fsName");
    spec->user_id = get_string(origin, "userID");
    spec->user_key = get_string(origin, "userKey");
    if (strcmp(spec->type, "dir") == 0)
        return TRUE;
    if (!spec->user_id[0])
        return refuse(error, "origin: field 'userID' is empty");
    if (!spec->user_key[0])
        return refuse(error, "origin: field 'userKey' is empty");
    spec->monitors = join_monitors(json_object_get(origin, "monitors"));
    if (!spec->monitors[0])
        return refuse(error, "origin: field 'monitors' names no monitor");
    json_t *timeout = json_object_get(origin, "timeoutSec");
    json_int_t seconds = timeout ? json_integer_value(timeout) : DEFAULT_TIMEOUT_SEC;
    if (seconds > MAX_TIMEOUT_SEC)
        return refuse(error, "origin: field 'timeoutSec' must be at most 600");
    spec->timeout_sec = seconds ? (unsigned)seconds : DEFAULT_TIMEOUT_SEC;
    return read_client(spec, origin, error);
}

VolumeSpec *spec_parse(const json_t *request, GError **error)
{
    g_autoptr(VolumeSpec) spec = g_new0(VolumeSpec, 1);
    spec->json = json_deep_copy(request);
    json_object_del(spec->json, "op");
    if (!fields_check("open", spec->json, open_fields, error))
        return NULL;
    /* "fetch" gives it back within one message. */
    if (json_dumpb(spec->json, NULL, 0, JSON_COMPACT) > WIRE_MAX_MESSAGE / 2) {
        refuse(error, "open: the spec is larger than 64 KiB");
        return NULL;
    }
    spec->volume = get_string(spec->json, "volume");
    if (!spec->volume[0] || strlen(spec->volume) > MAX_VOLUME_ID) {
        refuse(error, "open: field 'volume' must be 1 to 512 bytes long");
        return NULL;
    }
    const json_t *cache = json_object_get(spec->json, "cache");
    spec->cache = !cache || json_is_true(cache);
    spec->read_only = json_is_true(json_object_get(spec->json, "readOnly"));
    json_t *group = json_object_get(spec->json, "mountGroup");
    spec->mount_group = group ? (int64_t)json_integer_value(group) : -1;
    if (spec->mount_group > UINT32_MAX - 1)
        return refuse(error, "open: field 'mountGroup' is no group"), NULL;
    spec->warm = json_is_true(json_object_get(spec->json, "warm"));
    spec->quota_bytes = (uint64_t)json_integer_value(json_object_get(spec->json, "cacheQuota"));
    if (!read_origin(spec, json_object_get(spec->json, "origin"), error))
        return NULL;
    return g_steal_pointer(&spec);
}

gboolean spec_check_dir(const VolumeSpec *spec, const char *root, GError **error)
{
    if (strcmp(spec->type, "dir") != 0)
        return TRUE;
    if (!root) {
        g_set_error(error, WIRE_ERROR, WIRE_ERROR_FAILED_PRECONDITION,
                    "open: volume %s is of type dir, a directory of this node, which is for "
                    "development: hearthd serves none without --dir-root",
                    spec->volume);
        return FALSE;
    }
    char *top = realpath(root, NULL), *path = realpath(spec->root_path, NULL);
    const size_t n = top && strcmp(top, "/") != 0 ? strlen(top) : 0;
    /* What is not there is left to whoever opens it. */
    const gboolean below =
        top && (!path || (strncmp(path, top, n) == 0 && path[n] == '/') || strcmp(path, top) == 0);
    if (!below)
        g_set_error(error, WIRE_ERROR, WIRE_ERROR_FAILED_PRECONDITION,
                    "open: rootPath %s is not below %s, which --dir-root names", spec->root_path,
                    root);
    free(top);
    free(path);
    return below;
}

void spec_free(VolumeSpec *spec)
{
    if (!spec)
        return;
    /* The JSON library overwrites only when the program asked for it; this must not depend on it.
     */
    json_t *key = json_object_get(json_object_get(spec->json, "origin"), "userKey");
    if (json_is_string(key))
        explicit_bzero((char *)json_string_value(key), json_string_length(key));
    json_decref(spec->json);
    g_free(spec->place);
    g_free(spec->monitors);
    g_free(spec->conf);
    g_free(spec);
}

VolumeSpec *spec_copy(const VolumeSpec *spec)
{
    VolumeSpec *copy = spec_parse(spec->json, NULL);
    if (!copy)
        g_error("a spec is not what it was made of");
    return copy;
}

gboolean spec_same_authority(const VolumeSpec *a, const VolumeSpec *b)
{
    return strcmp(a->cluster_id, b->cluster_id) == 0 && strcmp(a->user_id, b->user_id) == 0 &&
           strcmp(a->user_key, b->user_key) == 0;
}

const char *spec_difference(const VolumeSpec *a, const VolumeSpec *b)
{
    if (strcmp(a->type, b->type) != 0)
        return "origin.type";
    if (strcmp(a->cluster_id, b->cluster_id) != 0)
        return "origin.clusterID";
    if (strcmp(a->fs_name, b->fs_name) != 0)
        return "origin.fsName";
    if (strcmp(a->place, b->place) != 0)
        return a->is_image ? "origin.image" : "origin.rootPath";
    if (a->shared != b->shared)
        return "origin.shared";
    if (strcmp(a->user_id, b->user_id) != 0)
        return "origin.userID";
    if (a->cache != b->cache)
        return "cache";
    if (a->read_only != b->read_only)
        return "readOnly";
    return NULL;
}

/* What Ceph is told of who connects; both the caller's. */
static void names_of(const VolumeSpec *spec, const Incarnation *incarnation, char **client,
                     char **dead_client)
{
    *client = incarnation ? incarnation_client(incarnation, spec->volume) : NULL;
    *dead_client = incarnation ? incarnation_dead_client(incarnation, spec->volume) : NULL;
}

Image *spec_connect_image(const VolumeSpec *spec, const Incarnation *incarnation, GError **error)
{
    g_autofree char *client = NULL, *dead_client = NULL;
    names_of(spec, incarnation, &client, &dead_client);
    const RbdImageConfig config = {
        .monitors = spec->monitors,
        .user_id = spec->user_id,
        .key = spec->user_key,
        .pool = spec->pool,
        .rados_namespace = spec->rados_namespace,
        .image = spec->image,
        .snapshot = spec->snapshot[0] ? spec->snapshot : NULL,
        .timeout_sec = spec->timeout_sec,
        .read_only = spec->read_only,
        .shared = spec->shared,
        .client = client,
        .dead_client = dead_client,
        .ceph = spec->ceph,
    };
    return image_rbd_open(&config, error);
}

Origin *spec_connect(const VolumeSpec *spec, const Incarnation *incarnation, GError **error)
{
    g_autoptr(Origin) origin = NULL;
    g_autofree char *client = NULL, *dead_client = NULL;
    names_of(spec, incarnation, &client, &dead_client);
    if (spec->monitors) {
        const CephfsOriginConfig config = {
            .monitors = spec->monitors,
            .user_id = spec->user_id,
            .key = spec->user_key,
            .fs_name = spec->fs_name[0] ? spec->fs_name : NULL,
            .root_path = spec->root_path,
            .timeout_sec = spec->timeout_sec,
            .client = client,
            .dead_client = dead_client,
            .ceph = spec->ceph,
        };
        origin = origin_cephfs_open(&config, error);
    } else {
        origin = origin_dir_open(spec->root_path, error);
    }
    if (!origin)
        return NULL;
    OriginNode *root;
    OriginAttr attr;
    int result = origin->ops->root(origin, &root, &attr);
    if (result < 0) {
        g_set_error(error, G_IO_ERROR, g_io_error_from_errno(-result), "rootPath %s: %s",
                    spec->root_path, g_strerror(-result));
        return NULL;
    }
    origin->ops->put(origin, root);
    if (!S_ISDIR(attr.st.st_mode)) {
        g_set_error(error, WIRE_ERROR, WIRE_ERROR_INVALID_ARGUMENT, "rootPath %s is no directory",
                    spec->root_path);
        return NULL;
    }
    return g_steal_pointer(&origin);
}

gboolean spec_try_image(const VolumeSpec *spec, GError **error)
{
    VolumeSpec reading = *spec;
    reading.read_only = TRUE;
    Image *image = spec_connect_image(&reading, NULL, error);
    image_close(image);
    return image != NULL;
}
