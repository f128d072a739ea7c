/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/volume/kinds.h"
#include <stdlib.h>
#include <string.h>
#include "cache/volume/spec.h"
#include "proto/wire.h"
#include "proto/wire_keys.h"

static const char *text_or_null(const char *text)
{
    return text[0] ? text : NULL;
}

static gboolean check_root_path(const VolumeSpec *spec, GError **error)
{
    if (spec->root_path[0] == '/')
        return TRUE;
    return wire_fail(error, WIRE_ERROR_INVALID_ARGUMENT,
                     "origin: field 'rootPath' must be an absolute path");
}

static char *root_path_location(const VolumeSpec *spec)
{
    return g_strdup(spec->root_path);
}

/* ---- cephfs: a directory of a file system ---- */

static const WireField cephfs_fields[] = {
    {WIRE_KEY_TYPE, WIRE_FIELD_STRING, TRUE},
    {WIRE_KEY_CLUSTER_ID, WIRE_FIELD_STRING, FALSE},
    {WIRE_KEY_MONITORS, WIRE_FIELD_STRINGS, TRUE},
    {WIRE_KEY_FS_NAME, WIRE_FIELD_STRING, FALSE},
    {WIRE_KEY_ROOT_PATH, WIRE_FIELD_STRING, TRUE},
    {WIRE_KEY_USER_ID, WIRE_FIELD_STRING, TRUE},
    {WIRE_KEY_USER_KEY, WIRE_FIELD_STRING, TRUE},
    {WIRE_KEY_TIMEOUT_SEC, WIRE_FIELD_COUNT, FALSE},
    {WIRE_KEY_CEPH_CONF, WIRE_FIELD_OBJECT, FALSE},
    {WIRE_KEY_CRUSH_LOCATION, WIRE_FIELD_STRING, FALSE},
    {WIRE_KEY_NET_NAMESPACE_FILE_PATH, WIRE_FIELD_STRING, FALSE},
    {NULL, 0, FALSE},
};

static Origin *open_cephfs(const VolumeSpec *spec, const ClientNames *names, GError **error)
{
    const CephfsOriginConfig config = {
        .monitors = spec->monitors,
        .user_id = spec->user_id,
        .key = spec->user_key,
        .fs_name = text_or_null(spec->fs_name),
        .root_path = spec->root_path,
        .timeout_sec = spec->timeout_sec,
        .client = names->client,
        .dead_client = names->dead_client,
        .ceph = spec->ceph,
    };
    return origin_cephfs_open(&config, error);
}

/* ---- rbd: an image or a snapshot of one ---- */

static const WireField rbd_fields[] = {
    {WIRE_KEY_TYPE, WIRE_FIELD_STRING, TRUE},
    {WIRE_KEY_CLUSTER_ID, WIRE_FIELD_STRING, FALSE},
    {WIRE_KEY_MONITORS, WIRE_FIELD_STRINGS, TRUE},
    {WIRE_KEY_POOL, WIRE_FIELD_STRING, TRUE},
    {WIRE_KEY_RADOS_NAMESPACE, WIRE_FIELD_STRING, FALSE},
    {WIRE_KEY_IMAGE, WIRE_FIELD_STRING, TRUE},
    {WIRE_KEY_SNAPSHOT, WIRE_FIELD_STRING, FALSE},
    {WIRE_KEY_SHARED, WIRE_FIELD_BOOLEAN, FALSE},
    {WIRE_KEY_USER_ID, WIRE_FIELD_STRING, TRUE},
    {WIRE_KEY_USER_KEY, WIRE_FIELD_STRING, TRUE},
    {WIRE_KEY_TIMEOUT_SEC, WIRE_FIELD_COUNT, FALSE},
    {WIRE_KEY_CEPH_CONF, WIRE_FIELD_OBJECT, FALSE},
    {WIRE_KEY_CRUSH_LOCATION, WIRE_FIELD_STRING, FALSE},
    {WIRE_KEY_NET_NAMESPACE_FILE_PATH, WIRE_FIELD_STRING, FALSE},
    {NULL, 0, FALSE},
};

