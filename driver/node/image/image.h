/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Staging of volumes that are images:
 *
 *     hearthd --FUSE--> DEVICE-DIR/HASH/image --loop--> /dev/loopN --ext4, xfs--> staging path
 *                                                          |                         | bind
 *                                                          +--bind--> target file    target
 *
 * The FUSE mount is staged as any other (staging.h), at a place of its own; HASH is of the volume
 * ID. Nothing is recorded but in the mount table and in the loop device's tag (block.h), so what
 * staging.h says of repetitions after a crash holds here too. Of one image there is one loop device
 * and one file system on a node, whatever the number of staging paths.
 *
 * A blank image is formatted. A crash in the midst of that is known by a note that is kept with the
 * image from before to after (fs.c).
 */
#ifndef HEARTH_DRIVER_NODE_IMAGE_IMAGE_H
#define HEARTH_DRIVER_NODE_IMAGE_IMAGE_H

#include "driver/node/staging.h"

/* How an image is used; borrowed. */
typedef struct ImageUse {
    gboolean block;           /* as a device; what follows but attrs is not looked at */
    const char *fs_type;      /* "ext4", "xfs"; NULL: what is there, else ext4 */
    const char *mkfs_options; /* NULL: a default for empty and thin images */
    const gid_t *group;       /* the pod's fsGroup, taken by publishing; NULL: none */
    char *const *fs_options;  /* the file system's own mount options; NULL: none */
    const char *context;      /* SELinux's; NULL: none is asked for */
    uint64_t attrs;           /* MOUNT_ATTR_*; with RDONLY nothing is written to the image */
} ImageUse;

/* As staging_stage(). FAILED_PRECONDITION: its content is none that can be mounted; it is damaged;
 * somebody else has it. ALREADY_EXISTS: staged as a device and not a file system, or the reverse.
 */
gboolean image_stage(Staging *s, const char *volume, const char *path, const json_t *spec,
                     const ImageUse *use, gint64 timeout_ms, GError **error);
/* As staging_publish(), but for the group, which is the use's; for a device, `target` is a file.
 * `use` is that of the staging. */
gboolean image_publish(Staging *s, const char *volume, const char *staged, const char *target,
                       const ImageUse *use, uint64_t attrs, gboolean exclusive, gint64 timeout_ms,
                       GError **error);
/* Takes over the image's new size, to the file system if there is one. FAILED_PRECONDITION when it
 * is less than at_least, or the volume is not staged. */
gboolean image_expand(Staging *s, const char *volume, guint64 at_least, gint64 timeout_ms,
                      guint64 *bytes, GError **error);
/* Whether the volume is an image that is staged. */
gboolean image_is_staged(Staging *s, const char *volume, gboolean *staged, GError **error);
/* The size of the device that is published at `path`. *is_device FALSE: something else is there. */
gboolean image_device_bytes(Staging *s, const char *volume, const char *path, gboolean *is_device,
                            guint64 *bytes, GError **error);

#endif
