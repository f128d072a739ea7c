/* SPDX-License-Identifier: Apache-2.0 */
#include "common/http/address.h"
#include <errno.h>
#include <gio/gio.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/error.h"

#define BACKLOG 64

/* host: NULL for all. */
static gboolean parse(const char *address, char **host, guint16 *port)
{
    const char *colon = strrchr(address, ':');
    guint64 number;
    if (!colon || !g_ascii_string_to_unsigned(colon + 1, 10, 0, G_MAXUINT16, &number, NULL))
        return FALSE;
    *port = (guint16)number;
    g_autofree char *text = g_strndup(address, (gsize)(colon - address));
    const gsize length = strlen(text);
    if (length == 0)
        return TRUE;
    const gboolean brackets = text[0] == '[' && text[length - 1] == ']';
    *host = brackets ? g_strndup(text + 1, length - 2) : g_strdup(text);
    g_autoptr(GInetAddress) parsed = g_inet_address_new_from_string(*host);
    return parsed && (g_inet_address_get_family(parsed) == G_SOCKET_FAMILY_IPV6) == brackets;
}

static gboolean bind_and_listen(int fd, GSocketAddress *address)
{
    struct sockaddr_storage native;
    const gssize size = g_socket_address_get_native_size(address);
    if (!g_socket_address_to_native(address, &native, sizeof(native), NULL))
        return FALSE;
    if (bind(fd, (struct sockaddr *)&native, (socklen_t)size) < 0)
        return FALSE;
    return listen(fd, BACKLOG) == 0;
}

static int listen_at(const char *host, guint16 port, int family)
{
    const int on = 1, off = 0;
    const char *any = family == AF_INET6 ? "::" : "0.0.0.0";
    g_autoptr(GSocketAddress) address =
        g_inet_socket_address_new_from_string(host ? host : any, port);
    const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (bind_and_listen(fd, address))
        return fd;
    const int number = errno;
    close(fd);
    errno = number;
    return -1;
}

int http_listen(const char *address, const char *what, GError **error)
{
    g_autofree char *host = NULL;
    guint16 port = 0;
    if (!parse(address, &host, &port)) {
        hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                    "%s \"%s\": give ADDRESS:PORT, as :9443, 10.0.0.1:9443 or [::1]:9443", what,
                    address);
        return -1;
    }
    int fd = listen_at(host, port, !host || strchr(host, ':') ? AF_INET6 : AF_INET);
    /* A kernel may have no IPv6, or no address of it. */
    if (fd < 0 && !host && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL))
        fd = listen_at(NULL, port, AF_INET);
    if (fd < 0)
        hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION, "%s \"%s\": cannot listen: %s", what,
                    address, g_strerror(errno));
    return fd;
}

guint16 http_port_of(int fd)
{
    struct sockaddr_storage native;
    socklen_t size = sizeof(native);
    if (getsockname(fd, (struct sockaddr *)&native, &size) < 0)
        return 0;
    g_autoptr(GSocketAddress) address = g_socket_address_new_from_native(&native, size);
    return address ? g_inet_socket_address_get_port(G_INET_SOCKET_ADDRESS(address)) : 0;
}
