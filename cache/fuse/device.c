/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invariants:
 * 1. A request is answered exactly once, by its completion (or at once, when nothing was begun).
 * 2. `under_way` counts requests that were begun and are not answered; the image and the libfuse
 *    session outlive them.
 * 3. The kernel caches no page of the file (direct_io), so a size or a content that changes beneath
 *    is never hidden by one.
 */
#include "cache/fuse/device.h"
#include <errno.h>
#include <gio/gio.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>
#include "cache/fuse/mount_state.h"
#include "cache/fuse/readers.h"
#include "cache/fuse/take_over.h"
#include "common/monotonic.h"

#define IMAGE_INO 2
#define MAX_WRITE ((1u << 20) - 4096)
/* A loop device has 128 requests under way at most, each of up to two of ours. It bounds memory:
 * 128 MiB at worst. */
#define MAX_UNDER_WAY 128
/* Only the size changes, and the kernel is notified of that. */
#define VALID_SEC 86400.0
/* Smaller discards cost Ceph a request each and give back nothing. */
#define DISCARD_BYTES 65536

struct Device {
    Image *image;
    struct fuse_session *fuse;
    GBytes *init; /* NULL: no other process can take the mount over */
    Readers *readers;
    _Atomic uint64_t bytes, opens, bytes_read, bytes_written;
    void (*ended)(void *data);
    void *data;
    atomic_flag end_reported;
    pthread_mutex_t lock;
    pthread_cond_t idle;
    unsigned under_way; /* guarded by lock */
    ssize_t flushed;    /* what the flush came to, when it has left */
};

typedef struct Request {
    Device *device;
    fuse_req_t req;
    size_t len; /* of buf, which holds what is read or written */
    char buf[];
} Request;

static Device *device_of(fuse_req_t req)
{
    return fuse_req_userdata(req);
}

static void report_end(void *data)
{
    Device *d = data;
    if (!atomic_flag_test_and_set(&d->end_reported) && d->ended)
        d->ended(d->data);
}

/* ---- requests ---- */

/* `req` NULL: the device's own. NULL: no memory. */
static Request *request_begin(Device *d, fuse_req_t req, size_t len)
{
    Request *r = g_try_malloc(sizeof(Request) + len);
    if (!r)
        return NULL;
    r->device = d;
    r->req = req;
    r->len = len;
    pthread_mutex_lock(&d->lock);
    d->under_way++;
    pthread_mutex_unlock(&d->lock);
    return r;
}

/* NULL: answered already. */
static Request *request_new(fuse_req_t req, size_t len)
{
    Request *r = request_begin(device_of(req), req, len);
    if (!r)
        fuse_reply_err(req, ENOMEM);
    return r;
}

/* After the reply. */
static void request_done(Request *r, ssize_t result)
{
    Device *d = r->device;
    g_free(r);
    /* Blocklisted: another client has taken the image over. It never comes back by itself. */
    if (result == -ESHUTDOWN)
        report_end(d);
    pthread_mutex_lock(&d->lock);
    if (--d->under_way == 0)
        pthread_cond_broadcast(&d->idle);
    pthread_mutex_unlock(&d->lock);
}

static int reply_code(ssize_t result)
{
    /* A block device knows few errors. */
    return result == -ENOSPC || result == -EDQUOT ? ENOSPC : EIO;
}

static void on_read(void *data, ssize_t result)
{
    Request *r = data;
    if (result < 0) {
        fuse_reply_err(r->req, reply_code(result));
    } else {
        atomic_fetch_add(&r->device->bytes_read, (uint64_t)result);
        fuse_reply_buf(r->req, r->buf, (size_t)result);
    }
    request_done(r, result);
}

static void on_written(void *data, ssize_t result)
{
    Request *r = data;
    if (result < 0) {
        fuse_reply_err(r->req, reply_code(result));
    } else {
        atomic_fetch_add(&r->device->bytes_written, (uint64_t)result);
        fuse_reply_write(r->req, (size_t)result);
    }
    request_done(r, result);
}

