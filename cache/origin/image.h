/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An image is the bytes of a block device: an RBD image or a snapshot of one, or a cache above one.
 * A device (fuse/device.h) sees Ceph only through this table, so a cache is one more
 * implementation, with another image beneath it.
 *
 * Conventions: read, write, flush and zero only begin the work. `done` is called once for each with
 * the number of bytes (of read and write), 0, or -errno, from any thread, possibly before the call
 * returns; it must not block. Any number may be under way; of two that overlap in time neither
 * order is promised. Buffers are the caller's until `done`. Ranges lie within the size.
 */
#ifndef HEARTH_CACHE_ORIGIN_IMAGE_H
#define HEARTH_CACHE_ORIGIN_IMAGE_H

#include <glib.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>
#include "cache/origin/ceph_client.h"

typedef struct Image Image;
typedef void (*ImageDone)(void *data, ssize_t result);

typedef struct ImageOps {
    const char *type;

    /* Closes, gives the lock back, frees. Nothing may be under way. Blocks on Ceph. */
    void (*destroy)(Image *image);

    /* Short only at the end of the image. */
    void (*read)(Image *image, void *buf, size_t len, uint64_t off, ImageDone done, void *data);
    void (*write)(Image *image, const void *buf, size_t len, uint64_t off, ImageDone done,
                  void *data);
    /* Writes and zeroing that were done when this began survive the loss of this node. */
    void (*flush)(Image *image, ImageDone done, void *data);
    /* Reads as zeros afterwards, all of it; space is given back where it can be. */
    void (*zero)(Image *image, uint64_t off, uint64_t len, ImageDone done, void *data);

    /*
     * Asks Ceph whether bytes read before are still valid: 0 if no other client can have written
     * the image since the last such answer; -ESHUTDOWN if it is no longer ours; -ESTALE, for an
     * image with content.guarded, if another client may have written it; -EAGAIN, for a writable
     * one, if it is ours, but was not all the time. May block if very many requests are under way.
     */
    void (*check)(Image *image, ImageDone done, void *data);

    /* The size, asked of Ceph. Blocks. 0 or -errno. */
    int (*size)(Image *image, uint64_t *bytes);
    /*
     * A short text kept with the image, by name, for the next opener. Blocks. get: the length
     * or -ENODATA; set: NULL removes, which is fine when there is none. Lost at a copy.
     */
    ssize_t (*get_note)(Image *image, const char *name, char *text, size_t size);
    int (*set_note)(Image *image, const char *name, const char *text);
    /*
     * Gives the lock back, as destroy would, and returns the content.version of that moment. The
     * next opener finds the same version if no client writes the image until then. Only destroy may
     * follow. Blocks. 0 or -errno.
     */
    int (*leave)(Image *image, uint64_t *version);
} ImageOps;

/* What a clone has from the snapshot that it was made from. */
typedef struct ImageParent {
    char *name;   /* the snapshot's ImageContent.name */
    uint64_t end; /* up to here the bytes are the snapshot's, but for: */
    uint8_t
        *owns; /* of each object of object_bytes up to there, whether it may be the clone's own */
} ImageParent;

void image_parent_free(ImageParent *parent);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ImageParent, image_parent_free)

/* What may be kept of an image's bytes from one opening to the next. */
typedef struct ImageContent {
    char *name;          /* made from Ceph's IDs, the same on each node; NULL: keep nothing, because
                            others may write it without our notice */
    gboolean immutable;  /* a snapshot */
    gboolean guarded;    /* it takes no lock, being opened for reading only: what was read is of
                            `version` if check() says so afterwards */
    uint64_t version;    /* before its lock was taken; 0: a client may have written at that time */
    int64_t asked_ns;    /* image_clock_ns() before Ceph was asked for what check() asks for; unset
                            of one that is immutable */
    ImageParent *parent; /* NULL: no clone, or it is not known what is its own */
    char *client;        /* the holder of its lock now: RbdImageConfig.client; NULL: no name */
    char *taken_from;    /* the dead client that still had the lock: dead_client; NULL: none */
    const char *uncached; /* for people: what to change so that its bytes may be kept; a literal,
                             NULL: nothing */
} ImageContent;

/* Implementations embed this as their first member. */
struct Image {
    const ImageOps *ops;
    gboolean read_only;
    uint64_t object_bytes; /* Ceph stores it in objects of this size */
    ImageContent content;
};

/* What it takes to open an RBD image. Borrowed for the call; the key is not logged. */
typedef struct RbdImageConfig {
    const char *monitors; /* comma separated host:port or [v2:..,v1:..] */
    const char *user_id;  /* without "client." */
    const char *key;
    const char *pool;
    const char *rados_namespace; /* NULL or "": the pool's default one */
    const char *image;
    const char *snapshot; /* NULL: the image itself; read_only must be set with one */
    unsigned timeout_sec; /* for all of opening; 0: 25 */
    gboolean read_only;
    /*
     * Others may have it open at the same time and write. Otherwise it is ours alone: opening fails
     * while a live client holds its lock (for writing: or, if it has no lock, watches it).
     */
    gboolean shared;
    const char *client;      /* name of the holder of the lock, unique for ever; NULL: none */
    const char *dead_client; /* a client that died, whose lock is taken over; NULL: none */
    CephClient ceph;
} RbdImageConfig;

/*
 * Errors are in G_IO_ERROR: TIMED_OUT, PERMISSION_DENIED, NOT_FOUND, BUSY (another client has it;
 * the message names it), NOT_SUPPORTED (features), FAILED; they name the image and the fix.
 */
Image *image_rbd_open(const RbdImageConfig *config, GError **error);

/* This clock runs on while the machine sleeps or this process is stopped. */
static inline int64_t image_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline void image_close(Image *image)
{
    if (image)
        image->ops->destroy(image);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Image, image_close)

#endif
