/* What image.c (the devices) and image_fs.c (file systems on them) share. */
#ifndef HEARTH_NODE_IMAGE_INTERNAL_H
#define HEARTH_NODE_IMAGE_INTERNAL_H

#include "driver/node/image.h"
#include "driver/node/staging_internal.h"

/* Where a volume's parts are; owns its strings. */
typedef struct ImagePlace {
    char *dir, *file; /* the FUSE mount, and its file */
    char *tag;        /* of its loop device */
} ImagePlace;

/*
 * A detached mount of the file system on the device, or -1: made if the device is blank, and
 * checked. *grow is its type when it is smaller than the device (the image was expanded while
 * nobody had it), else NULL; the caller's.
 */
int image_fs_mount(Staging *s, const ImagePlace *place, const LoopDevice *device,
                   const ImageUse *use, char **grow, Deadline deadline, GError **error);

#endif