static void on_done(void *data, ssize_t result)
{
    Request *r = data;
    fuse_reply_err(r->req, result < 0 ? reply_code(result) : 0);
    request_done(r, result);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                    struct fuse_file_info *fi)
{
    (void)ino, (void)fi;
    Device *d = device_of(req);
    uint64_t end = atomic_load(&d->bytes);
    if ((uint64_t)off >= end) {
        fuse_reply_buf(req, NULL, 0);
        return;
    }
    Request *r = request_new(req, MIN(size, end - (uint64_t)off));
    if (r)
        d->image->ops->read(d->image, r->buf, r->len, (uint64_t)off, on_read, r);
}

static void op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
                     struct fuse_file_info *fi)
{
    (void)ino, (void)fi;
    Device *d = device_of(req);
    uint64_t end = atomic_load(&d->bytes);
    if (d->image->read_only || (uint64_t)off > end || size > end - (uint64_t)off) {
        fuse_reply_err(req, d->image->read_only ? EROFS : EFBIG);
        return;
    }
    /* The reader's buffer takes the next request as soon as this returns. */
    Request *r = request_new(req, size);
    if (!r)
        return;
    memcpy(r->buf, buf, size);
    d->image->ops->write(d->image, r->buf, size, (uint64_t)off, on_written, r);
}

static void op_fsync(fuse_req_t req, fuse_ino_t ino, int data_only, struct fuse_file_info *fi)
{
    (void)ino, (void)data_only, (void)fi;
    Device *d = device_of(req);
    Request *r = request_new(req, 0);
    if (r)
        d->image->ops->flush(d->image, on_done, r);
}

static void op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t length,
                         struct fuse_file_info *fi)
{
    (void)ino, (void)fi;
    Device *d = device_of(req);
    const uint64_t end = atomic_load(&d->bytes), from = (uint64_t)off;
    const int kind = mode & ~FALLOC_FL_KEEP_SIZE;
    if (d->image->read_only || (kind != FALLOC_FL_PUNCH_HOLE && kind != FALLOC_FL_ZERO_RANGE) ||
        !(mode & FALLOC_FL_KEEP_SIZE)) {
        fuse_reply_err(req, d->image->read_only ? EROFS : EOPNOTSUPP);
        return;
    }
    if (from >= end) {
        fuse_reply_err(req, 0);
        return;
    }
    Request *r = request_new(req, 0);
    if (r)
        d->image->ops->zero(d->image, from, MIN((uint64_t)length, end - from), on_done, r);
}

/* ---- one directory, one file ---- */

static void fill_stat(Device *d, fuse_ino_t ino, struct stat *st)
{
    *st = (struct stat){.st_ino = ino, .st_nlink = 1};
    if (ino == FUSE_ROOT_ID) {
        st->st_mode = S_IFDIR | 0700;
        st->st_nlink = 2;
        return;
    }
    st->st_mode = S_IFREG | (d->image->read_only ? 0400 : 0600);
    st->st_size = (off_t)atomic_load(&d->bytes);
    st->st_blocks = st->st_size / 512;
    st->st_blksize = 4096;
}

static void op_init(void *data, struct fuse_conn_info *conn)
{
    (void)data;
    conn->want &= ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE |
                              FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_READDIRPLUS);
    conn->max_write = MAX_WRITE;
    conn->max_background = MAX_UNDER_WAY;
    conn->congestion_threshold = MAX_UNDER_WAY;
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param e = {
        .ino = IMAGE_INO, .attr_timeout = VALID_SEC, .entry_timeout = VALID_SEC};
    if (parent != FUSE_ROOT_ID || strcmp(name, DEVICE_FILE) != 0) {
        fuse_reply_err(req, ENOENT);
        return;
    }
    fill_stat(device_of(req), IMAGE_INO, &e.attr);
    fuse_reply_entry(req, &e);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)fi;
    struct stat st;
    fill_stat(device_of(req), ino, &st);
    fuse_reply_attr(req, &st, VALID_SEC);
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    Device *d = device_of(req);
    if (ino != IMAGE_INO) {
        fuse_reply_err(req, EISDIR);
    } else if (d->image->read_only && (fi->flags & O_ACCMODE) != O_RDONLY) {
        fuse_reply_err(req, EROFS);
    } else {
        atomic_fetch_add(&d->opens, 1);
        fi->direct_io = 1;
        fuse_reply_open(req, fi);
    }
}

