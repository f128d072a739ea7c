/* SPDX-License-Identifier: Apache-2.0 */
/* What image.c (the devices), fs.c (file systems on them) and mounts.c share. */
#ifndef HEARTH_DRIVER_NODE_IMAGE_INTERNAL_H
#define HEARTH_DRIVER_NODE_IMAGE_INTERNAL_H

#include "driver/node/image/image.h"
#include "driver/node/staging_internal.h"

/* What no file system can use at the end of a device. */
#define IMAGE_LEFT_OVER_BYTES (64 * 1024)

/* Where a volume's parts are; owns its strings. */
typedef struct ImagePlace {
    char *dir, *file; /* the FUSE mount, and its file */
    char *tag;        /* of its loop device */
} ImagePlace;

void image_place_of(const Staging *s, const char *volume, ImagePlace *place);
void image_place_clear(ImagePlace *place);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ImagePlace, image_place_clear)

/*
 * A detached mount of the file system on the device, or -1: made if the device is blank, and
 * checked. *grow is its type when it is smaller than the device (the image was expanded while
 * nobody had it), else NULL; the caller's.
 */
int image_fs_mount(Staging *s, const ImagePlace *place, const LoopDevice *device,
                   const ImageUse *use, char **grow, Deadline deadline, GError **error);

/* mounts.c; entries are borrowed from the table, NULL: there is none */

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

#endif
