/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One JSON object a packet. SOCK_SEQPACKET keeps the borders of messages, so there is no framing,
 * and a message that does not fit is seen as truncated rather than read as two.
 *
 * Secrets pass through: the buffers here are overwritten before they are freed. Every descriptor
 * that arrives is either handed to the caller or closed, whatever else is wrong with the message.
 */
#include "proto/wire.h"
#include "proto/wire_keys.h"
#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <malloc.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

G_DEFINE_QUARK(wire - error, wire_error)

static const char *const error_names[] = {
    [WIRE_ERROR_INTERNAL] = "INTERNAL",
    [WIRE_ERROR_INVALID_ARGUMENT] = "INVALID_ARGUMENT",
    [WIRE_ERROR_NOT_FOUND] = "NOT_FOUND",
    [WIRE_ERROR_ALREADY_EXISTS] = "ALREADY_EXISTS",
    [WIRE_ERROR_FAILED_PRECONDITION] = "FAILED_PRECONDITION",
    [WIRE_ERROR_UNAVAILABLE] = "UNAVAILABLE",
    [WIRE_ERROR_PERMISSION_DENIED] = "PERMISSION_DENIED",
    [WIRE_ERROR_DEADLINE_EXCEEDED] = "DEADLINE_EXCEEDED",
    [WIRE_ERROR_ABORTED] = "ABORTED",
    [WIRE_ERROR_UNIMPLEMENTED] = "UNIMPLEMENTED",
    [WIRE_ERROR_RESOURCE_EXHAUSTED] = "RESOURCE_EXHAUSTED",
};

const char *wire_error_name(WireError code)
{
    return (size_t)code < G_N_ELEMENTS(error_names) ? error_names[code] : "INTERNAL";
}

static WireError error_from_name(const char *name)
{
    for (size_t i = 0; name && i < G_N_ELEMENTS(error_names); i++)
        if (strcmp(name, error_names[i]) == 0)
            return (WireError)i;
    return WIRE_ERROR_INTERNAL;
}

static WireError error_code(const GError *error)
{
    if (error->domain == WIRE_ERROR)
        return (WireError)error->code;
    if (error->domain != G_IO_ERROR)
        return WIRE_ERROR_INTERNAL;
    switch (error->code) {
    case G_IO_ERROR_NOT_FOUND:
        return WIRE_ERROR_NOT_FOUND;
    case G_IO_ERROR_PERMISSION_DENIED:
        return WIRE_ERROR_PERMISSION_DENIED;
    case G_IO_ERROR_TIMED_OUT:
        return WIRE_ERROR_DEADLINE_EXCEEDED;
    case G_IO_ERROR_NO_SPACE:
        return WIRE_ERROR_RESOURCE_EXHAUSTED;
    case G_IO_ERROR_INVALID_ARGUMENT:
    case G_IO_ERROR_INVALID_DATA:
    case G_IO_ERROR_NOT_DIRECTORY:
        return WIRE_ERROR_INVALID_ARGUMENT;
    case G_IO_ERROR_BUSY:
    case G_IO_ERROR_NOT_SUPPORTED:
        return WIRE_ERROR_FAILED_PRECONDITION;
    case G_IO_ERROR_CONNECTION_REFUSED:
    case G_IO_ERROR_HOST_UNREACHABLE:
    case G_IO_ERROR_NETWORK_UNREACHABLE:
    case G_IO_ERROR_NOT_CONNECTED:
    case G_IO_ERROR_CLOSED:
        return WIRE_ERROR_UNAVAILABLE;
    default:
        return WIRE_ERROR_INTERNAL;
    }
}

gboolean wire_fail(GError **error, WireError code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error_literal(error, WIRE_ERROR, (gint)code, text);
    return FALSE;
}

gboolean wire_state_is_left(int fd)
{
    char first;
    return pread(fd, &first, 1, 0) == 1 && first != '\0';
}

json_t *wire_error_reply(const GError *error)
{
    g_autofree char *text = g_utf8_make_valid(error->message, -1);
    return json_pack("{s:b, s:s, s:s}", WIRE_KEY_OK, 0, WIRE_KEY_CODE,
                     wire_error_name(error_code(error)), WIRE_KEY_ERROR, text);
}