static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                       struct fuse_file_info *fi)
{
    static const char *const names[] = {".", "..", DEVICE_FILE};
    (void)ino, (void)fi;
    char buf[512];
    size_t used = 0;
    for (size_t i = (size_t)off; i < G_N_ELEMENTS(names); i++) {
        struct stat st;
        fill_stat(device_of(req), i < 2 ? FUSE_ROOT_ID : IMAGE_INO, &st);
        size_t n =
            fuse_add_direntry(req, buf + used, sizeof(buf) - used, names[i], &st, (off_t)(i + 1));
        if (used + n > size)
            break;
        used += n;
    }
    fuse_reply_buf(req, buf, used);
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
    (void)ino;
    const struct statvfs st = {.f_bsize = DISCARD_BYTES,
                               .f_frsize = DISCARD_BYTES,
                               .f_blocks = atomic_load(&device_of(req)->bytes) / DISCARD_BYTES,
                               .f_files = 2,
                               .f_namemax = 255};
    fuse_reply_statfs(req, &st);
}

/* ---- notes ---- */

/* The note's name; NULL: answered already. */
static const char *note_name(fuse_req_t req, fuse_ino_t ino, const char *name)
{
    if (ino == IMAGE_INO && g_str_has_prefix(name, DEVICE_NOTE_PREFIX))
        return name + strlen(DEVICE_NOTE_PREFIX);
    fuse_reply_err(req, ENODATA);
    return NULL;
}

static void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
    Image *image = device_of(req)->image;
    char text[1024];
    name = note_name(req, ino, name);
    if (!name)
        return;
    ssize_t n = image->ops->get_note(image, name, text, sizeof(text));
    if (n < 0)
        fuse_reply_err(req, n == -ENODATA ? ENODATA : EIO);
    else if (size == 0)
        fuse_reply_xattr(req, (size_t)n);
    else if ((size_t)n > size)
        fuse_reply_err(req, ERANGE);
    else
        fuse_reply_buf(req, text, (size_t)n);
}

/* text NULL: removes it. An errno, or 0. */
static int set_note(Image *image, const char *name, const char *text)
{
    if (image->read_only)
        return EROFS;
    int r = image->ops->set_note(image, name, text);
    if (r == -EROFS)
        return EROFS;
    return r < 0 ? EIO : 0;
}

static void op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
                        size_t size, int flags)
{
    (void)flags;
    Image *image = device_of(req)->image;
    name = note_name(req, ino, name);
    if (!name)
        return;
    g_autofree char *text = g_strndup(value, size);
    fuse_reply_err(req, set_note(image, name, text));
}

static void op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
    Image *image = device_of(req)->image;
    name = note_name(req, ino, name);
    if (!name)
        return;
    fuse_reply_err(req, set_note(image, name, NULL));
}

static const struct fuse_lowlevel_ops ops = {
    .init = op_init,
    .lookup = op_lookup,
    .getattr = op_getattr,
    .open = op_open,
    .read = op_read,
    .write = op_write,
    .fsync = op_fsync,
    .fallocate = op_fallocate,
    .readdir = op_readdir,
    .statfs = op_statfs,
    .getxattr = op_getxattr,
    .setxattr = op_setxattr,
    .removexattr = op_removexattr,
};

/* ---- life ---- */

static int read_size(Image *image, uint64_t *bytes, GError **error)
{
    int r = image->ops->size(image, bytes);
    if (r < 0)
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED, "the size of the image: %s",
                    g_strerror(-r));
    return r;
}

static void device_free(Device *d)
{
    if (d->fuse)
        fuse_session_destroy(d->fuse);
    g_clear_pointer(&d->init, g_bytes_unref);
    pthread_cond_destroy(&d->idle);
    pthread_mutex_destroy(&d->lock);
    g_free(d);
}

/* `init`: of a mount that another process has left; NULL: of a new one. */
static Device *start(Image *image, int fuse_fd, GBytes *init, int state_fd,
                     void (*ended)(void *data), void *data, GError **error)
{
    Device *d = g_new0(Device, 1);
    d->image = image;
    d->ended = ended;
    d->data = data;
    atomic_flag_clear(&d->end_reported);
    pthread_mutex_init(&d->lock, NULL);
    cond_init_monotonic(&d->idle);
    uint64_t bytes;
    if (read_size(image, &bytes, error) == 0) {
        atomic_store(&d->bytes, bytes);
        d->fuse = init ? take_over_serve(&ops, d, fuse_fd, init, error)
                       : take_over_begin(&ops, d, fuse_fd, &d->init, error);
    }
    if (!d->fuse) {
        close(fuse_fd);
        device_free(d);
        return NULL;
    }
    if (init)
        d->init = g_bytes_ref(init);
    d->readers = init ? mount_state_go_on(state_fd, d->fuse, report_end, d, error)
                      : readers_start(d->fuse, report_end, d, error);
    if (!d->readers) {
        device_free(d); /* closes fuse_fd */
        return NULL;
    }
    return d;
}

