/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/hearthd/link.h"
#include <gio/gio.h>
#include <sys/socket.h>
#include <unistd.h>
#include "proto/wire.h"
#include "proto/wire_keys.h"

struct HearthdLink {
    int fd;
    char *path;
};

static const int codes[] = {
    [WIRE_ERROR_INTERNAL] = HEARTH_ERROR_INTERNAL,
    [WIRE_ERROR_INVALID_ARGUMENT] = HEARTH_ERROR_INVALID_ARGUMENT,
    [WIRE_ERROR_NOT_FOUND] = HEARTH_ERROR_NOT_FOUND,
    [WIRE_ERROR_ALREADY_EXISTS] = HEARTH_ERROR_ALREADY_EXISTS,
    [WIRE_ERROR_FAILED_PRECONDITION] = HEARTH_ERROR_FAILED_PRECONDITION,
    [WIRE_ERROR_UNAVAILABLE] = HEARTH_ERROR_UNAVAILABLE,
    [WIRE_ERROR_PERMISSION_DENIED] = HEARTH_ERROR_PERMISSION_DENIED,
    [WIRE_ERROR_DEADLINE_EXCEEDED] = HEARTH_ERROR_DEADLINE_EXCEEDED,
    [WIRE_ERROR_ABORTED] = HEARTH_ERROR_ABORTED,
    [WIRE_ERROR_UNIMPLEMENTED] = HEARTH_ERROR_UNIMPLEMENTED,
    [WIRE_ERROR_RESOURCE_EXHAUSTED] = HEARTH_ERROR_RESOURCE_EXHAUSTED,
};

static void set_error(const char *path, const char *what, const GError *cause, GError **error)
{
    if (cause->domain == WIRE_ERROR) {
        gboolean known = cause->code >= 0 && (size_t)cause->code < G_N_ELEMENTS(codes);
        hearth_fail(error, known ? codes[cause->code] : HEARTH_ERROR_INTERNAL, "hearthd: %s",
                    cause->message);
    } else if (g_error_matches(cause, G_IO_ERROR, G_IO_ERROR_TIMED_OUT)) {
        hearth_fail(error, HEARTH_ERROR_DEADLINE_EXCEEDED,
                    "hearthd at %s did not answer \"%s\" in time", path, what);
    } else {
        hearth_fail(error, HEARTH_ERROR_UNAVAILABLE,
                    "hearthd at %s: %s (%s); is the hearthd pod of this node running?", path, what,
                    cause->message);
    }
}

HearthdLink *hearthd_connect(const char *socket_path, gboolean *absent, GError **error)
{
    g_autoptr(GError) cause = NULL;
    int fd = wire_connect(socket_path, &cause);
    if (absent)
        *absent = g_error_matches(cause, G_IO_ERROR, G_IO_ERROR_NOT_FOUND) ||
                  g_error_matches(cause, G_IO_ERROR, G_IO_ERROR_CONNECTION_REFUSED);
    if (fd < 0) {
        set_error(socket_path, "connect", cause, error);
        return NULL;
    }
    HearthdLink *link = g_new0(HearthdLink, 1);
    link->fd = fd;
    link->path = g_strdup(socket_path);
    return link;
}

void hearthd_close(HearthdLink *link)
{
    if (!link)
        return;
    close(link->fd);
    g_free(link->path);
    g_free(link);
}

int hearthd_link_fd(const HearthdLink *link)
{
    return link->fd;
}

json_t *hearthd_call(HearthdLink *link, const json_t *request, int send_fd, int *receive_fd,
                     gint64 timeout_ms, GError **error)
{
    g_autoptr(GError) cause = NULL;
    int timeout = (int)CLAMP(timeout_ms, 0, G_MAXINT);
    json_t *reply = wire_call(link->fd, request, send_fd, receive_fd, timeout, &cause);
    /* The answer may come later, and would be taken for that of the next request. */
    if (g_error_matches(cause, G_IO_ERROR, G_IO_ERROR_TIMED_OUT))
        shutdown(link->fd, SHUT_RDWR);
    if (!reply)
        set_error(link->path, json_string_value(json_object_get(request, "op")), cause, error);
    return reply;
}
