/* SPDX-License-Identifier: Apache-2.0 */
/* With the C library alone: hearth-keeper is linked with nothing else. */
#include "proto/keep.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 8
#define CONNECT_SEC 2

typedef union FdRoom {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int) * KEEP_FDS_MAX)];
} FdRoom;

int keep_send(int socket, const KeepMessage *message, int flags)
{
    KeepMessage m = *message;
    FdRoom room = {.bytes = {0}};
    struct iovec parts[2] = {{&m.what, sizeof(m.what)}, {m.name, strnlen(m.name, KEEP_NAME_MAX)}};
    struct msghdr header = {.msg_iov = parts, .msg_iovlen = 2};
    if (m.n_fds > 0) {
        header.msg_control = room.bytes;
        header.msg_controllen = CMSG_SPACE(sizeof(int) * m.n_fds);
        struct cmsghdr *c = CMSG_FIRSTHDR(&header);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * m.n_fds);
        memcpy(CMSG_DATA(c), m.fds, sizeof(int) * m.n_fds);
    }
    ssize_t n;
    while ((n = sendmsg(socket, &header, flags | MSG_NOSIGNAL)) < 0 && errno == EINTR)
        ;
    return n < 0 ? -errno : 0;
}

static void take_fds(struct msghdr *header, KeepMessage *m)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        m->n_fds = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(m->fds, CMSG_DATA(c), sizeof(int) * m->n_fds);
    }
}

int keep_receive(int socket, KeepMessage *m, int flags)
{
    FdRoom room;
    memset(m, 0, sizeof(*m));
    struct iovec parts[2] = {{&m->what, sizeof(m->what)}, {m->name, KEEP_NAME_MAX}};
    struct msghdr header = {.msg_iov = parts,
                            .msg_iovlen = 2,
                            .msg_control = room.bytes,
                            /* CMSG_SPACE() may have room for one more. */
                            .msg_controllen = CMSG_LEN(sizeof(int) * KEEP_FDS_MAX)};
    ssize_t n;
    while ((n = recvmsg(socket, &header, flags | MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
        ;
    if (n < 0)
        return -errno;
    take_fds(&header, m);
    const size_t length = n > (ssize_t)sizeof(m->what) ? (size_t)n - sizeof(m->what) : 0;
    int rc = 0;
    if (n == 0)
        rc = -ENOTCONN;
    else if (header.msg_flags & MSG_CTRUNC)
        rc = -EMFILE;
    else if (n < (ssize_t)sizeof(m->what) || (header.msg_flags & MSG_TRUNC) ||
             strlen(m->name) != length)
        rc = -EBADMSG;
    if (rc != 0)
        keep_close(m);
    return rc;
}

void keep_close(KeepMessage *m)
{
    for (unsigned i = 0; i < m->n_fds; i++)
        close(m->fds[i]);
    m->n_fds = 0;
}

static int make_socket(const char *path, struct sockaddr_un *address)
{
    memset(address, 0, sizeof(*address));
    address->sun_family = AF_UNIX;
    if (strlen(path) >= sizeof(address->sun_path))
        return -ENAMETOOLONG;
    strcpy(address->sun_path, path);
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    return fd < 0 ? -errno : fd;
}

static int close_failed(int fd)
{
    const int rc = -errno;
    close(fd);
    return rc;
}

int keep_connect(const char *path, int limit_sec)
{
    struct sockaddr_un address;
    const int fd = make_socket(path, &address);
    const struct timeval limit = {.tv_sec = limit_sec};
    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    }
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    return close_failed(fd);
}

int keep_listen(const char *path)
{
    struct sockaddr_un address;
    const int other = keep_connect(path, CONNECT_SEC);
    if (other >= 0) {
        close(other);
        return -EADDRINUSE;
    }
    if (other == -ECONNREFUSED)
        unlink(path);
    const int fd = make_socket(path, &address);
    if (fd < 0)
        return fd;
    const mode_t mask = umask(0177);
    int rc = bind(fd, (struct sockaddr *)&address, sizeof(address));
    umask(mask);
    if (rc == 0)
        rc = listen(fd, BACKLOG);
    return rc == 0 ? fd : close_failed(fd);
}
