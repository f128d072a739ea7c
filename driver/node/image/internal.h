/* SPDX-License-Identifier: Apache-2.0 */
/* What image.c (the kind), publish.c, size.c, fs.c (file systems) and mounts.c share. */
#ifndef HEARTH_DRIVER_NODE_IMAGE_INTERNAL_H
#define HEARTH_DRIVER_NODE_IMAGE_INTERNAL_H

#include "driver/node/image/block.h"
#include "driver/node/image/image.h"
#include "driver/node/served/served.h"

/* What no file system can use at the end of a device. */
#define IMAGE_LEFT_OVER_BYTES (64 * 1024)

/* The names of a volume's parts; owns its strings. */
typedef struct ImagePaths {
    char *dir, *file; /* the FUSE mount, and its file */
    char *tag;        /* of its loop device */
} ImagePaths;

void image_paths_of(const Staging *s, const char *volume, ImagePaths *paths);
void image_paths_clear(ImagePaths *paths);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ImagePaths, image_paths_clear)

/* The file system of an image, on its loop device. Borrowed. */
typedef struct ImageFs {
    const ImagePaths *paths;
    const LoopDevice *device;
    const VolumeUse *use;
    Deadline deadline;
} ImageFs;

/*
 * A detached mount of the file system, or -1: made if the device is blank, and checked. *grow is
 * its type when it is smaller than the device (the image was expanded while it was not attached),
 * else NULL; the caller's.
 */
int image_fs_mount(Staging *s, const ImageFs *fs, char **grow, GError **error);

/* ---- mounts.c; entries are borrowed from the table, NULL: there is none ---- */

/* Whether it is a mount of the file system on /dev/loopN. */
gboolean image_is_fs_on(const MountEntry *entry, int number);
/* The N of the /dev/loopN whose node is bound there, or -1. */
int image_bound_device(const MountEntry *entry);
/* Whether device N is bound there by publishing the volume with the tag. */
gboolean image_is_published(Staging *s, const MountEntry *entry, const char *tag, int number);
const MountEntry *image_find_fs(const GPtrArray *table, int number);
/* Where the volume with the tag is published as device N, but at `target` (NULL: anywhere). Neither
 * kubelet's binds of that nor publications of a volume that had the number before count. */
const MountEntry *image_find_publication(Staging *s, const GPtrArray *table, const char *tag,
                                         int number, const char *target);
/* Its file system or its publication. */
const MountEntry *image_find_use(Staging *s, const GPtrArray *table, const char *tag, int number);
/* Whether the mount is of the volume's image: its file system, or its device. */
gboolean image_owns(Staging *s, const MountEntry *entry, const char *volume);
/*
 * Unmounts a publication of the volume at `target` when its loop device is gone, or belongs to
 * another volume by now; also one without a known owner whose device is gone. Else does nothing.
 */
gboolean image_clear_lost(Staging *s, const char *volume, const char *target, Deadline deadline,
                          GError **error);

/* ---- publish.c, size.c: see NodeKind ---- */

gboolean image_publish(Staging *s, const NodeCall *call, GError **error);
gboolean image_remove_target(Staging *s, const NodeCleanup *cleanup, GError **error);
gboolean image_is_staged(Staging *s, const char *volume, gboolean *staged, GError **error);
gboolean image_expand(Staging *s, const char *volume, guint64 at_least, Deadline deadline,
                      guint64 *bytes, GError **error);
gboolean image_device_bytes(Staging *s, const char *volume, const char *path, gboolean *is_device,
                            guint64 *bytes, GError **error);

#endif
