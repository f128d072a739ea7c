/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/volume/spec.h"
#include <gio/gio.h>
#include <string.h>
#include "common/volume_name.h"
#include "proto/wire.h"
#include "proto/wire_fields.h"
#include "proto/wire_keys.h"

#define MAX_VOLUME_ID 512
#define DEFAULT_TIMEOUT_SEC 25
#define MAX_TIMEOUT_SEC 600
#define MAX_READ_TIMEOUT_SEC 86400

static const WireField open_fields[] = {
    {WIRE_KEY_VOLUME, WIRE_FIELD_STRING, TRUE},
    {WIRE_KEY_ORIGIN, WIRE_FIELD_OBJECT, TRUE},
    {WIRE_KEY_CACHE, WIRE_FIELD_BOOLEAN, FALSE},
    {WIRE_KEY_CACHE_QUOTA, WIRE_FIELD_COUNT, FALSE},
    {WIRE_KEY_READ_ONLY, WIRE_FIELD_BOOLEAN, FALSE},
    {WIRE_KEY_WARM, WIRE_FIELD_BOOLEAN, FALSE},
    {WIRE_KEY_MOUNT_GROUP, WIRE_FIELD_COUNT, FALSE},
    {WIRE_KEY_READ_TIMEOUT_SEC, WIRE_FIELD_COUNT, FALSE},
    {WIRE_KEY_NAMES, WIRE_FIELD_OBJECT, FALSE},
    {WIRE_KEY_SHARED_LOCKS, WIRE_FIELD_BOOLEAN, FALSE},
    {NULL, 0, FALSE},
};

static gboolean invalid(GError **error, const char *text)
{
    return wire_fail(error, WIRE_ERROR_INVALID_ARGUMENT, "%s", text);
}

/* "" when there is none. */
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

/* How connections to the cluster are made. */
static gboolean read_client(VolumeSpec *spec, const json_t *origin, GError **error)
{
    json_t *conf = json_object_get(origin, WIRE_KEY_CEPH_CONF), *value;
    const char *name, *location = get_string(origin, WIRE_KEY_CRUSH_LOCATION),
                      *path = get_string(origin, WIRE_KEY_NET_NAMESPACE_FILE_PATH);
    gsize n = 0;
    spec->conf = g_new0(char *, 2 * json_object_size(conf) + 1);
    json_object_foreach (conf, name, value) {
        if (!json_is_string(value))
            return invalid(error, "origin: field 'cephConf' must have strings for values");
        spec->conf[n++] = (char *)name;
        spec->conf[n++] = (char *)json_string_value(value);
    }
    spec->ceph = (CephClient){.cluster = spec->cluster_id, .conf = spec->conf};
    if (location[0])
        spec->ceph.crush_location = location;
    if (path[0])
        spec->ceph.net_namespace = path;
    return TRUE;
}

static gboolean read_ceph(VolumeSpec *spec, const json_t *origin, GError **error)
{
    if (!spec->user_id[0])
        return invalid(error, "origin: field 'userID' is empty");
    if (!spec->user_key[0])
        return invalid(error, "origin: field 'userKey' is empty");
    spec->monitors = join_monitors(json_object_get(origin, WIRE_KEY_MONITORS));
    if (!spec->monitors[0])
        return invalid(error, "origin: field 'monitors' names no monitor");
    json_t *timeout = json_object_get(origin, WIRE_KEY_TIMEOUT_SEC);
    json_int_t seconds = timeout ? json_integer_value(timeout) : DEFAULT_TIMEOUT_SEC;
    if (seconds > MAX_TIMEOUT_SEC)
        return invalid(error, "origin: field 'timeoutSec' must be at most 600");
    spec->timeout_sec = seconds ? (unsigned)seconds : DEFAULT_TIMEOUT_SEC;
    return read_client(spec, origin, error);
}

static gboolean read_origin(VolumeSpec *spec, const json_t *origin, GError **error)
{
    const char *type = get_string(origin, WIRE_KEY_TYPE);
    spec->kind = kind_find(type);
    if (!spec->kind) {
        g_autofree char *types = kind_types();
        return wire_fail(error, WIRE_ERROR_INVALID_ARGUMENT,
                         "origin: field 'type' is '%.32s'; use one of %s", type, types);
    }
    if (!wire_fields_check("origin", origin, spec->kind->fields, error))
        return FALSE;
    spec->root_path = get_string(origin, WIRE_KEY_ROOT_PATH);
    spec->pool = get_string(origin, WIRE_KEY_POOL);
    spec->rados_namespace = get_string(origin, WIRE_KEY_RADOS_NAMESPACE);
    spec->image = get_string(origin, WIRE_KEY_IMAGE);
    spec->snapshot = get_string(origin, WIRE_KEY_SNAPSHOT);
    spec->shared = json_is_true(json_object_get(origin, WIRE_KEY_SHARED));
    spec->cluster_id = get_string(origin, WIRE_KEY_CLUSTER_ID);
    spec->fs_name = get_string(origin, WIRE_KEY_FS_NAME);
    spec->user_id = get_string(origin, WIRE_KEY_USER_ID);
    spec->user_key = get_string(origin, WIRE_KEY_USER_KEY);
    if (!spec->kind->check(spec, error))
        return FALSE;
    spec->location = spec->kind->location(spec);
    return !spec->kind->is_ceph || read_ceph(spec, origin, error);
}

