/* What rbd.c (operations), rbd_open.c (connection) and rbd_lock.c share. */
#ifndef HEARTH_ORIGIN_RBD_INTERNAL_H
#define HEARTH_ORIGIN_RBD_INTERNAL_H

#include <rados/librados.h>
#include <rbd/librbd.h>
#include "cache/origin/image.h"

typedef struct RbdImage {
    Image base;
    rados_t cluster;
    rados_ioctx_t io;
    rbd_image_t image;
    char *spec; /* POOL[/NAMESPACE]/NAME[@SNAPSHOT], for messages */
} RbdImage;

extern const ImageOps rbd_image_ops;
/* Whatever of it is open; frees. */
void rbd_destroy(Image *image);

/*
 * Makes sure that nobody else writes the open image, and where it has the feature takes its
 * exclusive lock, so that nobody begins to. `client` and `dead_client` as in RbdImageConfig.
 * G_IO_ERROR_BUSY names the holder.
 */
gboolean rbd_lock_take(RbdImage *r, const char *client, const char *dead_client, GError **error);
/* For a reader: refuses an image that somebody alive has locked for writing. */
gboolean rbd_lock_check(RbdImage *r, GError **error);

#endif
