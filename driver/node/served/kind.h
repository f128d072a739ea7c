/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds of volumes on a node. A NodeKind is a table of the steps that differ between them; the
 * steps that are the same for all are in driver/node/staging.c, which has one row for each kind.
 *
 *     live      hearthd serves the volume by FUSE, and that mount is the volume (served/live.c)
 *     image     hearthd serves one file, under a loop device with a file system (image/image.h)
 *     dataset   an overlay of layers that all claims of a snapshot share (dataset/dataset.h)
 *
 * Every kind is on top of mounts that hearthd serves: served/served.h.
 */
#ifndef HEARTH_DRIVER_NODE_SERVED_KIND_H
#define HEARTH_DRIVER_NODE_SERVED_KIND_H

#include <glib.h>
#include <jansson.h>
#include <stdint.h>
#include <sys/statvfs.h>
#include "driver/node/mount/mount.h"
#include "driver/volume/attributes.h"

/* All volumes of this node; driver/node/staging.h. */
typedef struct Staging Staging;

/* A moment in monotonic time until which an operation may wait. */
typedef gint64 Deadline;

static inline Deadline deadline_in(gint64 ms)
{
    return g_get_monotonic_time() + CLAMP(ms, 0, 24 * 3600 * 1000) * 1000;
}

static inline gint64 left_ms(Deadline deadline, gint64 at_most)
{
    return CLAMP((deadline - g_get_monotonic_time()) / 1000, 0, at_most);
}

/* How a pod uses a volume: its capability, and what the volume context says. Borrowed. */
typedef struct VolumeUse {
    uint64_t attrs;      /* MOUNT_ATTR_*; with RDONLY nothing is written to the volume */
    const char *context; /* SELinux context; NULL: none is requested */
    gint64 group;        /* the pod's fsGroup; -1: none */
    gboolean exclusive;  /* for a single pod: no second target is allowed */
    /* Images only. */
    gboolean block;           /* published as a device; the fields below are not used then */
    const char *fs_type;      /* "ext4", "xfs"; NULL: the one that is there, else ext4 */
    const char *mkfs_options; /* NULL: the defaults */
    char *const *fs_options;  /* mount options of the file system; NULL: none */
} VolumeUse;

/* One NodeStageVolume or NodePublishVolume. Borrowed; paths are canonical. */
typedef struct NodeCall {
    const char *volume;
    const char *staged; /* the staging path */
    const char *target; /* publish: the path for the pod; NULL while it is staged */
    const json_t *spec; /* stage: for hearthd_open(); NULL while it is published */
    VolumeUse use;      /* of the staging too when it is published */
    gboolean read_only; /* publish: read-only for this pod, whatever the staging is */
    Deadline deadline;
} NodeCall;

/* One NodeUnstageVolume or NodeUnpublishVolume. Borrowed. */
typedef struct NodeCleanup {
    const char *volume;
    const char *path;   /* NULL: its directory is gone */
    const char *layer;  /* what layer_below() said of the mount at `path` before; NULL: nothing */
    gboolean unstaging; /* else unpublishing */
    Deadline deadline;
} NodeCleanup;

/* A volume that is staged, before it is published. Owns its strings. */
typedef struct StagedVolume {
    char *volume;     /* the name by which hearthd and the keeper know it */
    char *context;    /* the SELinux context it is mounted with; NULL: none */
    const char *lost; /* why it must be mounted again; NULL: it need not */
} StagedVolume;

static inline void staged_volume_clear(StagedVolume *staged)
{
    g_clear_pointer(&staged->volume, g_free);
    g_clear_pointer(&staged->context, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(StagedVolume, staged_volume_clear)

/*
 * Errors are HEARTH_ERROR; driver/node/staging.h says which. The volume is held (common/busy.h),
 * except in owns, shows, layer_below, is_staged, expand, device_bytes, statvfs and fault. Steps
 * that may be NULL say what happens then.
 */
typedef struct NodeKind {
    const char *name;
    /* The volume is a block device with a file system of its own. So it takes file system options,
     * may be published as a device, and its files get the fsGroup when it is published. */
    gboolean on_device;
    /* Whether volumes with such attributes are staged as this kind. */
    gboolean (*takes)(const VolumeAttributes *attributes);
    /* Frees what the kind keeps in `s`. NULL: it keeps nothing. */
    void (*free)(Staging *s);

    /* Whether a mount that does not name the volume belongs to it. NULL: none does. */
    gboolean (*owns)(Staging *s, const MountEntry *entry, const char *volume);
    /* Whether the mount is of this kind. NULL: that cannot be seen from a mount. */
    gboolean (*shows)(const MountEntry *entry);
    /* The mount point of the layer that hearthd serves below such a mount; the caller's. NULL: the
     * mount itself is served. */
    char *(*layer_below)(const MountEntry *entry);

    gboolean (*stage)(Staging *s, const NodeCall *call, GError **error);
    /* Checks that the volume is staged, and whether hearthd serves it as the call needs it. */
    gboolean (*check)(Staging *s, const NodeCall *call, StagedVolume *staged, GError **error);
    /* Mounts the volume again as `spec` says, when check() has found it lost. */
    gboolean (*restore)(Staging *s, const NodeCall *call, const StagedVolume *staged,
                        const json_t *spec, GError **error);
    /* Makes the staged volume, which is served, visible at the target. */
    gboolean (*publish)(Staging *s, const NodeCall *call, GError **error);

    /* Before unmounting: takes away a publication whose volume cannot be told from the mount table.
     * NULL: there are none. */
    gboolean (*clear_lost)(Staging *s, const NodeCleanup *cleanup, GError **error);
    /* After unmounting: removes the mount point of a publication. NULL: nothing is done. */
    gboolean (*remove_target)(Staging *s, const NodeCleanup *cleanup, GError **error);
    /* At the end: removes everything below the volume that has no user any more. */
    gboolean (*remove_unused)(Staging *s, const NodeCleanup *cleanup, GError **error);

    /* Whether the volume is staged as this kind. NULL: the kind has nothing to expand on a node. */
    gboolean (*is_staged)(Staging *s, const char *volume, gboolean *staged, GError **error);
    /* Grows the volume on this node. The volume is not held yet. */
    gboolean (*expand)(Staging *s, const char *volume, guint64 at_least, Deadline deadline,
                       guint64 *bytes, GError **error);
    /* The size of a device published at `path`. *is_device stays FALSE for anything else. NULL: the
     * kind has no devices. */
    gboolean (*device_bytes)(Staging *s, const char *volume, const char *path, gboolean *is_device,
                             guint64 *bytes, GError **error);
    /* Usage of a mount of this kind. NULL: statvfs(3) tells it. */
    gboolean (*statvfs)(Staging *s, const MountEntry *entry, struct statvfs *st, GError **error);
    /* What is wrong with a mount of this kind, and how to fix it; the caller's. NULL: nothing. */
    char *(*fault)(Staging *s, const MountEntry *entry, Deadline deadline);
} NodeKind;

#endif
