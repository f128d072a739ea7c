/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/fuse/take_over.h"
#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <linux/fuse.h>
#include <poll.h>
#include <unistd.h>
#include "cache/fuse/readers.h"
#include "common/autofd.h"

/* Of linux/fuse.h since Linux 6.9. */
#define NOTIFY_RESEND 7
/* The kernel refuses smaller buffers (FUSE_MIN_READ_BUFFER). */
#define RECEIVE_BYTES 8192

gboolean take_over_is_init(GBytes *init)
{
    gsize size;
    const struct fuse_in_header *in = g_bytes_get_data(init, &size);
    return size >= sizeof(*in) + 2 * sizeof(uint32_t) && size <= TAKE_OVER_INIT_MAX &&
           in->len == size && in->opcode == FUSE_INIT;
}

/* What the kernel sends first on a new connection. NULL: nothing yet, or with *error: the
 * connection is no new one, and a request of somebody's is lost. */
static GBytes *receive_init(int fuse_fd, GError **error)
{
    g_autofree char *buffer = g_malloc(RECEIVE_BYTES);
    struct pollfd fd = {.fd = fuse_fd, .events = POLLIN};
    const gboolean waits = poll(&fd, 1, 0) == 1 && fd.revents & POLLIN;
    const ssize_t n = waits ? read(fuse_fd, buffer, RECEIVE_BYTES) : 0;
    g_autoptr(GBytes) init = n > 0 ? g_bytes_new(buffer, (gsize)n) : NULL;
    if (!init || take_over_is_init(init))
        return g_steal_pointer(&init);
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
                "the mount is no new one: it is served, or was");
    return NULL;
}

static void process_init(struct fuse_session *fuse, GBytes *init)
{
    gsize size;
    /* libfuse only reads it. */
    void *data = (void *)g_bytes_get_data(init, &size); /* NOLINT */
    const struct fuse_buf buf = {.mem = data, .size = size};
    fuse_session_process_buf(fuse, &buf);
}

gboolean take_over_resend(struct fuse_session *fuse, GError **error)
{
    const struct fuse_out_header resend = {.len = sizeof(resend), .error = NOTIFY_RESEND};
    struct pollfd fd = {.fd = fuse_session_fd(fuse), .events = POLLIN};
    if (write(fd.fd, &resend, sizeof(resend)) != sizeof(resend)) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                    "the kernel does not send its requests again (FUSE_NOTIFY_RESEND, Linux 6.9): "
                    "%s",
                    g_strerror(errno));
        return FALSE;
    }
    /* It takes that also for a connection that has ended. */
    if (poll(&fd, 1, 0) < 0 || !(fd.revents & POLLERR))
        return TRUE;
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "the mount's connection has ended");
    return FALSE;
}

struct fuse_session *take_over_begin(const struct fuse_lowlevel_ops *ops, void *data, int fuse_fd,
                                     GBytes **init, GError **error)
{
    g_autoptr(GError) failed = NULL;
    g_autoptr(GBytes) first = receive_init(fuse_fd, &failed);
    *init = NULL;
    if (failed) {
        g_propagate_error(error, g_steal_pointer(&failed));
        return NULL;
    }
    struct fuse_session *fuse = readers_serve(ops, data, fuse_fd, error);
    if (!fuse || !first)
        return fuse;
    process_init(fuse, first);
    if (take_over_resend(fuse, NULL)) /* there is nothing to send yet */
        *init = g_steal_pointer(&first);
    return fuse;
}

struct fuse_session *take_over_serve(const struct fuse_lowlevel_ops *ops, void *data, int fuse_fd,
                                     GBytes *init, GError **error)
{
    hearth_autofd int slot = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct fuse_session *fuse = slot >= 0 ? readers_serve(ops, data, slot, error) : NULL;
    if (!fuse) {
        if (slot < 0)
            g_set_error(error, G_IO_ERROR, g_io_error_from_errno(errno), "/dev/null: %s",
                        g_strerror(errno));
        return NULL;
    }
    process_init(fuse, init); /* the answer goes to /dev/null */
    if (dup3(fuse_fd, hearth_steal_fd(&slot), O_CLOEXEC) >= 0) {
        close(fuse_fd);
        return fuse;
    }
    g_set_error(error, G_IO_ERROR, g_io_error_from_errno(errno), "dup3: %s", g_strerror(errno));
    fuse_session_destroy(fuse);
    return NULL;
}
