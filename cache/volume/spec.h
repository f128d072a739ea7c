/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spec of a volume: what "open" was given, checked, and kept in memory for "fetch". It holds
 * the key of a Ceph user, so it is wiped when it is freed.
 */
#ifndef HEARTH_CACHE_VOLUME_SPEC_H
#define HEARTH_CACHE_VOLUME_SPEC_H

#include <glib.h>
#include <jansson.h>
#include <stdint.h>
#include "cache/origin/image.h"
#include "cache/origin/origin.h"
#include "cache/volume/incarnation.h"
#include "cache/volume/kinds.h"

struct VolumeSpec {
    json_t *json; /* as given, without "op"; the borrowed strings below point into it */
    const char *volume;
    const OriginKind *kind;
    const char *cluster_id, *user_id, *user_key;           /* kinds in Ceph; else "" */
    const char *claim, *pv;                                /* what it is in Kubernetes, or "" */
    const char *fs_name, *root_path;                       /* trees; else "" */
    const char *pool, *rados_namespace, *image, *snapshot; /* rbd; else "" */
    gboolean shared;                                       /* rbd */
    char *location;       /* for people: rootPath, or POOL[/NAMESPACE]/IMAGE[@SNAPSHOT] */
    char *monitors;       /* joined by commas; NULL: not in Ceph */
    CephClient ceph;      /* zero: not in Ceph */
    char **conf;          /* options of Ceph's client library: borrowed names and values */
    unsigned timeout_sec; /* for Ceph to answer */
    gboolean cache, read_only, warm;
    gboolean shared_locks;     /* trees: file locks hold on all nodes */
    uint64_t quota_bytes;      /* 0: none */
    int64_t mount_group;       /* -1: none */
    unsigned read_timeout_sec; /* of a cold read of a fill layer; 0: none */
};

/* NULL with WIRE_ERROR_INVALID_ARGUMENT naming the field. */
VolumeSpec *spec_parse(const json_t *request, GError **error);
/*
 * Whether this hearthd may open it: a directory of this machine only below `dir_root` (NULL: none),
 * because a rootPath of the user's choice would show any directory of the node; other kinds always.
 * FAILED_PRECONDITION.
 */
gboolean spec_check_allowed(const VolumeSpec *spec, const char *dir_root, GError **error);
/* Wipes the key. NULL is fine. */
void spec_free(VolumeSpec *spec);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(VolumeSpec, spec_free)

VolumeSpec *spec_copy(const VolumeSpec *spec);
/* Whether both are the same user of the same cluster, with the same key. */
gboolean spec_same_authority(const VolumeSpec *a, const VolumeSpec *b);
/* The name of the first field in which they are different volumes, or NULL. How the same bytes are
 * reached (monitors, key, timeout) and how many are kept is no difference. The caller's. */
char *spec_difference(const VolumeSpec *a, const VolumeSpec *b);
/* Connects to a tree of files, and checks that its root is a directory. Blocks. `incarnation` may
 * be NULL: the session then has no name. */
Origin *spec_connect(const VolumeSpec *spec, const Incarnation *incarnation, GError **error);
/* The same for an image. */
Image *spec_connect_image(const VolumeSpec *spec, const Incarnation *incarnation, GError **error);
/* Whether the spec's user with its key may read the image: opens it once more, without a lock. */
gboolean spec_try_image(const VolumeSpec *spec, GError **error);

#endif
