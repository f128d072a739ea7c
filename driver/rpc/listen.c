/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking the path over from a dead server: connect first, and unlink only a path that refuses the
 * connection. Both traps are Linux's: connecting to a regular file is refused like connecting to a
 * dead socket, so the type is looked at too; and a live server with a full backlog answers EAGAIN
 * to a non-blocking connect, which therefore counts as alive. The mode is set on the unbound
 * socket, which bind() passes on to the file, so there is no moment at which another user could
 * connect.
 */
#include "driver/rpc/listen.h"

#include <errno.h>
#include <gio/gio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/autofd.h"

gboolean rpc_set_errno(GError **error, int number, const char *what, const char *path)
{
    g_set_error(error, G_IO_ERROR, g_io_error_from_errno(number), "%s %s: %s", what, path,
                g_strerror(number));
    return FALSE;
}

gboolean rpc_socket_address(struct sockaddr_un *address, const char *path, GError **error)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (!path || !*path || strlen(path) >= sizeof(address->sun_path)) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
                    "socket path \"%s\" must have 1 to %zu bytes", path ? path : "",
                    sizeof(address->sun_path) - 1);
        return FALSE;
    }
    memcpy(address->sun_path, path, strlen(path));
    return TRUE;
}

/* TRUE: nothing is at the path any more. */
static gboolean clear_stale(const struct sockaddr_un *address, const char *path, GError **error)
{
    struct stat st;
    if (lstat(path, &st) < 0)
        return errno == ENOENT ? TRUE : rpc_set_errno(error, errno, "look at", path);
    if (!S_ISSOCK(st.st_mode)) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_EXISTS,
                    "%s exists and is no socket; remove it or choose another path", path);
        return FALSE;
    }
    hearth_autofd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return rpc_set_errno(error, errno, "create socket for", path);
    if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 || errno == EAGAIN) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_ADDRESS_IN_USE,
                    "%s is served by another process; stop it first", path);
        return FALSE;
    }
    if (errno == ENOENT)
        return TRUE;
    if (errno != ECONNREFUSED)
        return rpc_set_errno(error, errno, "probe", path);
    if (unlink(path) < 0 && errno != ENOENT)
        return rpc_set_errno(error, errno, "remove stale socket", path);
    return TRUE;
}

gboolean rpc_listen(RpcListener *listener, const char *path, GError **error)
{
    *listener = (RpcListener){.fd = -1};
    struct sockaddr_un address;
    if (!rpc_socket_address(&address, path, error) || !clear_stale(&address, path, error))
        return FALSE;

    hearth_autofd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || fchmod(fd, 0600) < 0)
        return rpc_set_errno(error, errno, "create socket for", path);
    if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return rpc_set_errno(error, errno, "bind", path);
    struct stat st;
    if (lstat(path, &st) < 0 || listen(fd, SOMAXCONN) < 0) {
        rpc_set_errno(error, errno, "listen on", path);
        unlink(path);
        return FALSE;
    }
    listener->path = g_strdup(path);
    listener->device = st.st_dev;
    listener->inode = st.st_ino;
    listener->fd = hearth_steal_fd(&fd);
    return TRUE;
}

void rpc_listener_close(RpcListener *listener)
{
    if (!listener->path)
        return;
    struct stat st;
    if (lstat(listener->path, &st) == 0 && st.st_dev == listener->device &&
        st.st_ino == listener->inode)
        unlink(listener->path);
    close(listener->fd);
    g_free(listener->path);
    *listener = (RpcListener){.fd = -1};
}