static gboolean check_rbd(const VolumeSpec *spec, GError **error)
{
    if (!spec->pool[0] || !spec->image[0])
        return wire_fail(error, WIRE_ERROR_INVALID_ARGUMENT,
                         "origin: fields 'pool' and 'image' must not be empty");
    if (spec->snapshot[0] && !spec->read_only)
        return wire_fail(error, WIRE_ERROR_INVALID_ARGUMENT,
                         "origin: a snapshot can only be opened with 'readOnly'");
    return TRUE;
}

static char *rbd_location(const VolumeSpec *spec)
{
    const char *slash = spec->rados_namespace[0] ? "/" : "";
    const char *at = spec->snapshot[0] ? "@" : "";
    return g_strconcat(spec->pool, "/", spec->rados_namespace, slash, spec->image, at,
                       spec->snapshot, NULL);
}

static Image *open_rbd(const VolumeSpec *spec, const ClientNames *names, GError **error)
{
    const RbdImageConfig config = {
        .monitors = spec->monitors,
        .user_id = spec->user_id,
        .key = spec->user_key,
        .pool = spec->pool,
        .rados_namespace = spec->rados_namespace,
        .image = spec->image,
        .snapshot = text_or_null(spec->snapshot),
        .timeout_sec = spec->timeout_sec,
        .read_only = spec->read_only,
        .shared = spec->shared,
        .client = names->client,
        .dead_client = names->dead_client,
        .ceph = spec->ceph,
    };
    return image_rbd_open(&config, error);
}

/* ---- dir: a directory of this machine, for development ---- */

static const WireField dir_fields[] = {
    {WIRE_KEY_TYPE, WIRE_FIELD_STRING, TRUE},
    {WIRE_KEY_ROOT_PATH, WIRE_FIELD_STRING, TRUE},
    {NULL, 0, FALSE},
};

/* A path that does not exist is allowed here: opening it fails with a better message. */
static gboolean is_below(const char *root, const char *root_path)
{
    char *top = realpath(root, NULL), *path = realpath(root_path, NULL);
    const size_t n = top && strcmp(top, "/") != 0 ? strlen(top) : 0;
    const gboolean below =
        top && (!path || (strncmp(path, top, n) == 0 && path[n] == '/') || strcmp(path, top) == 0);
    free(top);
    free(path);
    return below;
}

static gboolean check_dir_allowed(const VolumeSpec *spec, const char *dir_root, GError **error)
{
    if (!dir_root)
        return wire_fail(error, WIRE_ERROR_FAILED_PRECONDITION,
                         "open: volume %s is of type dir, a directory of this node, which is for "
                         "development: hearthd serves none without --dir-root",
                         spec->volume);
    if (!is_below(dir_root, spec->root_path))
        return wire_fail(error, WIRE_ERROR_FAILED_PRECONDITION,
                         "open: rootPath %s is not below %s, which --dir-root names",
                         spec->root_path, dir_root);
    return TRUE;
}

static Origin *open_dir(const VolumeSpec *spec, const ClientNames *names, GError **error)
{
    (void)names;
    return origin_dir_open(spec->root_path, error);
}

/* ---- the table ---- */

static const OriginKind kinds[] = {
    {
        .type = WIRE_TYPE_CEPHFS,
        .fields = cephfs_fields,
        .location_field = WIRE_KEY_ROOT_PATH,
        .is_ceph = TRUE,
        .check = check_root_path,
        .location = root_path_location,
        .open_tree = open_cephfs,
    },
    {
        .type = WIRE_TYPE_RBD,
        .fields = rbd_fields,
        .location_field = WIRE_KEY_IMAGE,
        .is_ceph = TRUE,
        .check = check_rbd,
        .location = rbd_location,
        .open_image = open_rbd,
    },
    {
        .type = WIRE_TYPE_DIR,
        .fields = dir_fields,
        .location_field = WIRE_KEY_ROOT_PATH,
        .immutable_if_read_only = TRUE,
        .check = check_root_path,
        .check_allowed = check_dir_allowed,
        .location = root_path_location,
        .open_tree = open_dir,
    },
};

const OriginKind *kind_find(const char *type)
{
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++)
        if (strcmp(kinds[i].type, type) == 0)
            return &kinds[i];
    return NULL;
}

char *kind_types(void)
{
    GString *types = g_string_new(NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++)
        g_string_append_printf(types, "%s%s", i ? ", " : "", kinds[i].type);
    return g_string_free(types, FALSE);
}