static void wiping_free(void *memory)
{
    if (memory)
        explicit_bzero(memory, malloc_usable_size(memory));
    free(memory);
}

void wire_wipe_freed_json(void)
{
    json_set_alloc_funcs(malloc, wiping_free);
}

static void set_errno_error(GError **error, int code, const char *what, const char *path)
{
    g_set_error(error, G_IO_ERROR, g_io_error_from_errno(code), "%s %s: %s", what, path,
                g_strerror(code));
}

static gboolean make_address(const char *path, struct sockaddr_un *address, GError **error)
{
    memset(address, 0, sizeof(*address));
    address->sun_family = AF_UNIX;
    if (!path[0] || strlen(path) >= sizeof(address->sun_path)) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_FILENAME_TOO_LONG,
                    "socket path '%s': must be 1 to %zu bytes long; use a shorter one", path,
                    sizeof(address->sun_path) - 1);
        return FALSE;
    }
    strcpy(address->sun_path, path);
    return TRUE;
}

/* A message must fit into the socket's buffer, whatever net.core.wmem_default says. */
static void enlarge_buffer(int socket)
{
    int bytes = 2 * WIRE_MAX_MESSAGE;
    setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

/* connect(2) waits for a place in the queue of a process that accepts nothing, for this long. */
static void limit_connect(int socket)
{
    const struct timeval limit = {.tv_sec = WIRE_SEND_TIMEOUT_MS / 1000};
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

int wire_connect(const char *path, GError **error)
{
    struct sockaddr_un address;
    if (!make_address(path, &address, error))
        return -1;
    hearth_autofd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    int result = fd;
    if (fd >= 0) {
        limit_connect(fd);
        do
            result = connect(fd, (struct sockaddr *)&address, sizeof(address));
        while (result < 0 && errno == EINTR);
    }
    if (result < 0 && errno == EAGAIN) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
                    "cannot connect to %s: its process accepts no connection", path);
        return -1;
    }
    if (result < 0) {
        set_errno_error(error, errno, "cannot connect to", path);
        return -1;
    }
    enlarge_buffer(fd);
    return hearth_steal_fd(&fd);
}

/*
 * Removes a socket on which no process listens. The caller holds a lock on the directory, because a
 * socket that is bound but does not listen yet refuses connections just as a stale one does.
 */
static gboolean remove_stale(const char *path, GError **error)
{
    struct stat st;
    if (lstat(path, &st) < 0) {
        if (errno == ENOENT)
            return TRUE;
        set_errno_error(error, errno, "cannot look at", path);
        return FALSE;
    }
    if (!S_ISSOCK(st.st_mode)) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_EXISTS,
                    "%s exists and is no socket; remove it or choose another path", path);
        return FALSE;
    }
    g_autoptr(GError) refused = NULL;
    hearth_autofd int fd = wire_connect(path, &refused);
    if (fd >= 0) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_ADDRESS_IN_USE,
                    "%s is served by another process; stop it or choose another path", path);
        return FALSE;
    }
    if (!g_error_matches(refused, G_IO_ERROR, G_IO_ERROR_CONNECTION_REFUSED)) {
        g_propagate_error(error, g_steal_pointer(&refused));
        return FALSE;
    }
    if (unlink(path) < 0 && errno != ENOENT) {
        set_errno_error(error, errno, "cannot remove the stale socket", path);
        return FALSE;
    }
    return TRUE;
}

/* The mode of the socket's inode before bind() is the mode of the file it makes. */
static gboolean bind_and_listen(int fd, const struct sockaddr_un *address)
{
    if (fchmod(fd, 0600) < 0)
        return FALSE;
    if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
        return FALSE;
    return listen(fd, 64) == 0;
}