/* Members that are not known are ignored: a later node plugin may know more names. */
static gboolean read_names(VolumeSpec *spec, GError **error)
{
    const json_t *names = json_object_get(spec->json, WIRE_KEY_NAMES);
    spec->claim = get_string(names, WIRE_KEY_CLAIM);
    spec->pv = get_string(names, WIRE_KEY_PERSISTENT_VOLUME);
    if (*spec->claim && !volume_name_is_claim(spec->claim))
        return invalid(error, "open: names.claim is no NAMESPACE/NAME of a claim");
    if (*spec->pv && !volume_name_is_object(spec->pv))
        return invalid(error, "open: names.persistentVolume is no name of a PersistentVolume");
    return TRUE;
}

static gboolean read_open(VolumeSpec *spec, GError **error)
{
    /* "fetch" returns it within one message. */
    if (json_dumpb(spec->json, NULL, 0, JSON_COMPACT) > WIRE_MAX_MESSAGE / 2)
        return invalid(error, "open: the spec is larger than 64 KiB");
    spec->volume = get_string(spec->json, WIRE_KEY_VOLUME);
    if (!spec->volume[0] || strlen(spec->volume) > MAX_VOLUME_ID)
        return invalid(error, "open: field 'volume' must be 1 to 512 bytes long");
    const json_t *cache = json_object_get(spec->json, WIRE_KEY_CACHE);
    spec->cache = !cache || json_is_true(cache);
    spec->read_only = json_is_true(json_object_get(spec->json, WIRE_KEY_READ_ONLY));
    const json_t *group = json_object_get(spec->json, WIRE_KEY_MOUNT_GROUP);
    spec->mount_group = group ? (int64_t)json_integer_value(group) : -1;
    if (spec->mount_group > UINT32_MAX - 1)
        return invalid(error, "open: field 'mountGroup' is no group");
    const json_int_t seconds =
        json_integer_value(json_object_get(spec->json, WIRE_KEY_READ_TIMEOUT_SEC));
    if (seconds > MAX_READ_TIMEOUT_SEC)
        return invalid(error, "open: field 'readTimeoutSec' must be at most 86400");
    spec->read_timeout_sec = (unsigned)seconds;
    spec->shared_locks = json_is_true(json_object_get(spec->json, WIRE_KEY_SHARED_LOCKS));
    spec->warm = json_is_true(json_object_get(spec->json, WIRE_KEY_WARM));
    spec->quota_bytes =
        (uint64_t)json_integer_value(json_object_get(spec->json, WIRE_KEY_CACHE_QUOTA));
    return read_names(spec, error);
}

VolumeSpec *spec_parse(const json_t *request, GError **error)
{
    g_autoptr(VolumeSpec) spec = g_new0(VolumeSpec, 1);
    spec->json = json_deep_copy(request);
    json_object_del(spec->json, WIRE_KEY_OP);
    if (!wire_fields_check(WIRE_OP_OPEN, spec->json, open_fields, error))
        return NULL;
    if (!read_open(spec, error))
        return NULL;
    if (!read_origin(spec, json_object_get(spec->json, WIRE_KEY_ORIGIN), error))
        return NULL;
    return g_steal_pointer(&spec);
}

gboolean spec_check_allowed(const VolumeSpec *spec, const char *dir_root, GError **error)
{
    return !spec->kind->check_allowed || spec->kind->check_allowed(spec, dir_root, error);
}

void spec_free(VolumeSpec *spec)
{
    if (!spec)
        return;
    /* The JSON library overwrites what it frees only if the program asked for that
     * (wire_wipe_freed_json); the key must not depend on it. */
    json_t *key = json_object_get(json_object_get(spec->json, WIRE_KEY_ORIGIN), WIRE_KEY_USER_KEY);
    if (json_is_string(key))
        explicit_bzero((char *)json_string_value(key), json_string_length(key));
    g_clear_pointer(&spec->json, json_decref);
    g_free(spec->location);
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

char *spec_difference(const VolumeSpec *a, const VolumeSpec *b)
{
    if (a->kind != b->kind)
        return g_strdup("origin.type");
    if (strcmp(a->cluster_id, b->cluster_id) != 0)
        return g_strdup("origin.clusterID");
    if (strcmp(a->fs_name, b->fs_name) != 0)
        return g_strdup("origin.fsName");
    if (strcmp(a->location, b->location) != 0)
        return g_strconcat("origin.", a->kind->location_field, NULL);
    if (a->shared != b->shared)
        return g_strdup("origin.shared");
    if (strcmp(a->user_id, b->user_id) != 0)
        return g_strdup("origin.userID");
    if (a->cache != b->cache)
        return g_strdup(WIRE_KEY_CACHE);
    if (a->read_only != b->read_only)
        return g_strdup(WIRE_KEY_READ_ONLY);
    return NULL;
}

/* Both names are the caller's. */
static void make_names(const VolumeSpec *spec, const Incarnation *incarnation, char **client,
                       char **dead_client)
{
    *client = incarnation ? incarnation_client(incarnation, spec->volume) : NULL;
    *dead_client = incarnation ? incarnation_dead_client(incarnation, spec->volume) : NULL;
}

Image *spec_connect_image(const VolumeSpec *spec, const Incarnation *incarnation, GError **error)
{
    g_autofree char *client = NULL, *dead_client = NULL;
    make_names(spec, incarnation, &client, &dead_client);
    return spec->kind->open_image(spec, &(ClientNames){client, dead_client}, error);
}

Origin *spec_connect(const VolumeSpec *spec, const Incarnation *incarnation, GError **error)
{
    g_autofree char *client = NULL, *dead_client = NULL;
    make_names(spec, incarnation, &client, &dead_client);
    g_autoptr(Origin) origin =
        spec->kind->open_tree(spec, &(ClientNames){client, dead_client}, error);
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
        wire_fail(error, WIRE_ERROR_INVALID_ARGUMENT, "rootPath %s is no directory",
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
