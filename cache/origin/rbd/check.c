/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether an open image is still unchanged. For an image opened for reading: whether its header has
 * the same version as before (content.c). For an image that we write: whether its lock is ours, and
 * is the one that we took. An answer from Ceph is not enough: a client that takes the lock from us
 * puts us on the blocklist, but an entry of the blocklist ends by itself (an hour later) or by
 * hand.
 *
 * The query uses the lock class's own call, "get_info", because librados's rados_list_lockers()
 * waits for the answer. librbd uses another cookie for the lock when its watch was lost and made
 * again, as after a cut of half a minute; meanwhile another client may have had the lock and
 * released it.
 */
#include <errno.h>
#include <string.h>
#include "cache/origin/rbd/internal.h"

#define CLIENT_TYPE 8 /* CEPH_ENTITY_TYPE_CLIENT */
#define MAX_COOKIE 1024

/* struct cls_lock_get_info_op: version and compatible version 1, length, the lock's name. */
static const char lock_info_of[] = "\1\1\14\0\0\0"
                                   "\10\0\0\0" RBD_LOCK_NAME;

typedef struct Check {
    RbdImage *image;
    uint64_t size;
    time_t mtime;
    rados_read_op_t op;
    char *reply; /* of get_info; librados's */
    size_t reply_bytes;
    int lock_result;
    ImageDone done;
    void *data;
} Check;

static void check_ends(Check *check, int result)
{
    check->done(check->data, result);
    if (check->op)
        rados_release_read_op(check->op);
    if (check->reply)
        rados_buffer_free(check->reply);
    g_free(check);
}

static gboolean read_value(const char **at, const char *end, void *value, size_t bytes)
{
    if ((size_t)(end - *at) < bytes)
        return FALSE;
    memcpy(value, *at, bytes);
    *at += bytes;
    return TRUE;
}

/* "version, compatible version, length" before a struct; the length is not needed. */
static gboolean take_header(const char **at, const char *end)
{
    char header[6];
    return read_value(at, end, header, sizeof(header));
}

/* The holder of the lock: cls_lock_get_info_reply begins with a map whose keys are lockers. */
char *rbd_lock_holder(const char *reply, size_t bytes, uint64_t *client)
{
    const char *end = reply + bytes;
    char cookie[MAX_COOKIE];
    uint32_t n, length;
    uint8_t type;
    if (!reply || !take_header(&reply, end))
        return NULL;
    if (!read_value(&reply, end, &n, sizeof(n)) || GUINT32_FROM_LE(n) != 1)
        return NULL;
    if (!take_header(&reply, end))
        return NULL;
    if (!read_value(&reply, end, &type, sizeof(type)) || type != CLIENT_TYPE)
        return NULL;
    if (!read_value(&reply, end, client, sizeof(*client)))
        return NULL;
    if (!read_value(&reply, end, &length, sizeof(length)))
        return NULL;
    *client = GUINT64_FROM_LE(*client);
    length = GUINT32_FROM_LE(length);
    if (length > sizeof(cookie) || !read_value(&reply, end, cookie, length))
        return NULL;
    return g_strndup(cookie, length);
}

static int compare_lock(const Check *check)
{
    RbdImage *r = check->image;
    uint64_t client;
    if (check->lock_result < 0)
        return check->lock_result;
    g_autofree char *cookie = rbd_lock_holder(check->reply, check->reply_bytes, &client);
    if (!cookie || client != rados_get_instance_id(r->cluster))
        return -ESHUTDOWN;
    if (g_strcmp0(cookie, r->cookie) == 0)
        return 0;
    g_free(r->cookie);
    r->cookie = g_steal_pointer(&cookie);
    return -EAGAIN;
}

static void on_checked(rados_completion_t completion, void *data)
{
    Check *check = data;
    const ImageContent *content = &check->image->base.content;
    int result = rados_aio_get_return_value(completion);
    if (result >= 0 && check->op)
        result = compare_lock(check);
    else if (result == 0 && content->guarded &&
             rados_aio_get_version(completion) != content->version)
        result = -ESTALE;
    rados_aio_release(completion);
    check_ends(check, result);
}

static int begin_check(Check *check, rados_completion_t completion)
{
    RbdImage *r = check->image;
    if (r->base.read_only)
        return rados_aio_stat(r->io, r->header, completion, &check->size, &check->mtime);
    check->op = rados_create_read_op();
    rados_read_op_exec(check->op, "lock", "get_info", lock_info_of, sizeof(lock_info_of) - 1,
                       &check->reply, &check->reply_bytes, &check->lock_result);
    return rados_aio_read_op_operate(check->op, r->io, completion, r->header, 0);
}

void rbd_check(Image *image, ImageDone done, void *data)
{
    Check *check = g_new0(Check, 1);
    rados_completion_t completion;
    *check = (Check){.image = (RbdImage *)image, .done = done, .data = data};
    rados_aio_create_completion2(check, on_checked, &completion);
    int result = begin_check(check, completion);
    if (result < 0) {
        rados_aio_release(completion);
        check_ends(check, result);
    }
}