int wire_listen(const char *path, GError **error)
{
    struct sockaddr_un address;
    if (!make_address(path, &address, error))
        return -1;
    g_autofree char *dir = g_path_get_dirname(path);
    if (g_mkdir_with_parents(dir, 0700) < 0) {
        set_errno_error(error, errno, "cannot make the directory", dir);
        return -1;
    }
    hearth_autofd int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0 || flock(dir_fd, LOCK_EX) < 0) {
        set_errno_error(error, errno, "cannot lock the directory", dir);
        return -1;
    }
    if (!remove_stale(path, error))
        return -1;
    hearth_autofd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0 || !bind_and_listen(fd, &address)) {
        set_errno_error(error, errno, "cannot listen on", path);
        return -1;
    }
    return hearth_steal_fd(&fd);
}

int wire_accept(int listener, GError **error)
{
    int fd;
    do
        fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
    if (fd < 0)
        set_errno_error(error, errno, "cannot accept on", "the control socket");
    else
        enlarge_buffer(fd);
    return fd;
}

/* Waits for `events`; deadline in monotonic microseconds, -1: none. */
static gboolean wait_for(int socket, short events, gint64 deadline, GError **error)
{
    for (;;) {
        int timeout_ms = -1;
        if (deadline >= 0) {
            gint64 left = deadline - g_get_monotonic_time();
            timeout_ms = left > 0 ? (int)MIN((left + 999) / 1000, G_MAXINT) : 0;
        }
        struct pollfd p = {.fd = socket, .events = events};
        int n = poll(&p, 1, timeout_ms);
        if (n > 0)
            return TRUE;
        if (n == 0) {
            g_set_error(error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
                        "the peer of the control socket did not %s in time",
                        events == POLLIN ? "answer" : "read");
            return FALSE;
        }
        if (errno != EINTR) {
            set_errno_error(error, errno, "cannot wait on", "the control socket");
            return FALSE;
        }
    }
}

static gint64 deadline_after(int timeout_ms)
{
    return timeout_ms < 0 ? -1 : g_get_monotonic_time() + timeout_ms * G_TIME_SPAN_MILLISECOND;
}

static gboolean send_packet(int socket, const char *text, size_t size, int fd, GError **error)
{
    union {
        char space[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    struct iovec iov = {.iov_base = (char *)text, .iov_len = size};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    if (fd >= 0) {
        msg.msg_control = control.space;
        msg.msg_controllen = sizeof(control.space);
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof(int));
    }
    gint64 deadline = deadline_after(WIRE_SEND_TIMEOUT_MS);
    while (sendmsg(socket, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
        if (errno == EINTR)
            continue;
        if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN) {
            g_set_error(error, G_IO_ERROR, G_IO_ERROR_CLOSED,
                        "the peer closed the control connection");
            return FALSE;
        }
        if (errno != EAGAIN) {
            set_errno_error(error, errno, "cannot send on", "the control socket");
            return FALSE;
        }
        if (!wait_for(socket, POLLOUT, deadline, error))
            return FALSE;
    }
    return TRUE;
}

gboolean wire_send(int socket, const json_t *message, int fd, GError **error)
{
    size_t size = json_dumpb(message, NULL, 0, JSON_COMPACT);
    if (size == 0 || size > WIRE_MAX_MESSAGE) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_MESSAGE_TOO_LARGE,
                    "a control message of %zu bytes: the limit is %d", size, WIRE_MAX_MESSAGE);
        return FALSE;
    }
    char *text = g_malloc(size);
    json_dumpb(message, text, size, JSON_COMPACT);
    gboolean sent = send_packet(socket, text, size, fd, error);
    explicit_bzero(text, size);
    g_free(text);
    return sent;
}

/* Takes the one descriptor a message may carry; closes all of them when there are more. */
static gboolean take_descriptor(struct msghdr *msg, int *fd, GError **error)
{
    int first = -1;
    unsigned count = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int one;
            memcpy(&one, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
            if (count++ == 0)
                first = one;
            else
                close(one);
        }
    }
    if (count > 1 || (msg->msg_flags & MSG_CTRUNC)) {
        if (first >= 0)
            close(first);
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                    "a control message carries more than one descriptor, or one that could not "
                    "be received (is the limit of open files reached?)");
        return FALSE;
    }
    *fd = first;
    return TRUE;
}