Device *device_start(Image *image, int fuse_fd, void (*ended)(void *data), void *data,
                     GError **error)
{
    return start(image, fuse_fd, NULL, -1, ended, data, error);
}

Device *device_take_over(Image *image, int fuse_fd, int state_fd, void (*ended)(void *data),
                         void *data, GError **error)
{
    g_autoptr(GBytes) init = NULL;
    json_auto_t *state = mount_state_read(state_fd, MOUNT_STATE_IMAGE, &init, error);
    if (state)
        return start(image, fuse_fd, init, state_fd, ended, data, error);
    close(fuse_fd);
    return NULL;
}

int device_fd(Device *device)
{
    return fuse_session_fd(device->fuse);
}

uint64_t device_bytes(Device *device)
{
    return atomic_load(&device->bytes);
}

void device_stats(Device *d, FuseStats *stats)
{
    *stats = (FuseStats){
        .opens = atomic_load(&d->opens),
        .bytes_origin = atomic_load(&d->bytes_read),
        .bytes_written = atomic_load(&d->bytes_written),
    };
}

gboolean device_resize(Device *d, uint64_t *bytes, GError **error)
{
    if (read_size(d->image, bytes, error) < 0)
        return FALSE;
    atomic_store(&d->bytes, *bytes);
    fuse_lowlevel_notify_inval_inode(d->fuse, IMAGE_INO, -1, 0);
    return TRUE;
}

static gboolean await_idle(Device *d, gint64 timeout_ms)
{
    const struct timespec until = deadline_after_ms((uint64_t)timeout_ms);
    pthread_mutex_lock(&d->lock);
    while (d->under_way && pthread_cond_timedwait(&d->idle, &d->lock, &until) != ETIMEDOUT)
        ;
    const gboolean idle = d->under_way == 0;
    pthread_mutex_unlock(&d->lock);
    return idle;
}

static gboolean serves_none(void *data, const struct fuse_in_header *in, size_t len)
{
    (void)data, (void)in, (void)len;
    return FALSE;
}

/* request_done() counts the last step of leaving, the flush, as it counts a request. */
static void on_flushed(void *data, ssize_t result)
{
    Request *r = data;
    r->device->flushed = result;
    request_done(r, result);
}

static void flush(Device *d)
{
    Request *r = request_begin(d, NULL, 0);
    if (r)
        d->image->ops->flush(d->image, on_flushed, r);
    else
        d->flushed = -ENOMEM;
}

gboolean device_can_be_left(Device *d)
{
    return d->init != NULL;
}

gboolean device_leave(Device *d, int state_fd, gint64 timeout_ms, GError **error)
{
    const int64_t until = monotonic_ms() + timeout_ms;
    readers_park(d->readers, serves_none, NULL);
    gboolean idle = readers_await_served(d->readers, (unsigned)timeout_ms) &&
                    await_idle(d, MAX(until - monotonic_ms(), 0));
    if (idle && !d->image->read_only) {
        flush(d);
        idle = await_idle(d, MAX(until - monotonic_ms(), 0));
    }
    readers_stop(g_steal_pointer(&d->readers));
    if (idle && d->flushed >= 0)
        return mount_state_leave(state_fd, MOUNT_STATE_IMAGE, d->init, json_object(), error);
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT, "what was written is not in Ceph: %s",
                idle ? g_strerror((int)-d->flushed) : "requests are still under way");
    return FALSE;
}

gboolean device_stop(Device *d, gint64 timeout_ms)
{
    if (!d)
        return TRUE;
    readers_stop(g_steal_pointer(&d->readers));
    const gboolean idle = await_idle(d, timeout_ms);
    if (idle)
        device_free(d);
    return idle;
}
