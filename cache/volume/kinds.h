/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds of origin that a volume can have: one row each in kinds.c. What hearthd does in another
 * way for one kind than for the others is a member of the row. A further kind is a row, and an
 * origin or an image that it opens.
 */
#ifndef HEARTH_CACHE_VOLUME_KINDS_H
#define HEARTH_CACHE_VOLUME_KINDS_H

#include <glib.h>
#include "cache/origin/image.h"
#include "cache/origin/origin.h"
#include "proto/wire_fields.h"

typedef struct VolumeSpec VolumeSpec;

/* How Ceph knows this client, and a client of an earlier hearthd that died; NULL: without a name.
 */
typedef struct ClientNames {
    const char *client, *dead_client;
} ClientNames;

typedef struct OriginKind {
    const char *type;           /* "type" of an ORIGIN (docs/design/protocol.md) */
    const WireField *fields;    /* members that an ORIGIN of this type can have */
    const char *location_field; /* the member that names what is opened */
    gboolean is_ceph;           /* it has monitors, a user and a key */
    /* It has no snapshots, so a volume that is opened read-only counts as immutable. */
    gboolean immutable_if_read_only;
    /* Checks the members that only this kind has. INVALID_ARGUMENT. */
    gboolean (*check)(const VolumeSpec *spec, GError **error);
    /* Whether this hearthd may open it; dir_root: the value of --dir-root or NULL. NULL: always.
     * FAILED_PRECONDITION. */
    gboolean (*check_allowed)(const VolumeSpec *spec, const char *dir_root, GError **error);
    /* For people: a path or the name of an image. The caller's. */
    char *(*location)(const VolumeSpec *spec);
    /* One of these two: a tree of files or an image. Both block on Ceph. */
    Origin *(*open_tree)(const VolumeSpec *spec, const ClientNames *names, GError **error);
    Image *(*open_image)(const VolumeSpec *spec, const ClientNames *names, GError **error);
} OriginKind;

static inline gboolean kind_is_image(const OriginKind *kind)
{
    return kind->open_image != NULL;
}

/* NULL: there is none of that type. */
const OriginKind *kind_find(const char *type);
/* All types, for messages: "cephfs, rbd, dir". The caller's. */
char *kind_types(void);

#endif