static json_t *parse_message(const char *text, size_t size, GError **error)
{
    json_auto_t *message = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(message))
        return g_steal_pointer(&message);
    /* The parser's own text quotes the message, which may hold a secret: it is not passed on. */
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                "a control message of %zu bytes is not one JSON object%s", size,
                message ? "" : " (it does not parse)");
    return NULL;
}

json_t *wire_receive(int socket, int *fd, int timeout_ms, GError **error)
{
    if (fd)
        *fd = -1;
    gint64 deadline = deadline_after(timeout_ms);
    /* Room for two, so that a second one is seen rather than cut off silently. */
    union {
        char space[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } control;
    char *text = g_malloc(WIRE_MAX_MESSAGE);
    struct iovec iov = {.iov_base = text, .iov_len = WIRE_MAX_MESSAGE};
    struct msghdr msg;
    ssize_t n;
    for (;;) {
        msg = (struct msghdr){.msg_iov = &iov,
                              .msg_iovlen = 1,
                              .msg_control = control.space,
                              .msg_controllen = sizeof(control.space)};
        if (!wait_for(socket, POLLIN, deadline, error)) {
            g_free(text);
            return NULL;
        }
        n = recvmsg(socket, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
        if (n >= 0 || (errno != EINTR && errno != EAGAIN))
            break;
    }
    json_t *message = NULL;
    hearth_autofd int received = -1;
    if (n < 0 && errno != ECONNRESET)
        set_errno_error(error, errno, "cannot receive on", "the control socket");
    else if (n >= 0 && !take_descriptor(&msg, &received, error))
        ;
    else if (n <= 0)
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_CLOSED, "the peer closed the control connection");
    else if (msg.msg_flags & MSG_TRUNC)
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                    "a control message is larger than the limit of %d bytes", WIRE_MAX_MESSAGE);
    else
        message = parse_message(text, (size_t)n, error);
    if (n > 0)
        explicit_bzero(text, (size_t)n);
    g_free(text);
    if (message && fd)
        *fd = hearth_steal_fd(&received);
    return message;
}

json_t *wire_call(int socket, const json_t *request, int send_fd, int *receive_fd, int timeout_ms,
                  GError **error)
{
    if (receive_fd)
        *receive_fd = -1;
    if (!wire_send(socket, request, send_fd, error))
        return NULL;
    return wire_reply(socket, receive_fd, timeout_ms, error);
}

json_t *wire_reply(int socket, int *receive_fd, int timeout_ms, GError **error)
{
    if (receive_fd)
        *receive_fd = -1;
    hearth_autofd int fd = -1;
    json_auto_t *reply = wire_receive(socket, &fd, timeout_ms, error);
    if (!reply)
        return NULL;
    if (!json_is_true(json_object_get(reply, WIRE_KEY_OK))) {
        const char *text = json_string_value(json_object_get(reply, WIRE_KEY_ERROR));
        const char *code = json_string_value(json_object_get(reply, WIRE_KEY_CODE));
        wire_fail(error, error_from_name(code), "%s",
                  text ? text : "hearthd refused the request and gave no reason");
        return NULL;
    }
    if (receive_fd)
        *receive_fd = hearth_steal_fd(&fd);
    return g_steal_pointer(&reply);
}

#define MAX_SLOT_DIGITS 9

gboolean wire_dataset_of(const char *volume, char dataset[WIRE_DATASET_DIGITS + 1])
{
    if (!g_str_has_prefix(volume, WIRE_DATASET_PREFIX))
        return FALSE;
    const char *id = volume + strlen(WIRE_DATASET_PREFIX);
    if (strspn(id, "0123456789abcdef") != WIRE_DATASET_DIGITS)
        return FALSE;
    const char *slot = id + WIRE_DATASET_DIGITS;
    const size_t digits = slot[0] == '-' ? strspn(slot + 1, "0123456789") : 0;
    if (slot[0] && (digits == 0 || digits > MAX_SLOT_DIGITS || slot[1 + digits]))
        return FALSE;
    memcpy(dataset, id, WIRE_DATASET_DIGITS);
    dataset[WIRE_DATASET_DIGITS] = '\0';
    return TRUE;
}
