/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/hearthd/standby.h"
#include "common/autofd.h"
#include "proto/wire.h"
#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#define CHECK_MS 20

static int lock_fd = -1;

static Standby fail(const char *path, GError **error)
{
    const int code = errno;
    g_set_error(error, G_IO_ERROR, g_io_error_from_errno(code), "cannot lock %s: %s", path,
                g_strerror(code));
    return STANDBY_FAILED;
}

/* Whether a signal ends the wait. */
static gboolean wait_a_little(const char *socket_path, const sigset_t *signals, gboolean *logged)
{
    const struct timespec interval = {.tv_nsec = CHECK_MS * 1000000};
    if (!*logged)
        g_message("another hearthd serves %s; this one starts when it ends", socket_path);
    *logged = TRUE;
    if (sigtimedwait(signals, NULL, &interval) < 0)
        return FALSE;
    g_message("stopped while it waited for the other hearthd");
    return TRUE;
}

/* A connection ends with its hearthd, so it is not asked again and again. */
static gboolean is_connected(int *fd, const char *socket_path)
{
    struct pollfd peer = {.fd = *fd, .events = POLLIN};
    if (*fd >= 0 && poll(&peer, 1, 0) == 0)
        return TRUE;
    hearth_close_fd(fd);
    *fd = wire_connect(socket_path, NULL); /* for other errors there is wire_listen() */
    return *fd >= 0;
}

Standby standby_begin(const char *socket_path, const sigset_t *signals, GError **error)
{
    g_autofree char *path = g_strconcat(socket_path, ".lock", NULL);
    g_autofree char *dir = g_path_get_dirname(path);
    hearth_autofd int fd = -1;
    hearth_autofd int peer = -1;
    gboolean logged = FALSE;
    if (g_mkdir_with_parents(dir, 0700) < 0 ||
        (fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) < 0)
        return fail(path, error);
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return fail(path, error);
        if (wait_a_little(socket_path, signals, &logged))
            return STANDBY_ENDS;
    }
    while (is_connected(&peer, socket_path))
        if (wait_a_little(socket_path, signals, &logged))
            return STANDBY_ENDS;
    lock_fd = hearth_steal_fd(&fd);
    return STANDBY_SERVES;
}

void standby_end(void)
{
    /* A child that was forked just now may have the descriptor, too: closing is not enough. */
    if (lock_fd >= 0)
        flock(lock_fd, LOCK_UN);
}
