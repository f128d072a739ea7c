/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session is a source of requests (reader_sources.h). The descriptor is read here and not by
 * fuse_session_receive_buf(), which reads as much as its session's max_write needs into a buffer
 * whose size it does not know (libfuse 3.14 to 3.18): a buffer that another session has sized may
 * be too small.
 */
#include "cache/fuse/readers.h"
#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <linux/fuse.h>
#include <stdatomic.h>
#include <unistd.h>
#include "cache/fuse/object_reply.h"
#include "cache/fuse/reader_threads.h"
#include "common/monotonic.h"

/* Room for the header, as libfuse has it. */
#define BUFFER_SIZE (READERS_MAX_WRITE + 4096)

struct Readers {
    ReaderSource source; /* first */
    struct fuse_session *fuse;
    void (*ended)(void *data);
    void *data;
    atomic_uint serving;
    atomic_bool parked;
    pthread_mutex_t lock; /* of the condition, which tells that none is served */
    pthread_cond_t served;
    gboolean (*serves)(void *data, const struct fuse_in_header *in, size_t len);
    void *serves_data;
};

static atomic_bool fail_redelivered;

/* Of linux/fuse.h since Linux 6.9: in the number of a request that is sent again. */
#define UNIQUE_RESEND (1ULL << 63)

struct fuse_session *readers_serve(const struct fuse_lowlevel_ops *ops, void *data, int fuse_fd,
                                   GError **error)
{
    char *argv[] = {(char *)"hearthd", NULL};
    struct fuse_args args = FUSE_ARGS_INIT(1, argv);
    struct fuse_session *fuse = fuse_session_new(&args, ops, sizeof(*ops), data);
    fuse_opt_free_args(&args);
    g_autofree char *path = g_strdup_printf("/dev/fd/%d", fuse_fd);
    if (fuse && fuse_session_mount(fuse, path) == 0)
        return fuse;
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED,
                "libfuse refuses descriptor %d: it must be a mounted /dev/fuse", fuse_fd);
    if (fuse)
        fuse_session_destroy(fuse);
    return NULL;
}

static ssize_t receive(ReaderSource *source, void *buffer, size_t size)
{
    const ssize_t n = read(source->fd, buffer, size);
    if (n >= (ssize_t)sizeof(struct fuse_in_header))
        return n;
    if (n >= 0 || errno == ENODEV || errno == EBADF)
        return 0;
    /* ENOENT: the request was interrupted while it was read. After others the kernel has failed the
     * request, and goes on. */
    if (errno != EAGAIN && errno != EINTR && errno != ENOENT)
        g_warning("cannot read a FUSE request: %s", g_strerror(errno));
    return -EAGAIN;
}

static void set_waits(ReaderSource *source, gboolean on)
{
    const int flags = fcntl(source->fd, F_GETFL);
    fcntl(source->fd, F_SETFL, on ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
}

static void answer_eio(const ReaderSource *source, const struct fuse_in_header *in)
{
    const struct fuse_out_header out = {.len = sizeof(out), .error = -EIO, .unique = in->unique};
    g_warning("request %u of a process is answered with EIO: hearthd has crashed again and again, "
              "and it may be the cause",
              in->opcode);
    if (write(source->fd, &out, sizeof(out)) < 0 && errno != ENOENT)
        g_warning("cannot answer a FUSE request: %s", g_strerror(errno));
}

static void process(ReaderSource *source, void *buffer, size_t len)
{
    Readers *r = (Readers *)source;
    const struct fuse_in_header *in = buffer;
    const struct fuse_buf buf = {.mem = buffer, .size = len};
    if (in->unique & UNIQUE_RESEND && atomic_load(&fail_redelivered)) {
        answer_eio(source, in);
        return;
    }
    /* In this order: who has parked sees either the count or nothing that goes on. */
    atomic_fetch_add(&r->serving, 1);
    if (!atomic_load(&r->parked) || r->serves(r->serves_data, in, len)) {
        object_reply_request(in->unique);
        fuse_session_process_buf(r->fuse, &buf);
        object_reply_request(0);
    }
    if (atomic_fetch_sub(&r->serving, 1) == 1 && atomic_load(&r->parked)) {
        pthread_mutex_lock(&r->lock);
        pthread_cond_broadcast(&r->served);
        pthread_mutex_unlock(&r->lock);
    }
}

static void has_ended(ReaderSource *source)
{
    Readers *r = (Readers *)source;
    if (r->ended)
        r->ended(r->data);
}

void readers_set_threads(unsigned n)
{
    reader_threads_set(n);
}

void readers_fail_redelivered(gboolean fail)
{
    atomic_store(&fail_redelivered, fail);
}

static void readers_free(Readers *r)
{
    pthread_cond_destroy(&r->served);
    pthread_mutex_destroy(&r->lock);
    g_free(r);
}

Readers *readers_start(struct fuse_session *fuse, void (*ended)(void *data), void *data,
                       GError **error)
{
    static const ReaderSourceOps ops = {
        .receive = receive, .set_waits = set_waits, .process = process, .ended = has_ended};
    Readers *r = g_new0(Readers, 1);
    r->source.ops = &ops;
    r->source.fd = fuse_session_fd(fuse);
    r->fuse = fuse;
    r->ended = ended;
    r->data = data;
    pthread_mutex_init(&r->lock, NULL);
    cond_init_monotonic(&r->served);
    if (!reader_threads_add(&r->source, BUFFER_SIZE, error))
        g_clear_pointer(&r, readers_free);
    return r;
}

void readers_park(Readers *r,
                  gboolean (*serves)(void *data, const struct fuse_in_header *in, size_t len),
                  void *data)
{
    r->serves = serves;
    r->serves_data = data;
    atomic_store(&r->parked, TRUE);
}

gboolean readers_await_served(Readers *r, unsigned timeout_ms)
{
    const struct timespec until = deadline_after_ms(timeout_ms);
    int error = 0;
    pthread_mutex_lock(&r->lock);
    while (atomic_load(&r->serving) && error != ETIMEDOUT)
        error = pthread_cond_timedwait(&r->served, &r->lock, &until);
    pthread_mutex_unlock(&r->lock);
    return atomic_load(&r->serving) == 0;
}

void readers_stop(Readers *r)
{
    if (!r)
        return;
    reader_threads_remove(&r->source);
    fuse_session_exit(r->fuse);
    readers_free(r);
}

uint64_t readers_events(Readers *r)
{
    return reader_threads_events(&r->source);
}
