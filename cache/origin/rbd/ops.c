/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations on an open RBD image. librbd's own cache is off (open.c): a write is answered when
 * the OSDs have it, and a flush when all that were answered before it are durable, so nothing that
 * was acknowledged is in this process alone. The page cache above the device does the gathering
 * that librbd's cache would do, and is asked to write back by the same fsync.
 */
#include <errno.h>
#include <string.h>
#include "cache/origin/rbd/internal.h"

/* Of the image's own metadata: what others keep there has other prefixes. */
#define NOTE_PREFIX "hearth."

typedef struct Completion {
    ImageDone done;
    void *data;
} Completion;

static void on_complete(rbd_completion_t completion, void *data)
{
    Completion *c = data;
    ssize_t result = rbd_aio_get_return_value(completion);
    rbd_aio_release(completion);
    c->done(c->data, result);
    g_free(c);
}

static rbd_completion_t completion_new(ImageDone done, void *data)
{
    Completion *c = g_new(Completion, 1);
    *c = (Completion){.done = done, .data = data};
    rbd_completion_t completion;
    rbd_aio_create_completion(c, on_complete, &completion);
    return completion;
}

/* What librbd refuses it does not complete. */
static void check_begun(rbd_completion_t completion, int r)
{
    if (r >= 0)
        return;
    Completion *c = rbd_aio_get_arg(completion);
    rbd_aio_release(completion);
    c->done(c->data, r);
    g_free(c);
}

static RbdImage *rbd_of(Image *image)
{
    return (RbdImage *)image;
}

static void rbd_image_read(Image *image, void *buf, size_t len, uint64_t off, ImageDone done,
                           void *data)
{
    rbd_completion_t c = completion_new(done, data);
    check_begun(c, rbd_aio_read(rbd_of(image)->image, off, len, buf, c));
}

/* librbd completes a write with 0. */
static void on_written(void *data, ssize_t result)
{
    RbdWrite *w = data;
    rbd_quiet_end(w->image);
    w->done(w->data, result < 0 || !w->buf ? result : (ssize_t)w->len);
    g_free(w);
}

/* Not rbd_aio_discard(): it leaves alone what is smaller than its granularity. */
static void begin_write(RbdWrite *w)
{
    rbd_image_t image = w->image->image;
    rbd_completion_t c = completion_new(on_written, w);
    check_begun(c, w->buf ? rbd_aio_write(image, w->off, w->len, w->buf, c)
                          : rbd_aio_write_zeroes(image, w->off, w->len, c, 0, 0));
}

static void begin_change(Image *image, const void *buf, uint64_t len, uint64_t off, ImageDone done,
                         void *data)
{
    RbdWrite *w = g_new(RbdWrite, 1);
    *w = (RbdWrite){.begin = begin_write,
                    .image = rbd_of(image),
                    .buf = buf,
                    .len = len,
                    .off = off,
                    .done = done,
                    .data = data};
    rbd_quiet_begin(w->image, w);
}

static void rbd_image_write(Image *image, const void *buf, size_t len, uint64_t off, ImageDone done,
                            void *data)
{
    begin_change(image, buf, len, off, done, data);
}

static void rbd_image_zero(Image *image, uint64_t off, uint64_t len, ImageDone done, void *data)
{
    begin_change(image, NULL, len, off, done, data);
}

static void rbd_image_flush(Image *image, ImageDone done, void *data)
{
    rbd_completion_t c = completion_new(done, data);
    check_begun(c, rbd_aio_flush(rbd_of(image)->image, c));
}

static int rbd_image_size(Image *image, uint64_t *bytes)
{
    return rbd_get_size(rbd_of(image)->image, bytes);
}

static ssize_t rbd_image_get_note(Image *image, const char *name, char *text, size_t size)
{
    g_autofree char *key = g_strconcat(NOTE_PREFIX, name, NULL);
    size_t length = size;
    int r = rbd_metadata_get(rbd_of(image)->image, key, text, &length);
    if (r < 0)
        return r == -ENOENT ? -ENODATA : r;
    return (ssize_t)strnlen(text, MIN(length, size));
}

static int rbd_image_set_note(Image *image, const char *name, const char *text)
{
    g_autofree char *key = g_strconcat(NOTE_PREFIX, name, NULL);
    if (text)
        return rbd_metadata_set(rbd_of(image)->image, key, text);
    int r = rbd_metadata_remove(rbd_of(image)->image, key);
    return r == -ENOENT ? 0 : r;
}

void rbd_destroy(Image *image)
{
    RbdImage *r = rbd_of(image);
    rbd_quiet_destroy(r);
    if (r->image)
        rbd_close(r->image);
    if (r->io)
        rados_ioctx_destroy(r->io);
    if (r->cluster)
        rados_shutdown(r->cluster);
    g_free(r->base.content.name);
    g_free(r->base.content.client);
    image_parent_free(r->base.content.parent);
    g_free(r->base.content.taken_from);
    g_free(r->header);
    g_free(r->cookie);
    g_free(r->spec);
    g_free(r);
}

const ImageOps rbd_image_ops = {
    .type = "rbd",
    .destroy = rbd_destroy,
    .read = rbd_image_read,
    .write = rbd_image_write,
    .flush = rbd_image_flush,
    .zero = rbd_image_zero,
    .check = rbd_check,
    .size = rbd_image_size,
    .get_note = rbd_image_get_note,
    .set_note = rbd_image_set_note,
    .leave = rbd_content_leave,
};
