/* SPDX-License-Identifier: Apache-2.0 */
/* An open RBD image, shared by the files of this folder. */
#ifndef HEARTH_CACHE_ORIGIN_RBD_INTERNAL_H
#define HEARTH_CACHE_ORIGIN_RBD_INTERNAL_H

#include <pthread.h>
#include <rados/librados.h>
#include <rbd/librbd.h>
#include "cache/origin/image.h"

#define RBD_LOCK_NAME "rbd_lock" /* of librbd and krbd */

/* Writes wait while `paused`; see quiet.c. */
typedef struct RbdQuiet {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    gboolean paused;        /* guarded by lock, as all but the last two */
    guint writing, threads; /* under way */
    GQueue waiting;         /* RbdWrite */
    gboolean watching;
    uint64_t watch;
} RbdQuiet;

typedef struct RbdImage {
    Image base;
    rados_t cluster;
    rados_ioctx_t io;
    rbd_image_t image;
    RbdQuiet quiet;
    char *header;     /* the object that it is described by */
    char *cookie;     /* of its lock; once it is open, for check() alone */
    gint64 looked_us; /* when its version was read; monotonic */
    char *spec;       /* POOL[/NAMESPACE]/NAME[@SNAPSHOT], for messages */
} RbdImage;

extern const ImageOps rbd_image_ops;
/* Closes all of it that is open; frees. */
void rbd_destroy(Image *image);

/* A write or zeroing: begin() asks librbd for it. `buf` NULL: zeros. */
typedef struct RbdWrite {
    void (*begin)(struct RbdWrite *write);
    RbdImage *image;
    const void *buf;
    uint64_t off, len;
    ImageDone done;
    void *data;
} RbdWrite;

/* quiet.c; init and destroy go with the image's, watching with writing. */
void rbd_quiet_init(RbdImage *r);
int rbd_quiet_watch(RbdImage *r);
void rbd_quiet_destroy(RbdImage *r);
/* write->begin(), now or when the pause ends; each is followed by rbd_quiet_end(). */
void rbd_quiet_begin(RbdImage *r, RbdWrite *write);
void rbd_quiet_end(RbdImage *r);

/*
 * Makes sure that no other client writes the open image, and where it has the feature takes its
 * exclusive lock, so that none begins to. `client` and `dead_client` as in RbdImageConfig.
 * G_IO_ERROR_BUSY names the holder.
 */
gboolean rbd_lock_take(RbdImage *r, const char *client, const char *dead_client, GError **error);
/*
 * content.c: fills base.content in but for clients and parent, before the lock is taken.
 * `snapshot`: NULL, the image itself. Nothing of it is an error that hinders opening.
 */
void rbd_content_read(RbdImage *r, const char *snapshot, gboolean shared);
/* Once the lock is taken: notes its holder, and forgets the version if that took so long that
 * another client could have written. */
void rbd_content_locked(RbdImage *r);
int rbd_content_leave(Image *image, uint64_t *version);
/*
 * The name of the image's content, or with `snap` not 0 of that snapshot's; NULL: it is not
 * known, or the user of `image` and `io` may not read its data. Asks Ceph.
 */
char *rbd_content_name(rados_t cluster, rados_ioctx_t io, rbd_image_t image, uint64_t snap);

/* check.c */
void rbd_check(Image *image, ImageDone done, void *data);
/* The cookie, the caller's, and the client of the only holder; NULL: there is none, or several. */
char *rbd_lock_holder(const char *reply, size_t bytes, uint64_t *client);

/* parent.c: fills base.content.parent in. For a writable image once its lock is taken. */
void rbd_parent_read(RbdImage *r);

/* For a reader: refuses an image that a live client has locked for writing. */
gboolean rbd_lock_check(RbdImage *r, GError **error);

#endif
