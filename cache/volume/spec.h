/* SPDX-License-Identifier: Apache-2.0 */
/* What "open" was given: checked, and kept in memory for "fetch". It holds the secret. */
#ifndef HEARTH_CACHE_VOLUME_SPEC_H
#define HEARTH_CACHE_VOLUME_SPEC_H

#include <glib.h>
#include <jansson.h>
#include <stdint.h>
#include "cache/volume/incarnation.h"
#include "cache/origin/image.h"
#include "cache/origin/origin.h"

typedef struct VolumeSpec {
    json_t *json; /* as given, without "op"; what follows points into it */
    const char *volume, *type, *cluster_id, *user_id, *user_key;
    const char *fs_name, *root_path;                       /* types cephfs and dir */
    const char *pool, *rados_namespace, *image, *snapshot; /* type rbd; "": none */
    char *place;     /* for people: rootPath, or POOL[/NAMESPACE]/IMAGE[@SNAPSHOT] */
    char *monitors;  /* joined by commas; NULL for type dir */
    CephClient ceph; /* of type dir: nothing */
    char **conf;     /* ceph.conf: borrowed names and values */
    unsigned timeout_sec;
    gboolean cache, read_only, warm;
    gboolean is_image, shared;
    uint64_t quota_bytes; /* 0: none */
    int64_t mount_group;  /* -1: none */
} VolumeSpec;

/* NULL with WIRE_ERROR_INVALID_ARGUMENT naming the field. */
VolumeSpec *spec_parse(const json_t *request, GError **error);
/* Whether one of type dir is below `root` (NULL: nothing is); of other types always. For
 * development: a rootPath of the user's choice would show any directory of the node.
 * FAILED_PRECONDITION. */
gboolean spec_check_dir(const VolumeSpec *spec, const char *root, GError **error);
void spec_free(VolumeSpec *spec);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(VolumeSpec, spec_free)

VolumeSpec *spec_copy(const VolumeSpec *spec);
/* Whether both are the same user of the same cluster, with the same key. */
gboolean spec_same_authority(const VolumeSpec *a, const VolumeSpec *b);
/* The name of the first field in which they are different volumes, or NULL. How the same bytes are
 * reached (monitors, key, timeout) and how many are kept is no difference. */
const char *spec_difference(const VolumeSpec *a, const VolumeSpec *b);
/* Connects, and checks that the root is a directory. Blocks. */
/* `incarnation` may be NULL: the session then has no name. */
Origin *spec_connect(const VolumeSpec *spec, const Incarnation *incarnation, GError **error);
/* The same of one that is an image. */
Image *spec_connect_image(const VolumeSpec *spec, const Incarnation *incarnation, GError **error);
/* Whether the spec's user with its key may read the image: opens it once more, without a lock. */
gboolean spec_try_image(const VolumeSpec *spec, GError **error);

#endif
